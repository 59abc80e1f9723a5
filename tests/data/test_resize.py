import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.data.resize import (
    How,
    center_crop,
    resize_nearest,
    resize_short,
    short_size,
    sources,
)

SIZES = st.integers(1, 60)


def draw(h: int, w: int, *, b: int = 2) -> torch.Tensor:
    return torch.randint(-1, 7, (b, h, w), generator=torch.Generator().manual_seed(h * w))


@given(SIZES, SIZES, SIZES)
def test_the_shorter_side_gets_its_length_and_the_longer_follows(h: int, w: int, side: int) -> None:
    tall, wide = short_size((h, w), side)
    assert min(tall, wide) == side
    assert abs(tall * w - wide * h) < max(h, w)  # off by less than a pixel


def test_the_nearest_pixel_of_an_image_is_pytorchs() -> None:
    image = torch.randint(256, (3, 30, 41), dtype=torch.uint8)
    wanted = F.interpolate(image[None].float(), (20, 27), mode="nearest")[0]
    assert torch.equal(resize_short(image, 20, "nearest").float(), wanted)


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
def test_images_are_resized_as_pillow_does(how: How) -> None:
    image = torch.randint(256, (3, 30, 41), dtype=torch.uint8)
    picture = Image.fromarray(image.permute(1, 2, 0).numpy())
    wanted = np.asarray(picture.resize((27, 20), Image.Resampling[how.upper()]))
    assert np.array_equal(resize_short(image, 20, how).permute(1, 2, 0).numpy(), wanted)


@given(SIZES, SIZES, SIZES)
def test_labels_are_resized_like_images_and_none_is_made_up(h: int, w: int, side: int) -> None:
    labels = torch.randint(-1, 255, (h, w))
    resized = resize_short(labels, side, "nearest")
    assert resized.dtype == torch.int64
    image = (labels % 256).to(torch.uint8).expand(3, -1, -1)
    assert torch.equal(resize_short(image, side, "nearest")[0].long(), resized % 256)
    assert set(resized.unique().tolist()) <= set(labels.unique().tolist())


def test_labels_cannot_be_mixed() -> None:
    with pytest.raises(InputError, match="only be resized by 'nearest', got 'bilinear'"):
        resize_short(torch.zeros(4, 4).long(), 2, "bilinear")


def test_wrong_values_are_explained() -> None:
    image = torch.zeros(3, 4, 4, dtype=torch.uint8)
    with pytest.raises(InputError, match=r"how should be one of .*'bilinear'.*got 'cubic'"):
        resize_short(image, 2, "cubic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 1 pixel, got 0"):
        resize_short(image, 0, "nearest")


@given(SIZES, SIZES, st.data())
def test_as_much_is_cut_off_on_either_side(h: int, w: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, min(h, w)))
    x = torch.arange(h * w).view(h, w)
    crop = center_crop(x, size)
    top, left = divmod(int(crop[0, 0]), w)
    assert crop.shape == (size, size)
    assert torch.equal(crop, x[top : top + size, left : left + size])
    assert abs(h - size - 2 * top) <= 1
    assert abs(w - size - 2 * left) <= 1


def test_a_crop_larger_than_the_image_is_explained() -> None:
    with pytest.raises(InputError, match=r"crop of 5 pixels should fit .* got one of 4 x 6"):
        center_crop(torch.zeros(3, 4, 6), 5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@given(SIZES, SIZES, SIZES, SIZES)
def test_nearest_is_pytorchs(mode, h: int, w: int, height: int, width: int) -> None:
    x = draw(h, w)
    theirs = F.interpolate(x.unsqueeze(1).float(), (height, width), mode=mode).squeeze(1).long()
    assert torch.equal(resize_nearest(x, (height, width), mode), theirs)


@given(SIZES, SIZES, SIZES, SIZES)
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
