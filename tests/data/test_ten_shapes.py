"""10Shapes: which shapes are in an image, and what tells them apart."""

import colorsys
import itertools

import numpy as np
import pytest
import torch

from rotating_features._check import InputError
from rotating_features.data import BACKGROUND, IGNORE, SPLITS
from rotating_features.data.four_shapes import four_stencils
from rotating_features.data.stencils import outline
from rotating_features.data.ten_shapes import TenShapes, ten_stencils

SIZES = [
    (13, 13),
    (9, 17),
    (9, 17),
    (23, 23),
    (17, 9),
    (17, 9),
    (19, 19),
    (39, 39),
    (11, 11),
    (7, 7),
]


def seen(instances: torch.Tensor) -> torch.Tensor:
    """Which of the labels 1 to 10 are seen in each image."""
    return torch.stack([(instances == k).flatten(1).any(1) for k in range(1, 11)], dim=1)


def test_sizes_are_those_of_the_paper() -> None:
    assert [len(TenShapes(split)) for split in SPLITS] == [200_000, 10_000, 10_000]
    assert [stencil.shape for stencil in ten_stencils(23)] == SIZES
    smaller = ten_stencils(11)
    assert (smaller[3].shape, smaller[7].shape) == ((11, 11), (19, 19))


def test_the_first_four_shapes_are_those_of_4shapes() -> None:
    for ours, theirs in zip(ten_stencils(23), four_stencils(23), strict=False):
        assert np.array_equal(ours, theirs)


