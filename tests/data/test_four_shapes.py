"""4Shapes: every sample is what SPEC 2 says, wherever and whenever it is drawn."""

import hashlib
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.data import BACKGROUND, DATASETS, IGNORE, SPLITS, FourShapes
from rotating_features.data.stencils import outline, placements, ring, square, triangle

INDEX = st.integers(0, 9_999)
CHECKSUM = {
    ("train", 0, 23): "f3e42466ce3ee9a418d1e7d0583294cc",
    ("test", 0, 23): "44eb475404ad94bc322df0a22b5e7f6a",
    ("test", 1, 11): "ae4d258512ed99a7eaf1ecfcc0624c52",
}


def checksum(dataset: FourShapes) -> str:
    images, instances, _ = dataset.draw([0, 1, 2, 9_999])
    return hashlib.sha256(
        images.numpy().astype(np.uint8).tobytes() + instances.numpy().astype(np.int8).tobytes()
    ).hexdigest()[:32]


@given(st.lists(INDEX, min_size=1, max_size=6), st.sampled_from(SPLITS), st.integers(0, 10**9))
def test_a_sample_depends_on_seed_split_and_index_alone(indices, split, seed) -> None:
    batch = FourShapes(split, seed=seed).draw(indices)
    other = FourShapes(split, seed=seed)
    for place, index in sorted(enumerate(indices), key=lambda pair: pair[1]):  # another order
        image, instances, _ = other[index]
        assert torch.equal(image, batch.image[place])
        assert torch.equal(instances, batch.instances[place])


@pytest.mark.parametrize(("split", "seed", "ring_diameter"), CHECKSUM)
def test_the_dataset_never_changes(split, seed: int, ring_diameter) -> None:
    dataset = FourShapes(split, seed=seed, ring_diameter=ring_diameter)
    assert checksum(dataset) == CHECKSUM[split, seed, ring_diameter]


def test_splits_and_seeds_share_no_images() -> None:
    datasets = [FourShapes(split, seed=seed) for split in SPLITS for seed in range(3)]
    drawn = torch.cat([dataset.draw(range(50)).image for dataset in datasets])
    assert len(drawn.unique(dim=0)) == len(drawn)


def test_sizes_are_those_of_the_paper() -> None:
    assert [len(FourShapes(split)) for split in SPLITS] == [50_000, 10_000, 10_000]


def test_a_sample_has_the_promised_types() -> None:
    dataset = FourShapes("train")
    image, instances, _ = dataset[3]
    assert image.shape == (dataset.channels, *dataset.size)
    assert instances.shape == dataset.size == (32, 32)
    assert (image.dtype, instances.dtype) == (torch.float32, torch.int64)


def test_labels_are_background_overlap_or_one_of_four_objects() -> None:
    instances = FourShapes("train").draw(range(500)).instances
    assert instances.unique().tolist() == [IGNORE, BACKGROUND, 1, 2, 3, 4]


def test_the_image_is_white_exactly_where_something_is() -> None:
    image, instances, _ = FourShapes("train").draw(range(500))
    assert torch.equal(image.squeeze(1), (instances != BACKGROUND).float())


@pytest.mark.parametrize("ring_diameter", [11, 23])
def test_every_shape_lies_whole_inside_every_image(ring_diameter) -> None:
    """Each object, with some of the overlap, makes up its stencil at some place of the image."""
    up = outline(triangle(base=17, height=9))
    stencils = outline(square(13)), up, up[::-1], ring(ring_diameter)
    _, instances, _ = FourShapes("val", ring_diameter=ring_diameter).draw(range(200))
    labels = instances.flatten(1).numpy()
    overlap = labels == IGNORE
    for label, stencil in enumerate(stencils, start=1):
        ways = placements(stencil, 32).astype(np.float32)
        own, allowed = labels == label, (labels == label) | overlap
        holds_own = own.astype(np.float32) @ ways.T == own.sum(1, keepdims=True)
        stays_within = allowed.astype(np.float32) @ ways.T == stencil.sum()
        assert (holds_own & stays_within).any(1).all()


def test_shapes_without_overlap_have_the_sizes_of_the_paper() -> None:
    sizes = {1: (13, 13), 2: (9, 17), 3: (9, 17), 4: (11, 11)}
    alone = 0
    for labels in FourShapes("train", ring_diameter=11).draw(range(2_000)).instances:
        if (labels == IGNORE).any():
            continue
        alone += 1
        for label, size in sizes.items():
            rows, cols = (labels == label).nonzero(as_tuple=True)
            assert (rows.max() - rows.min() + 1, cols.max() - cols.min() + 1) == size
    assert alone > 10


def test_one_triangle_points_up_and_the_other_down() -> None:
    labels = FourShapes("train", ring_diameter=11).draw(range(2_000)).instances
    clear = labels[~(labels == IGNORE).flatten(1).any(1)]
    for label, tip in ((2, 0), (3, -1)):
        for image in clear == label:
            widths = image.sum(1)[image.any(1)]
            assert widths[tip] == 1


def test_the_square_may_be_at_every_height_and_every_width() -> None:
    """Its top left corner is read off the pictures in which nothing covers it."""
    labels = FourShapes("train", ring_diameter=11).draw(range(4_000)).instances
    whole = labels[(labels == 1).sum((1, 2)) == 120] == 1
    top = whole.any(2).int().argmax(1)
    left = whole.any(1).int().argmax(1)
    assert set(top.tolist()) == set(left.tolist()) == set(range(20))


def test_fifty_thousand_images_take_at_most_five_seconds() -> None:
    dataset = FourShapes("train")
    start = time.process_time()
    for first in range(0, len(dataset), 2_000):
        dataset.draw(np.arange(first, first + 2_000))
    assert time.process_time() - start < 5


def test_the_registry_knows_it() -> None:
    assert DATASETS["4shapes"] is FourShapes


def test_an_unknown_split_is_explained() -> None:
    with pytest.raises(InputError, match=r"\['train', 'val', 'test'\], got 'dev'"):
        FourShapes("dev")


def test_another_ring_is_explained() -> None:
    with pytest.raises(InputError, match="should be 23 or 11, got 22"):
        FourShapes("train", ring_diameter=22)


@pytest.mark.parametrize("index", [-1, 10_000])
def test_an_index_outside_is_explained(index: int) -> None:
    with pytest.raises(IndexError, match=rf"index {index} is outside 'val' \(0..9999\)"):
        FourShapes("val")[index]
