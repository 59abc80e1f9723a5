"""Datasets as files: what was written is read, and what cannot be read is explained."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rotating_features._check import InputError
from rotating_features.data import FourShapes, NpzDataset, Sample, write_npz

SAVE = np.savez_compressed
IMAGES = np.zeros((3, 1, 4, 5), dtype=np.float32)
LABELS = np.zeros((3, 4, 5), dtype=np.int64)


class Few:
    """The first few samples of a dataset, their images multiplied by a number."""

    channels, size = 1, (32, 32)

    def __init__(self, length: int, factor: float = 1.0) -> None:
        self.length, self.factor = length, factor

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        raise NotImplementedError

    def draw(self, indices) -> Sample:
        image, instances, _ = FourShapes("test").draw(indices)
        return Sample(image * self.factor, instances)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.npz"


@pytest.fixture
def good(path: Path) -> Path:
    write_npz(Few(40), path)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("factor", [1.0, 1 / 3])
def test_what_was_written_is_read(path: Path, factor: float) -> None:
    """Values between 0 and 1 survive as well as 0 and 1 themselves."""
    few = Few(40, factor)
    write_npz(few, path)
    written, read = few.draw(range(40)), NpzDataset(path).draw(range(40))
    assert torch.equal(read.image, written.image)
    assert torch.equal(read.instances, written.instances)
    assert (read.image.dtype, read.instances.dtype) == (torch.float32, torch.int64)


def test_a_file_longer_than_a_chunk_is_whole(path: Path) -> None:
    told = []
    write_npz(Few(4_100), path, progress=told.append)
    assert told == [2_000, 4_000, 4_100]
    dataset = NpzDataset(path)
    assert len(dataset) == 4_100
    assert torch.equal(dataset[4_099].image, FourShapes("test")[4_099].image)


def test_a_file_has_images_and_labels(good: Path) -> None:
    with np.load(good) as file:
        assert sorted(file.files) == ["images", "labels"]
        assert file["images"].shape == (40, 1, 32, 32)
        assert file["labels"].shape == (40, 32, 32)


def test_a_dataset_knows_its_channels_and_size(path: Path) -> None:
    np.savez(path, images=np.zeros((2, 3, 4, 5)), labels=np.zeros((2, 4, 5), dtype=int))
    dataset = NpzDataset(path)
    assert (dataset.channels, dataset.size) == (3, (4, 5))


def test_a_sample_alone_is_the_same_as_in_a_batch(good: Path) -> None:
    dataset = NpzDataset(str(good))
    batch = dataset.draw([7, 3, 3])
    for place, index in enumerate([7, 3, 3]):
        assert torch.equal(dataset[index].image, batch.image[place])
        assert torch.equal(dataset[index].instances, batch.instances[place])


def test_grey_images_may_lack_the_channel_axis(path: Path) -> None:
    np.savez(path, images=IMAGES[:, 0], labels=LABELS)
    assert NpzDataset(path)[0].image.shape == (1, 4, 5)


@pytest.mark.parametrize("index", [-1, 40])
def test_an_index_outside_is_explained(good: Path, index: int) -> None:
    with pytest.raises(IndexError, match=rf"index {index} is outside 0..39"):
        NpzDataset(good)[index]


def test_a_missing_file_says_how_to_write_one(path: Path) -> None:
    with pytest.raises(
        InputError, match=r"There is no file .*data.npz(.|\n)*rotating-features data"
    ):
        NpzDataset(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_cut_short_is_explained(good: Path, share: float) -> None:
    whole = good.read_bytes()
    good.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match=r"data.npz should be .* could not be read"):
        NpzDataset(good)


def test_a_file_with_garbage_inside_is_explained(good: Path) -> None:
    """The zip directory at the end is whole, but what it points to does not decompress."""
    whole = bytearray(good.read_bytes())
    whole[100:400] = bytes(300)
    good.write_bytes(whole)
    with pytest.raises(InputError, match=r"data.npz should be .* could not be read"):
        NpzDataset(good)


def test_a_single_array_instead_of_an_archive_is_explained(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, IMAGES)
    with pytest.raises(InputError, match=r"data.npz should be an npz file"):
        NpzDataset(path)


@pytest.mark.parametrize("missing", ["images", "labels"])
def test_a_missing_array_is_named(path: Path, missing: str) -> None:
    arrays = {"images": IMAGES, "labels": LABELS}
    del arrays[missing]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=rf"could not be read: .*{missing}"):
        NpzDataset(path)


WRONG_SHAPES = {
    "another number of labels": (IMAGES, LABELS[:2]),
    "labels of another size": (IMAGES, LABELS[:, :3]),
    "images without height": (IMAGES[:, 0, 0], LABELS),
    "labels with a channel": (IMAGES, LABELS[:, None]),
    "no images": (IMAGES[:0], LABELS[:0]),
    "images without pixels": (IMAGES[..., :0], LABELS[..., :0]),
}


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_wrong_shapes_are_explained(path: Path, name: str) -> None:
    images, labels = WRONG_SHAPES[name]
    np.savez(path, images=images, labels=labels)
    with pytest.raises(InputError, match=r"got images \(\d.*\) of \w+ and labels \(\d.*\)"):
        NpzDataset(path)


@pytest.mark.parametrize("value", [-0.1, 1.1, 255, np.nan, np.inf])
def test_images_outside_0_to_1_are_explained(path: Path, value: float) -> None:
    images = IMAGES.copy()
    images[1, 0, 2, 3] = value
    np.savez(path, images=images, labels=LABELS)
    with pytest.raises(InputError, match=r"should lie in \[0, 1\], got"):
        NpzDataset(path)


def test_pickled_objects_are_refused(path: Path) -> None:
    """Reading a pickle can run any code."""
    np.savez(path, images=IMAGES.astype(object), labels=LABELS)
    with pytest.raises(InputError, match="could not be read: Object arrays"):
        NpzDataset(path)


def test_images_of_text_are_explained(path: Path) -> None:
    np.savez(path, images=np.full((1, 1, 4, 5), "white"), labels=LABELS[:1])
    with pytest.raises(InputError, match=r"data.npz"):
        NpzDataset(path)


def fail_halfway(file, **arrays) -> None:
    SAVE(file, **{name: array[:1] for name, array in arrays.items()})
    raise OSError("No space left on device")


def test_a_failed_write_leaves_the_old_file(good: Path, monkeypatch) -> None:
    before = good.read_bytes()
    monkeypatch.setattr(np, "savez_compressed", fail_halfway)
    with pytest.raises(OSError, match="No space"):
        write_npz(Few(10), good)
    assert good.read_bytes() == before
    assert names(good.parent) == ["data.npz"]


def test_a_failed_write_leaves_nothing_where_nothing_was(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(np, "savez_compressed", fail_halfway)
    with pytest.raises(OSError, match="No space"):
        write_npz(Few(10), path)
    assert names(path.parent) == []
