"""Image files as what the model and the overlay need of them, in little memory."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from rotating_features.data.decode import open_image
from rotating_features.data.memory import Memory, count_pixels

SHOWN = 2048
"""Longest side of an overlay. It is for looking at; a label map has the image's size."""
STRIP = 2**17
"""Pixels that are floats at a time: what a cache holds."""


class Loaded(NamedTuple):
    """An image, ready for the model."""

    size: tuple[int, int]  # height and width it has on disk, once upright
    x: Tensor  # (c, h, w) float32 in [0, 1], the model's size
    picture: Image.Image  # at most SHOWN wide and high


def load_image(path: Path, channels: int, size: tuple[int, int], memory: Memory) -> Loaded:
    """The image in a file, decoded once and made small at once.

    Raises:
        InputError: If it cannot be read.
    """
    with memory.take(count_pixels(path)):
        picture = open_image(path)
        w, h = picture.size
        x = fit(picture, channels, size)
        if max(w, h) > SHOWN:
            shown = (max(1, w * SHOWN // max(w, h)), max(1, h * SHOWN // max(w, h)))
            picture = picture.resize(shown, Image.Resampling.BILINEAR, reducing_gap=2.0)
        return Loaded((h, w), x, picture)


def fit(picture: Image.Image, channels: int, size: tuple[int, int]) -> Tensor:
    """The picture at the model's size, (c, *size), its sides stretched; as ``discover`` does it.

    Every row is made narrow before the columns are made short, as in ``interpolate`` itself. So
    it may be done strip by strip, and the result is the same to the bit: floats of a whole
    photograph would take four times its room.
    """
    w, h = picture.size
    rows = max(1, STRIP // w)
    narrow = torch.empty(1, channels, h, size[1])  # one piece, for many would hold on to more
    for top in range(0, h, rows):
        strip = picture.crop((0, top, w, min(h, top + rows)))
        narrow[:, :, top : top + rows] = _resize(_as_floats(strip, channels), width=size[1])
    return _resize(narrow, height=size[0]).clamp_(0, 1).squeeze(0)


def _as_floats(picture: Image.Image, channels: int) -> Tensor:
    """As ``as_batch``, but for pictures known to be RGB, whose values need no look."""
    pixels = np.array(picture.convert("L") if channels == 1 else picture)
    return (
        torch.from_numpy(pixels).view(1, *pixels.shape[:2], channels).movedim(-1, 1).float() / 255
    )


def _resize(x: Tensor, *, height: int | None = None, width: int | None = None) -> Tensor:
    size = height or x.shape[-2], width or x.shape[-1]
    if x.shape[-2:] == size:
        return x
    return F.interpolate(x, size, mode="bilinear", antialias=True)
