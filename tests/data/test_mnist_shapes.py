"""A digit and shapes: every image has its own digit, and labels say what is where."""

import gzip
import hashlib
import struct
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.data import BACKGROUND, IGNORE, SPLITS
from rotating_features.data.four_shapes import four_stencils
from rotating_features.data.mnist_shapes import MnistShapes
from rotating_features.data.stencils import placements

REAL = Path(__file__).parents[3] / "shared" / "data" / "mnist"
FIRST = {"train": 0, "val": 50_000, "test": 60_000}
CHECKSUM = {1: "083569d2aac3e80b6a7a44d6d978ddd8", 2: "5b45000e3542ec7bc3c056e0c91141d7"}


def digit(number: np.ndarray | int) -> np.ndarray:
    """A stand-in for a digit: a bright square with a grey rim, and its number in faint dots."""
    images = np.zeros((*np.shape(number), 28, 28), dtype=np.uint8)
    images[..., 8:20, 6:22] = 127
    images[..., 10:18, 8:20] = 128
    images[..., [0, 0, -1, -1], [0, -1, 0, -1]] = 90
    images[..., 0, 5:22] = ((np.asarray(number)[..., None] >> np.arange(17)) & 1) * 80
    return images


def name(number: np.ndarray | int) -> np.ndarray:
    return np.asarray(number) * 7 // 3 % 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Digits 0 to 59,999 to train on, 60,000 to 69,999 to test on."""
    folder = tmp_path_factory.mktemp("mnist")
    for part, numbers in (("train", np.arange(60_000)), ("t10k", np.arange(60_000, 70_000))):
        for kind, array in (("images-idx3", digit(numbers)), ("labels-idx1", name(numbers))):
            header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            content = header + array.astype(np.uint8).tobytes()
            path = folder / f"{part}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(content, compresslevel=1))
    return folder


@pytest.fixture(scope="module", params=[1, 2])
def dataset(request, folder: Path) -> MnistShapes:
    return MnistShapes("val", shapes=request.param, path=folder)


@settings(max_examples=20)
@given(indices=st.lists(st.integers(0, 9_999), min_size=1, max_size=6))
def test_a_sample_depends_on_its_index_alone(dataset: MnistShapes, indices: list[int]) -> None:
    batch, labels = dataset.draw(indices), dataset.draw_labels(indices)
    for place, index in enumerate(indices):
        for alone, among in zip(dataset[index], batch, strict=True):
            assert alone is not None
            assert among is not None
            assert torch.equal(alone, among[place])
        assert torch.equal(dataset.draw_labels([index])[0], labels[place])


def test_splits_and_seeds_share_no_places(folder: Path) -> None:
    drawn = [
        MnistShapes(split, shapes=2, seed=seed, path=folder).draw(range(30)).instances
        for split in SPLITS
        for seed in range(2)
    ]
    assert len(torch.cat(drawn).unique(dim=0)) == 30 * len(drawn)


@pytest.mark.parametrize("split", SPLITS)
def test_every_image_has_its_own_digit_at_a_place_inside(folder: Path, split) -> None:
    """One of the 25 ways to put its digit down is what the image shows beside the shapes."""
    dataset = MnistShapes(split, shapes=1, path=folder)
    assert len(dataset) == {"train": 50_000, "val": 10_000, "test": 10_000}[split]
    indices = np.linspace(0, len(dataset) - 1, 60).astype(int)
    image, instances, classes = dataset.draw(indices)
    assert classes is not None
    used = set()
    for i, index in enumerate(indices):
        number = FIRST[split] + index
        white = image[i, 0].numpy() == 1
        for top, left in np.ndindex(5, 5):
            placed = np.zeros((32, 32), dtype=np.uint8)
            placed[top : top + 28, left : left + 28] = digit(number)
            if np.array_equal(np.where(white, 255, placed) / np.float32(255), image[i, 0]):
                break
        else:
            pytest.fail(f"digit {number} is not there")
        used.add((top, left))
        ink = placed > 127
        assert np.array_equal(instances[i] == 1, ink & ~white)
        assert np.array_equal(instances[i] == BACKGROUND, ~ink & ~white)
        assert np.array_equal(instances[i] == IGNORE, ink & white)
        assert (classes[i][instances[i] == 1] == 1 + name(number)).all()
    assert len(used) > 15


def test_a_digits_edge_may_belong_to_it(folder: Path) -> None:
    narrow = MnistShapes("test", shapes=1, path=folder).draw(range(20))
    wide = MnistShapes("test", shapes=1, path=folder, digit_edge=True).draw(range(20))
    assert torch.equal(narrow.image, wide.image)
    grey = (narrow.image[:, 0] > 0) & (narrow.image[:, 0] < 1)
    assert grey.any()
    assert (wide.instances[grey] == 1).all()
    assert torch.equal(narrow.instances[~grey] == BACKGROUND, wide.instances[~grey] == BACKGROUND)


