"""Maps at another size, against the libraries that others resized them with."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate import resize_labels
from rotating_features.evaluate.resize import center, resize_nearest, short_side, sources

SIDE = st.integers(1, 90)


def draw(h: int, w: int, *, k: int = 7, b: int = 2) -> torch.Tensor:
    return torch.randint(-1, k, (b, h, w), generator=torch.Generator().manual_seed(h * w))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@given(SIDE, SIDE, SIDE, SIDE)
def test_nearest_is_pytorchs(mode, h: int, w: int, height: int, width: int) -> None:
    x = draw(h, w)
    theirs = F.interpolate(x.unsqueeze(1).float(), (height, width), mode=mode).squeeze(1).long()
    assert torch.equal(resize_nearest(x, (height, width), mode), theirs)


@given(SIDE, SIDE, SIDE, SIDE)
def test_nearest_is_pillows(h: int, w: int, height: int, width: int) -> None:
    x = draw(h, w, b=1)
    picture = Image.fromarray(x[0].numpy().astype(np.uint8))
    theirs = np.asarray(picture.resize((width, height), Image.Resampling.NEAREST))
    ours = resize_nearest(x, (height, width), "pillow")[0]
    assert np.array_equal(ours.numpy().astype(np.uint8), theirs)


def test_corners_and_centres_differ_by_half_a_pixel() -> None:
    assert sources(8, 4).tolist() == [0, 2, 4, 6]
    assert sources(8, 4, "nearest-exact").tolist() == [1, 3, 5, 7]
    assert sources(8, 4, "pillow").tolist() == [1, 3, 5, 7]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.bool])
def test_the_type_is_kept(dtype: torch.dtype) -> None:
    assert resize_nearest(torch.ones(2, 3, dtype=dtype), (5, 4)).dtype == dtype


@given(st.integers(1, 9), st.integers(1, 9), st.integers(9, 40), st.integers(9, 40))
def test_bilinear_labels_are_those_of_the_largest_plane(h: int, w: int, high: int, wide: int):
    labels = draw(h, w).clamp(min=0)
    planes = torch.stack([(labels == j).float() for j in range(7)], 1)
    wanted = F.interpolate(planes, (high, wide), mode="bilinear").argmax(1)
    assert torch.equal(resize_labels(labels, (high, wide), "bilinear"), wanted)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_labels_of_the_right_size_stay(mode) -> None:
    labels = draw(5, 6).clamp(min=0)
    assert torch.equal(resize_labels(labels, (5, 6), mode), labels)


def test_planes_of_negative_labels_are_refused() -> None:
    with pytest.raises(InputError, match="at least 0, got -1"):
        resize_labels(torch.full((1, 2, 2), -1), (4, 4), "bilinear")


@given(st.integers(1, 600), st.integers(1, 600), st.integers(1, 400))
def test_the_short_side_is_as_asked_and_the_shape_is_kept(h: int, w: int, side: int) -> None:
    height, width = short_side(h, w, side)
    assert min(height, width) == side
    assert abs(height * w - width * h) < max(h, w)  # off by less than a pixel of the longer side
    assert max(height, width) == int(side * max(h, w) / min(h, w))


@given(st.integers(0, 50), st.integers(1, 50))
def test_a_crop_is_in_the_middle(more: int, side: int) -> None:
    crop = center(side + more, side)
    assert crop.stop - crop.start == side
    assert abs(crop.start - (side + more - crop.stop)) <= 1
    assert crop.start >= 0
