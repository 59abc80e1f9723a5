"""4Shapes in colours and with depth: the same places, other values."""

import colorsys
import itertools

import numpy as np
import pytest
import torch

from rotating_features._check import InputError
from rotating_features.data import BACKGROUND, IGNORE, SPLITS, FourShapes, Sample
from rotating_features.data.four_shapes import ColoredFourShapes
from rotating_features.data.shapes import hues

LABELS = (1, 2, 3, 4)


def drawn_colors(batch: Sample, palette: np.ndarray) -> torch.Tensor:
    """Which colour of ``palette`` each object has, (4, b), and -1 where it is not seen."""
    numbers = []
    for label in LABELS:
        mask = (batch.instances == label).flatten(1)
        pixels = batch.image[:, :3].flatten(2)[range(len(mask)), :, mask.int().argmax(1)]
        same = (pixels[:, None] == torch.from_numpy(palette)).all(2)
        assert (same.sum(1) == 1)[mask.any(1)].all()
        numbers.append(torch.where(mask.any(1), same.int().argmax(1), -1))
    return torch.stack(numbers)


@pytest.mark.parametrize("ring_diameter", [11, 23])
@pytest.mark.parametrize("depth", [False, True])
def test_objects_lie_where_those_of_4shapes_lie(depth: bool, ring_diameter) -> None:
    options = {"seed": 3, "ring_diameter": ring_diameter}
    colored = ColoredFourShapes("test", depth=depth, **options).draw(range(100))
    white = FourShapes("test", **options).draw(range(100))
    assert torch.equal(colored.instances, white.instances)
    assert torch.equal(colored.image[:, :3].amax(1, keepdim=True), white.image)


def test_depth_adds_a_channel_and_changes_nothing_else() -> None:
    rgb = ColoredFourShapes("test").draw(range(50))
    rgbd = ColoredFourShapes("test", depth=True).draw(range(50))
    assert (rgb.image.shape[1], rgbd.image.shape[1]) == (3, 4)
    assert torch.equal(rgb.image, rgbd.image[:, :3])


@pytest.mark.parametrize("colors", [1, 2, 3, 4, 5])
def test_all_splits_have_the_same_evenly_spaced_hues(colors: int) -> None:
    sets = []
    for split in SPLITS:
        image, instances, _ = ColoredFourShapes(split, colors=colors, seed=5).draw(range(100))
        sets.append(image.movedim(1, -1)[instances != BACKGROUND].unique(dim=0))
    assert all(torch.equal(found, sets[0]) for found in sets)
    hsv = [colorsys.rgb_to_hsv(*color) for color in sets[0].tolist()]
    assert len(hsv) == colors
    hue = np.sort([h for h, _, _ in hsv])
    np.testing.assert_allclose(np.diff([*hue, hue[0] + 1]), 1 / colors, atol=1e-5)
    np.testing.assert_allclose([(s, v) for _, s, v in hsv], 1, atol=1e-6)


def test_another_seed_has_another_hue() -> None:
    images = [ColoredFourShapes("val", colors=1, seed=seed)[0].image for seed in range(5)]
    assert len({tuple(image.amax((1, 2)).tolist()) for image in images}) == 5


def test_objects_draw_their_colours_independently() -> None:
    """All pairs of colours are about as frequent, for every pair of objects and of images."""
    dataset = ColoredFourShapes("train", colors=3, seed=4)
    drawn = drawn_colors(dataset.draw(range(4_500)), hues(3, 4))
    pairs = [*itertools.combinations(drawn, 2), *((row[:-1], row[1:]) for row in drawn)]
    for a, b in pairs:
        both = (a >= 0) & (b >= 0)
        counts = torch.bincount(3 * a[both] + b[both], minlength=9).double()
        expected = counts.sum() / 9
        assert ((counts - expected).abs() < 5 * expected.sqrt()).all()


def test_colours_do_not_depend_on_places() -> None:
    """The square has each colour as often in the upper half as in the lower."""
    batch = ColoredFourShapes("train", colors=3, ring_diameter=11).draw(range(3_000))
    rows = (batch.instances == 1).any(2)
    upper = rows[:, 16:].sum(1) < rows[:, :16].sum(1)
    square = drawn_colors(batch, hues(3, 0))[0]
    for color in range(3):
        assert 0.4 < upper[square == color].double().mean() < 0.6


@pytest.mark.parametrize(
    ("from_zero", "wanted"), [(True, [0, 1 / 3, 2 / 3, 1]), (False, [0.25, 0.5, 0.75, 1])]
)
def test_each_shape_has_its_own_depth(from_zero: bool, wanted: list[float]) -> None:
    dataset = ColoredFourShapes("train", depth=True, depth_from_zero=from_zero)
    image, instances, _ = dataset.draw(range(200))
    for label, depth in zip(LABELS, wanted, strict=True):
        np.testing.assert_allclose(image[:, 3][instances == label], depth, atol=1e-6)
    assert image[:, 3][instances == BACKGROUND].max() == 0
    assert image[:, 3][instances == IGNORE].min() > 0.3  # the second object, at least, is in front


@pytest.mark.parametrize("colors", [0, 6, 2.5])
def test_other_numbers_of_colours_are_explained(colors) -> None:
    with pytest.raises(InputError, match=f"colors should be .* from 1 to 5, got {colors}"):
        ColoredFourShapes("train", colors=colors)


def test_every_image_may_have_evenly_spaced_hues_of_its_own() -> None:
    """And all else is as it was: places, depths and which object has which of the colours."""
    options = {"colors": 3, "depth": True, "seed": 4}
    usual = ColoredFourShapes("val", **options).draw(range(300))
    own = ColoredFourShapes("val", **options, hue_offset="image").draw(range(300))
    assert torch.equal(own.instances, usual.instances)
    assert torch.equal(own.image[:, 3], usual.image[:, 3])
    offsets = []
    for image, instances in zip(own.image, own.instances, strict=True):
        colors = image[:3].movedim(0, -1)[instances != BACKGROUND].unique(dim=0)
        hue = [colorsys.rgb_to_hsv(*color)[0] * 3 for color in colors.tolist()]
        assert len(hue) <= 3
        np.testing.assert_allclose([(h - hue[0] + 0.5) % 1 for h in hue], 0.5, atol=1e-4)
        offsets.append(hue[0] % 1)
    counts = np.histogram(offsets, 10, (0, 1))[0]
    assert (np.abs(counts - 30) < 5 * 30**0.5).all()


def test_the_hues_of_anything_else_are_explained() -> None:
    with pytest.raises(InputError, match=r"hue_offset .*'dataset', 'image'.*got 'split'"):
        ColoredFourShapes("train", hue_offset="split")  # type: ignore[arg-type]