def test_shapes_are_whole(dataset: MnistShapes) -> None:
    """Each, with some of the overlap, makes up its stencil at some place of the image."""
    image, _, classes = dataset.draw(range(200))
    assert classes is not None
    labels = classes.flatten(1).numpy()
    white = (image == 1).flatten(1).numpy()
    present = dataset.draw_labels(range(200))[:, 10:].numpy() > 0
    for kind, stencil in enumerate(four_stencils(23)[:3]):
        ways = placements(stencil, 32).astype(np.float32)
        own = labels == 11 + kind
        allowed = own | ((labels == IGNORE) & white)
        holds_own = own.astype(np.float32) @ ways.T == own.sum(1, keepdims=True)
        stays_within = allowed.astype(np.float32) @ ways.T == stencil.sum()
        assert (holds_own & stays_within).any(1)[present[:, kind]].all()
        assert not own[~present[:, kind]].any()


def test_maps_of_objects_and_classes_fit_each_other(dataset: MnistShapes) -> None:
    """Object 1 is the digit; the shapes are 2 and 3 in the order of their classes."""
    _, instances, classes = dataset.draw(range(200))
    assert classes is not None
    assert instances.unique().tolist() == [IGNORE, BACKGROUND, *range(1, 2 + dataset.shapes)]
    for labels, kinds, held in zip(
        instances, classes, dataset.draw_labels(range(200)), strict=True
    ):
        wanted = torch.tensor([BACKGROUND, *(held.nonzero()[:, 0] + 1), IGNORE])  # -1 is the last
        assert torch.equal(wanted[labels], kinds)


def test_labels_hold_one_digit_and_the_shapes(dataset: MnistShapes) -> None:
    labels = dataset.draw_labels(range(3_000))
    assert (labels.shape, labels.dtype) == ((3_000, len(dataset.class_names)), torch.float32)
    assert labels.unique().tolist() == [0, 1]
    assert labels[:, :10].argmax(1).tolist() == name(50_000 + np.arange(3_000)).tolist()
    assert (labels[:, :10].sum(1) == 1).all()
    assert (labels[:, 10:].sum(1) == dataset.shapes).all()


def test_every_choice_of_shapes_is_as_likely(dataset: MnistShapes) -> None:
    _, counts = dataset.draw_labels(range(3_000))[:, 10:].unique(dim=0, return_counts=True)
    assert len(counts) == 3
    assert ((counts - 1_000).abs() < 5 * 1_000**0.5).all()


def test_a_sample_has_the_promised_types(dataset: MnistShapes) -> None:
    image, instances, classes = dataset[3]
    assert classes is not None
    assert image.shape == (dataset.channels, *dataset.size) == (1, 32, 32)
    assert instances.shape == classes.shape == (32, 32)
    assert (image.dtype, instances.dtype, classes.dtype) == (
        torch.float32,
        torch.int64,
        torch.int64,
    )
    assert dataset.class_names[5] == "5"
    assert dataset.class_names[10:] == ("square", "triangle up", "triangle down")


def test_the_dataset_never_changes(dataset: MnistShapes) -> None:
    batch = dataset.draw([0, 1, 2, 9_999])
    assert batch.classes is not None
    grey = (batch.image * 255).round()
    maps = torch.stack([grey[:, 0].long(), batch.instances, batch.classes])
    found = hashlib.sha256(maps.numpy().astype(np.int16).tobytes()).hexdigest()
    assert found[:32] == CHECKSUM[dataset.shapes]


def test_five_thousand_images_take_at_most_a_second_and_a_half(dataset: MnistShapes) -> None:
    start = time.process_time()
    dataset.draw(np.arange(5_000))
    assert time.process_time() - start < 1.5


@pytest.mark.parametrize("shapes", [0, 3])
def test_other_numbers_of_shapes_are_explained(folder: Path, shapes) -> None:
    with pytest.raises(InputError, match=f"shapes should be 1 or 2, got {shapes}"):
        MnistShapes("train", shapes=shapes, path=folder)


def test_bad_splits_indices_and_folders_are_explained(dataset: MnistShapes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\['train', 'val', 'test'\], got 'dev'"):
        MnistShapes("dev", shapes=1)
    with pytest.raises(IndexError, match=r"index 10000 is outside 'val' \(0..9999\)"):
        dataset[10_000]
    with pytest.raises(InputError, match=r"MNIST needs .*t10k-images-idx3-ubyte.gz"):
        MnistShapes("test", shapes=1, path=tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="needs MNIST")
def test_a_published_digit_is_seen() -> None:
    """The first to train on is a five, of 166 grey and white pixels."""
    dataset = MnistShapes("train", shapes=1, path=REAL)
    assert dataset.draw_labels([0])[0, :10].argmax() == 5
    _, instances, classes = dataset[0]
    assert classes is not None
    assert (classes[instances == 1] == 6).all()
    assert 20 < (instances == 1).sum() <= 166
