"""CLEVR: cut, shrunk, filtered and stored once, whatever happens meanwhile."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rotating_features._check import InputError
from rotating_features.data import published, write_npz
from rotating_features.data.clevr import Clevr, nearest
from rotating_features.data.published import Parts
from rotating_features.data.tfrecord import read_examples

FILE = "clevr_with_masks_train.tfrecords"
STORED = "clevr_with_masks_train.npy"


def scene(number: int, objects: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise, and ``objects`` boxes in a row inside the part that is kept: image and labels."""
    image = np.random.default_rng(number).integers(0, 256, (240, 320, 3), dtype=np.uint8)
    labels = np.zeros((240, 320), dtype=np.uint8)
    for label in range(1, objects + 1):
        left = 50 + 16 * label
        labels[40 + number : 60 + 3 * label, left : left + 12] = label
    return image, labels


def serialise(records, image: np.ndarray, labels: np.ndarray) -> bytes:
    masks = (labels == np.arange(11)[:, None, None]).astype(np.uint8) * 255
    factors = {"color": np.arange(11, dtype=np.uint8), "x": np.zeros(11, dtype=np.float32)}
    return records.example({**factors, "image": image, "mask": masks})


def with_pillow(array: np.ndarray) -> np.ndarray:
    whole = Image.fromarray(array[29:221, 64:256])
    return np.asarray(whole.resize((128, 128), Image.Resampling.NEAREST))


OBJECTS = [3, 7, 6, 10, 4, 5, 6, 3]
USED = [number for number, objects in enumerate(OBJECTS) if objects <= 6]


@pytest.fixture(scope="module")
def content(records, tmp_path_factory) -> bytes:
    scenes = (serialise(records, *scene(*pair)) for pair in enumerate(OBJECTS))
    return records.write(tmp_path_factory.mktemp("clevr") / FILE, scenes).read_bytes()


