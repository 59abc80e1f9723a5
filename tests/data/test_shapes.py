"""What all datasets of shapes promise: the same sample anywhere, and labels that fit the image."""

import colorsys
import hashlib
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.data import BACKGROUND, IGNORE, SPLITS
from rotating_features.data.four_shapes import ColoredFourShapes, FourShapes, four_stencils
from rotating_features.data.shapes import equal_depths, hues, paint
from rotating_features.data.stencils import placements
from rotating_features.data.ten_shapes import TenShapes, ten_stencils

INDEX = st.integers(0, 9_999)
MAKE = {
    "4shapes": FourShapes,
    "rgb": ColoredFourShapes,
    "rgb-d": lambda split, **options: ColoredFourShapes(split, depth=True, **options),
    "10shapes": TenShapes,
    "3shapes": lambda split, **options: TenShapes(split, shapes=3, **options),
    "6 of 10": lambda split, **options: TenShapes(split, objects=6, **options),
}
CHECKSUM = {
    "rgb": "0d9c5c42980276dfd544b2b60b55c579",
    "rgb-d": "0134e41c19ab0e1a2e84ca6776bb5ba8",
    "10shapes": "27e4091f02a15406aff299ff6bc3d82b",
    "3shapes": "6184cc832d2518dbdc5fda936c1e754d",
    "6 of 10": "67eb79ac209f56003a4bf466ddae2952",
}


def find(labels: np.ndarray, stencils: tuple[np.ndarray, ...], side: int) -> list[np.ndarray]:
    """Masks of all places where each object of one image may be, told from its labels alone.

    At such a place the stencil holds all pixels of that label, and others only of the overlap.
    """
    found = []
    for label, stencil in enumerate(stencils, start=1):
        ways = placements(stencil, side).astype(np.float32)
        own, allowed = labels == label, (labels == label) | (labels == IGNORE)
        holds_own = ways @ own.astype(np.float32) == own.sum()
        stays_within = ways @ allowed.astype(np.float32) == stencil.sum()
        found.append(ways[holds_own & stays_within] > 0)
    return found


@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=20)
@given(
    indices=st.lists(INDEX, min_size=1, max_size=6),
    split=st.sampled_from(SPLITS),
    seed=st.integers(-(10**9), 10**9),
)
def test_a_sample_depends_on_seed_split_and_index_alone(name: str, indices, split, seed) -> None:
    batch = MAKE[name](split, seed=seed).draw(indices)
    other = MAKE[name](split, seed=seed)
    for place, index in sorted(enumerate(indices), key=lambda pair: pair[1]):  # another order
        image, instances, _ = other[index]
        assert torch.equal(image, batch.image[place])
        assert torch.equal(instances, batch.instances[place])


@pytest.mark.parametrize("name", CHECKSUM)
def test_the_dataset_never_changes(name: str) -> None:
    images, instances, _ = MAKE[name]("test").draw([0, 1, 2, 9_999])
    whole = (images * 65_535).round().numpy().astype(np.uint16)  # a last bit may differ
    found = hashlib.sha256(whole.tobytes() + instances.numpy().astype(np.int8).tobytes())
    assert found.hexdigest()[:32] == CHECKSUM[name]


@pytest.mark.parametrize("name", MAKE)
def test_splits_and_seeds_share_no_images(name: str) -> None:
    datasets = [MAKE[name](split, seed=seed) for split in SPLITS for seed in range(3)]
    drawn = torch.cat([dataset.draw(range(50)).instances for dataset in datasets])
    assert len(drawn.unique(dim=0)) == len(drawn)


@pytest.mark.parametrize("name", MAKE)
def test_a_sample_has_the_promised_types(name: str) -> None:
    dataset = MAKE[name]("train")
    image, instances, classes = dataset[3]
    assert image.shape == (dataset.channels, *dataset.size)
    assert instances.shape == dataset.size
    assert (image.dtype, instances.dtype, classes) == (torch.float32, torch.int64, None)
    assert 0 <= image.min() <= image.max() <= 1


