"""Blocks say of a label map what its pixels say."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from rotating_features.evaluate.smooth import mode_filter
from rotating_features.segment.blocks import SMOOTHED, make_blocks

SIDES = st.integers(1, 40)


def make(grid: tuple[int, int], size: tuple[int, int], *, smooth: bool = False):
    labels, uncertainty = torch.randint(0, 5, grid), torch.rand(grid)
    return labels, uncertainty, make_blocks(labels, uncertainty, size, smooth=smooth)


@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES))
def test_pixels_take_the_nearest_label(grid: tuple[int, int], size: tuple[int, int]) -> None:
    labels, _, blocks = make(grid, size)
    assert blocks.paint().tolist() == F.interpolate(labels[None, None].float(), size)[0, 0].tolist()
    assert blocks.paint().dtype == np.uint8


@pytest.mark.parametrize("smooth", [False, True])
@given(grid=st.tuples(SIDES, SIDES), size=st.tuples(SIDES, SIDES))
def test_objects_are_described_as_their_pixels_are(decode, grid, size, smooth: bool) -> None:
    _, uncertainty, blocks = make(grid, size, smooth=smooth)
    painted, found = blocks.paint(), blocks.describe()
    doubt = F.interpolate(uncertainty[None, None], size)[0, 0].numpy()
    if smooth:
        doubt = F.interpolate(uncertainty[None, None], size, mode="bilinear")[0, 0].numpy()
    assert found["labels"] == [label for label in np.unique(painted).tolist() if label]
    assert found["objects"] == len(found["labels"])
    for i, label in enumerate(found["labels"]):
        mask = painted == label
        rows, cols = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = [cols[0], rows[0], cols[-1] - cols[0] + 1, rows[-1] - rows[0] + 1]
        assert found["areas"][i] == mask.sum()
        assert found["boxes"][i] == [int(side) for side in box]
        assert found["uncertainty"][i] == pytest.approx(doubt[mask].mean(), abs=1e-4)
        assert decode(found["masks"][i], *size).tolist() == mask.tolist()


def test_smoothing_is_what_the_mode_filter_does_a_block_wide() -> None:
    labels, _, blocks = make((14, 14), (320, 320), smooth=True)
    enlarged = F.interpolate(labels[None, None].float(), (320, 320))[0].long()
    assert blocks.paint().tolist() == mode_filter(enlarged, radius=22)[0].tolist()


def test_an_image_of_any_size_is_smoothed_at_a_bounded_one() -> None:
    """And enlarged from there, so it is the smoothing of the smaller one, magnified."""
    labels, uncertainty, blocks = make((14, 14), (3000, 4000), smooth=True)
    assert blocks.labels.shape == (512, 683)
    smaller = make_blocks(labels, uncertainty, (512, 683), smooth=True)
    assert blocks.labels.tolist() == smaller.labels.tolist()
    assert blocks.paint().shape == (3000, 4000)


def test_a_very_long_image_is_smoothed_as_well() -> None:
    *_, blocks = make((8, 8), (600, 60_000), smooth=True)
    assert blocks.labels.shape[1] <= SMOOTHED[1]
    assert blocks.paint().shape == (600, 60_000)