@pytest.fixture
def folder(content: bytes, tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(Clevr, "parts", Parts(set_aside=1, test=2, val=1, train=9))
    (tmp_path / FILE).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("size", [1, 5, 128, 191, 192])
def test_nearest_is_pillows(size: int) -> None:
    row = Image.fromarray(np.arange(192, dtype=np.uint8)[None])
    wanted = np.asarray(row.resize((size, 1), Image.Resampling.NEAREST))[0]
    np.testing.assert_array_equal(nearest(0, 192, size), wanted)


def test_scenes_are_cut_shrunk_filtered_and_split_in_order(folder: Path) -> None:
    spans = {"test": USED[1:3], "val": USED[3:4], "train": USED[4:]}
    for split, numbers in spans.items():
        dataset = Clevr(split, folder=folder)
        assert len(dataset) == len(numbers)
        assert (dataset.channels, dataset.size) == (3, (128, 128))
        batch = dataset.draw(range(len(numbers)))
        for place, number in enumerate(numbers):
            image, labels = scene(number, OBJECTS[number])
            np.testing.assert_array_equal(batch.instances[place], with_pillow(labels))
            bytes_ = (batch.image[place] * 255).round().byte().permute(1, 2, 0)
            np.testing.assert_array_equal(bytes_, with_pillow(image))
            assert torch.equal(dataset[place].image, batch.image[place])


def test_a_seventh_object_outside_the_cut_does_not_count(records, folder: Path) -> None:
    image, labels = scene(0, 3)
    labels[:10, :10] = 7
    assert Clevr.decode(next(iter_one(records, folder, image, labels))) is not None
    labels[100:110, 100:110] = 7
    assert Clevr.decode(next(iter_one(records, folder, image, labels))) is None


def iter_one(records, folder: Path, image: np.ndarray, labels: np.ndarray):
    return read_examples(records.write(folder / "one", [serialise(records, image, labels)]))


def test_the_second_use_needs_no_tfrecord_file(folder: Path) -> None:
    first = Clevr("test", folder=folder).draw([0, 1])
    (folder / FILE).unlink()
    again = Clevr("test", folder=folder).draw([0, 1])
    assert torch.equal(first.image, again.image)
    assert torch.equal(first.instances, again.instances)


def test_progress_is_told_up_to_the_last_image(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(published, "TELL_EVERY", 4)
    told = []
    Clevr("test", folder=folder, progress=told.append)
    assert told == [4, len(USED)]


def test_no_more_is_read_than_the_splits_need(folder: Path, monkeypatch) -> None:
    """So a file whose end is missing will do, and one of a million images is not read whole."""
    monkeypatch.setattr(Clevr, "parts", Parts(set_aside=0, test=1, val=1, train=1))
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(whole[: 3 * len(whole) // 4])
    assert len(Clevr("train", folder=folder)) == 1


def test_a_file_cut_short_leaves_nothing_behind(folder: Path) -> None:
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=rf"Record \d of .*{FILE} cannot be read"):
        Clevr("test", folder=folder)
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_a_conversion_stopped_halfway_is_not_used(folder: Path, monkeypatch) -> None:
    def stop(kept: int) -> None:
        if kept == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(published, "TELL_EVERY", 1)

    with pytest.raises(KeyboardInterrupt):
        Clevr("test", folder=folder, progress=stop)
    assert not (folder / STORED).exists()
    (folder / f"{STORED}.partial").write_bytes(b"left by a process that was killed")
    assert len(Clevr("test", folder=folder)) == 2
    assert sorted(path.name for path in folder.iterdir()) == [STORED, FILE]


@pytest.mark.parametrize("left", [0, 100, 20_000, -1])
def test_a_stored_file_cut_short_is_explained(folder: Path, left: int) -> None:
    Clevr("test", folder=folder)
    whole = (folder / STORED).read_bytes()
    (folder / STORED).write_bytes(whole[:left])
    with pytest.raises(InputError, match=rf"{STORED} could not be read(.|\n)*Remove .*{STORED}"):
        Clevr("test", folder=folder)


def test_another_array_in_its_place_is_explained(folder: Path) -> None:
    np.save(folder / STORED, np.zeros(5))
    with pytest.raises(InputError, match=rf"{STORED} should hold .*image.*, got float64"):
        Clevr("test", folder=folder)


def test_a_test_split_that_is_not_whole_is_refused(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(Clevr, "parts", Parts(set_aside=1, test=6, val=1, train=1))
    with pytest.raises(InputError, match=r"has 6 images, but 'test' needs 7: numbers 1 to 6"):
        Clevr("test", folder=folder)


def test_a_file_of_another_dataset_is_explained(records, folder: Path) -> None:
    records.write(folder / FILE, [records.example({"mask": np.zeros(24_576, dtype=np.uint8)})])
    with pytest.raises(InputError, match=r"Record 0 of .* 'mask' should have 11×240×320 bytes"):
        Clevr("test", folder=folder)
    records.write(folder / FILE, [records.example({"picture": [b"x"]})])
    with pytest.raises(InputError, match=r"feature 'mask', got \['picture'\]"):
        Clevr("test", folder=folder)
    records.write(
        folder / FILE, [records.example({"mask": np.zeros(844_800, dtype=np.float32)[:9]})]
    )
    with pytest.raises(InputError, match="got 9 values of float32"):
        Clevr("test", folder=folder)


def test_a_file_without_a_usable_image_is_explained(records, folder: Path) -> None:
    records.write(folder / FILE, [])
    with pytest.raises(InputError, match="has no image that CLEVR could use"):
        Clevr("test", folder=folder)


def test_the_npz_files_of_the_paper_come_first(folder: Path) -> None:
    dataset = Clevr("test", folder=folder)
    write_npz(dataset, folder / "clevr_with_masks_val.npz")
    read = Clevr("val", folder=folder)
    assert len(read) == 2
    assert torch.equal(read[1].image, dataset[1].image)
    assert torch.equal(read[1].instances, dataset[1].instances)


def test_a_missing_file_says_which_where_and_how(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Clevr("test", folder=tmp_path / "here")
    told = str(caught.value)
    for fact in (
        "CLEVR needs clevr_with_masks_train.tfrecords",
        "clevr_with_masks_test.npz",
        f"Looked for in {tmp_path / 'here'}",
        f"rotating-features data clevr --fetch --out {tmp_path / 'here'}",
        "https://storage.googleapis.com/multi-object-datasets/clevr_with_masks/",
        "10.5 GB",
    ):
        assert fact in told


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_outside_is_explained(folder: Path, index: int) -> None:
    with pytest.raises(IndexError, match=rf"index {index} is outside 'test' \(0..1\)"):
        Clevr("test", folder=folder)[index]


def test_the_parts_are_those_of_the_paper() -> None:
    assert [Clevr.parts.span(split) for split in ("test", "val", "train")] == [
        (64, 384),
        (384, 10_384),
        (10_384, 80_384),
    ]
