"""Images of every kind become the same tensor."""

import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from rotating_features._check import InputError
from rotating_features.evaluate.images import as_batch

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 7, 3), dtype=np.uint8)
COLOUR = torch.from_numpy(PIXELS).movedim(-1, 0).float() / 255  # (c, h, w)
GREY = torch.from_numpy(PIXELS[..., 0]).float() / 255  # (h, w)
FLAT = PIXELS[..., 0]


def palette_picture() -> Image.Image:
    """The grey picture with its values as indices of a palette turned upside down."""
    picture = Image.fromarray(255 - FLAT).convert("P")
    picture.putpalette([255 - value // 3 for value in range(768)])
    return picture


COLOUR_DOORS = {
    "torch chw": COLOUR,
    "torch chw uint8": torch.from_numpy(PIXELS).movedim(-1, 0),
    "torch chw double": COLOUR.double(),
    "numpy hwc uint8": PIXELS,
    "numpy hwc float32": PIXELS.astype(np.float32) / np.float32(255),
    "numpy hwc float64": PIXELS / 255,
    "numpy hwc with gaps in memory": np.repeat(PIXELS, 2, axis=1)[:, ::2],
    "pil": Image.fromarray(PIXELS),
    "pil rgba": Image.fromarray(PIXELS).convert("RGBA"),
}
GREY_DOORS = {
    "torch hw": GREY,
    "torch chw": GREY[None],
    "torch hw uint8": torch.from_numpy(FLAT),
    "numpy hw uint8": FLAT,
    "numpy hw float32": FLAT.astype(np.float32) / np.float32(255),
    "numpy hwc": FLAT[..., None],
    "pil": Image.fromarray(FLAT),
    "pil palette": palette_picture(),
}


@pytest.fixture
def every_warning() -> None:
    """PyTorch shows some warnings once in a process, so that a test may miss them."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.parametrize("door", COLOUR_DOORS)
def test_a_colour_picture_is_the_same_through_every_door(door: str) -> None:
    x, single = as_batch(COLOUR_DOORS[door], channels=3)
    assert single
    torch.testing.assert_close(x, COLOUR[None], rtol=0, atol=1e-7)


@pytest.mark.parametrize("door", GREY_DOORS)
def test_a_grey_picture_is_the_same_through_every_door(door: str) -> None:
    x, single = as_batch(GREY_DOORS[door], channels=1)
    assert single
    torch.testing.assert_close(x, GREY[None, None], rtol=0, atol=1e-7)


@pytest.mark.parametrize("door", COLOUR_DOORS)
@pytest.mark.parametrize("length", [1, 3])
def test_a_list_is_a_batch(door: str, length: int) -> None:
    x, single = as_batch([COLOUR_DOORS[door]] * length, channels=3)
    assert not single
    torch.testing.assert_close(x, COLOUR.expand(length, -1, -1, -1), rtol=0, atol=1e-7)


def test_a_list_may_mix_all_kinds() -> None:
    x, _ = as_batch(list(GREY_DOORS.values()), channels=1)
    torch.testing.assert_close(x, GREY.expand_as(x), rtol=0, atol=1e-7)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("kind", ["torch bchw", "numpy bhwc uint8", "numpy bhwc float"])
def test_a_fourth_axis_is_the_batch(kind: str, length: int) -> None:
    array = np.stack([PIXELS] * length)
    batch = {
        "torch bchw": torch.stack([COLOUR] * length),
        "numpy bhwc uint8": array,
        "numpy bhwc float": array / 255,
    }[kind]
    x, single = as_batch(batch, channels=3)
    assert not single
    torch.testing.assert_close(x, COLOUR.expand(length, -1, -1, -1), rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_grey_images_may_lack_the_channel_axis_in_a_batch(kind: str) -> None:
    batch = torch.stack([GREY, GREY]) if kind == "torch" else np.stack([FLAT, FLAT])
    x, single = as_batch(batch, channels=1)
    assert not single
    torch.testing.assert_close(x, GREY.expand(2, 1, -1, -1), rtol=0, atol=1e-7)


def test_a_coloured_picture_is_shown_in_grey_to_a_grey_model() -> None:
    x, _ = as_batch(Image.fromarray(PIXELS), channels=1)
    grey = np.asarray(Image.fromarray(PIXELS).convert("L"))
    torch.testing.assert_close(x[0, 0], torch.tensor(grey) / 255)


def test_a_mask_is_black_and_white() -> None:
    x, _ = as_batch(GREY > 0.5, channels=1)
    assert torch.equal(x[0, 0], (GREY > 0.5).float())


@pytest.mark.usefixtures("every_warning")
@pytest.mark.parametrize("kind", ["pil", "numpy"])
def test_pictures_that_cannot_be_written_to_raise_no_warning(kind: str) -> None:
    array = PIXELS.copy()
    array.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_batch(Image.fromarray(PIXELS) if kind == "pil" else array, channels=3)


@pytest.mark.parametrize("image", [COLOUR, PIXELS / 255], ids=["torch", "numpy"])
def test_the_callers_image_is_left_alone(image) -> None:
    kept = image.clone() if isinstance(image, torch.Tensor) else image.copy()
    as_batch(image, channels=3)
    assert (image == kept).all()


WRONG = {
    "nan": (GREY.where(GREY < 0.9, torch.nan), 1, "finite numbers, got .* nan or infinite"),
    "infinity": (GREY.where(GREY < 0.9, torch.inf), 1, "finite numbers"),
    "negative": (GREY - 0.5, 1, "at least 0, got a minimum of -0"),
    "0 to 255 as float": (GREY * 255, 1, "Divide by 255, or pass uint8"),
    "int64": (torch.from_numpy(FLAT).long(), 1, "uint8, bool or float, got torch.int64"),
    "numpy int64": (FLAT.astype(np.int64), 1, "uint8, bool or float, got torch.int64"),
    "grey for colour": (GREY, 3, r"3 channels, got 1 \(shape"),
    "colour with depth": (torch.zeros(4, 6, 7), 3, r"3 channels, got 4 \(shape"),
    "numpy colour for grey": (PIXELS, 1, r"1 channel, got 3 \(shape"),
    "torch batch of colour for grey": (COLOUR[None], 1, r"1 channel, got 3 \(shape"),
    "channels last in torch": (COLOUR.movedim(0, -1), 3, r"3 channels, got 6"),
    "picture for many channels": (Image.fromarray(PIXELS), 4, "4 channels; pass a tensor"),
    "empty list": ([], 1, "at least one image"),
    "empty batch": (torch.zeros(0, 1, 6, 7), 1, "at least one image"),
    "no pixels": (torch.zeros(1, 0, 7), 1, "at least one image with pixels"),
    "mixed sizes": ([GREY, GREY[:5]], 1, r"one size, got .*Resize"),
    "batches in a list": ([COLOUR[None]], 3, "single images"),
    "one axis": (GREY[0], 1, r"2 axes \(grey\) or 3"),
    "five axes": (COLOUR[None, None], 3, "several of them 4"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_image_is_explained(name: str) -> None:
    images, channels, message = WRONG[name]
    with pytest.raises(InputError, match=f"(?s){message}"):
        as_batch(images, channels)


def test_what_is_no_image_at_all_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="tensor, an array or a picture, got <class 'int'>"):
        as_batch([3], channels=1)