@pytest.mark.parametrize("name", MAKE)
def test_background_is_black_and_nothing_else_is(name: str) -> None:
    image, instances, _ = MAKE[name]("val").draw(range(200))
    assert torch.equal(image.any(1), instances != BACKGROUND)


@pytest.mark.parametrize("name", ["rgb", "rgb-d", "10shapes"])
def test_objects_are_whole_and_the_later_one_is_seen(name: str) -> None:
    """Places are told from labels, and the picture is painted again from them."""
    dataset = MAKE[name]("val")
    stencils = ten_stencils(23) if name == "10shapes" else four_stencils(23)
    image, instances, _ = (x if x is None else x.numpy() for x in dataset.draw(range(40)))
    checked = 0
    for pixels, labels in zip(image.reshape(40, dataset.channels, -1), instances, strict=True):
        found = find(labels.ravel(), stencils, dataset.size[0])
        assert all(len(masks) for masks in found)
        if (
            any(len(masks) > 1 for masks in found)
            or not np.isin(range(1, 1 + len(found)), labels).all()
        ):
            continue  # too much of some object is hidden to know where it is
        checked += 1
        painted = np.zeros_like(pixels)
        for label, (mask,) in enumerate(found, start=1):
            colors = pixels[:, labels.ravel() == label]
            assert (colors == colors[:, :1]).all()
            painted[:, mask] = colors[:, :1]
        assert (painted == pixels).all()
    assert checked > 10


@pytest.mark.parametrize("name", MAKE)
def test_five_thousand_images_take_at_most_a_second_and_a_half(name: str) -> None:
    dataset = MAKE[name]("train")
    start = time.process_time()
    dataset.draw(np.arange(5_000))
    assert time.process_time() - start < 1.5


@pytest.mark.parametrize("name", MAKE)
def test_bad_splits_indices_and_rings_are_explained(name: str) -> None:
    with pytest.raises(InputError, match=r"\['train', 'val', 'test'\], got 'dev'"):
        MAKE[name]("dev")
    with pytest.raises(InputError, match="ring_diameter should be 23 or 11, got 22"):
        MAKE[name]("val", ring_diameter=22)
    for index in (-1, 10_000):
        with pytest.raises(IndexError, match=rf"index {index} is outside 'val' \(0..9999\)"):
            MAKE[name]("val")[index]


@given(st.integers(1, 12), st.integers(0, 10**9))
def test_hues_are_evenly_spaced_full_colours(count: int, seed: int) -> None:
    first = colorsys.rgb_to_hsv(*hues(count, seed)[0].tolist())[0]
    wanted = [colorsys.hsv_to_rgb((first + i / count) % 1, 1, 1) for i in range(count)]
    np.testing.assert_allclose(hues(count, seed), wanted, atol=1e-5)


def test_the_first_hue_may_be_any() -> None:
    first = [colorsys.rgb_to_hsv(*hues(1, seed)[0].tolist())[0] for seed in range(2_000)]
    counts, _ = np.histogram(first, bins=10, range=(0, 1))
    assert counts.min() > 140  # 200 wanted, give or take 13


@given(st.integers(2, 12), st.booleans())
def test_depths_have_equal_distances_and_end_at_1(count: int, from_zero: bool) -> None:
    steps = equal_depths(count, from_zero=from_zero)[:, 0]
    assert len(steps) == count
    assert steps[-1] == 1
    assert (steps[0] == 0) == from_zero
    np.testing.assert_allclose(np.diff(steps), 1 / (count - from_zero), atol=1e-6)


@pytest.mark.parametrize("alike", [True, False])
def test_paint_gives_each_pixel_the_values_of_its_object(alike: bool) -> None:
    rng = np.random.default_rng(0)
    front = rng.integers(0, 4, (5, 7), dtype=np.uint8)
    values = rng.random((3, 2) if alike else (5, 3, 2), dtype=np.float32)
    image = paint(front, values)
    for b, pixel in np.ndindex(front.shape):
        label = front[b, pixel]
        own = values if alike else values[b]
        assert image[b, :, pixel].tolist() == ([0, 0] if label == 0 else own[label - 1].tolist())