def test_triangles_point_up_down_left_and_right() -> None:
    _, up, down, _, left, right, _, _, solid, _ = ten_stencils(23)
    for stencil, tip in (
        (up, up[0]),
        (down, down[-1]),
        (left, left[:, 0]),
        (right, right[:, -1]),
        (solid, solid[-1]),
    ):
        assert tip.sum() == 1
        assert tip[len(tip) // 2]
        assert stencil.sum() == (71 if stencil is solid else up.sum())


def test_all_but_the_last_two_are_outlines() -> None:
    *outlines, triangle, square = ten_stencils(23)
    assert all(np.array_equal(outline(stencil), stencil) for stencil in outlines)
    assert square.all()
    assert (np.diff(np.pad(triangle, ((0, 0), (1, 1))).astype(int)) != 0).sum() == 2 * 11  # no hole


@pytest.mark.parametrize("from_zero", [True, False])
@pytest.mark.parametrize("shapes", [2, 7, 10])
def test_each_shape_has_its_own_colour_and_depth(shapes: int, from_zero: bool) -> None:
    dataset = TenShapes("val", shapes=shapes, seed=2, depth_from_zero=from_zero)
    image, instances, _ = dataset.draw(range(100))
    looks = [image.movedim(1, -1)[instances == k].unique(dim=0) for k in range(1, shapes + 1)]
    assert all(len(look) == 1 for look in looks)
    hue = np.array([colorsys.rgb_to_hsv(*look[0, :3].tolist())[0] for look in looks])
    spread = (hue - hue[0] - np.arange(shapes) / shapes + 0.5) % 1 - 0.5
    np.testing.assert_allclose(spread, 0, atol=1e-5)
    depth = [look[0, 3].item() for look in looks]
    steps = np.linspace(0, 1, shapes) if from_zero else np.linspace(0, 1, shapes + 1)[1:]
    np.testing.assert_allclose(depth, steps, atol=1e-6)


def test_colours_are_those_of_the_seed_in_all_splits() -> None:
    def looks(split, seed: int) -> set[tuple[float, ...]]:
        pixels = TenShapes(split, seed=seed).draw(range(20)).image.movedim(1, -1).flatten(0, 2)
        return set(map(tuple, pixels.unique(dim=0).tolist()))

    assert looks("train", 0) == looks("val", 0) == looks("test", 0)
    assert looks("train", 0) != looks("train", 1)


def test_every_image_may_have_hues_of_its_own() -> None:
    """Ten of them, evenly spaced, on the same shapes with the same depths."""
    usual = TenShapes("val").draw(range(30))
    own = TenShapes("val", hue_offset="image").draw(range(30))
    assert torch.equal(own.instances, usual.instances)
    assert torch.equal(own.image[:, 3], usual.image[:, 3])
    first = []
    for image, instances in zip(own.image, own.instances, strict=True):
        looks = {
            k: image[:3].movedim(0, -1)[instances == k][0].tolist()
            for k in instances.unique().tolist()
            if k > BACKGROUND
        }
        hue = [10 * colorsys.rgb_to_hsv(*look)[0] - k for k, look in looks.items()]
        np.testing.assert_allclose([(h - hue[0] + 5) % 10 for h in hue], 5, atol=1e-3)
        first.append(round(hue[0] % 10, 3))
    assert len(set(first)) == 30


@pytest.mark.parametrize("shapes", [2, 3, 9])
def test_n_shapes_has_the_first_n_in_every_image(shapes: int) -> None:
    found = seen(TenShapes("train", shapes=shapes).draw(range(100)).instances)
    assert not found[:, shapes:].any()
    assert found[:, :shapes].double().mean() > 0.99  # few are wholly covered


def test_every_pair_of_objects_is_as_likely() -> None:
    """Two shapes never hide each other wholly, so all that is there is seen."""
    instances = TenShapes("train", objects=2).draw(range(4_500)).instances
    found = seen(instances)
    assert (found.sum(1) == 2).all()
    counts = np.array(
        [int((found[:, a] & found[:, b]).sum()) for a, b in itertools.combinations(range(10), 2)]
    )
    assert (np.abs(counts - 100) < 5 * 100**0.5).all()
    assert 15 < ((counts - 100) ** 2 / 100).sum() < 95  # chi-square of 44 degrees of freedom


@pytest.mark.parametrize("objects", [3, 6, 9])
def test_every_shape_is_as_likely(objects: int) -> None:
    instances = TenShapes("train", objects=objects, ring_diameter=11).draw(range(3_000)).instances
    found = seen(instances)
    assert (found.sum(1) <= objects).all()
    assert found.sum(1).double().mean() > 0.99 * objects
    np.testing.assert_allclose(found.double().mean(0), objects / 10, atol=0.05)


def test_fewer_objects_are_some_of_the_more() -> None:
    """A shape keeps its place, colour and depth whatever is drawn beside it."""
    few, many, whole = (TenShapes("test", objects=m).draw(range(50)) for m in (3, 6, None))
    shown = [few.instances != BACKGROUND, many.instances != BACKGROUND]
    assert not (shown[0] & ~shown[1]).any()
    assert not (shown[1] & (whole.instances == BACKGROUND)).any()
    alone = (few.instances > 0) & (whole.instances == few.instances)
    assert alone.any()
    assert torch.equal(few.image.movedim(1, -1)[alone], whole.image.movedim(1, -1)[alone])


def test_all_ten_of_ten_is_the_whole_dataset() -> None:
    chosen, whole = (TenShapes("test", objects=m).draw(range(20)) for m in (10, None))
    assert torch.equal(chosen.image, whole.image)
    assert torch.equal(chosen.instances, whole.instances)
    assert (whole.instances == IGNORE).any()


@pytest.mark.parametrize("shapes", [1, 11, 2.5])
def test_other_numbers_of_shapes_are_explained(shapes) -> None:
    with pytest.raises(InputError, match=f"shapes should be .* from 2 to 10, got {shapes}"):
        TenShapes("train", shapes=shapes)


@pytest.mark.parametrize("objects", [0, 1, 6, 2.5])
def test_other_numbers_of_objects_are_explained(objects) -> None:
    with pytest.raises(InputError, match=f"from 2 to shapes=5, or None .*, got {objects}"):
        TenShapes("train", shapes=5, objects=objects)
