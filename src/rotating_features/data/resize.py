"""Images and labels of a common size: the shorter side resized, the middle cut out.

Where pixels are taken and not mixed, it is said whose "nearest" pixel is meant.
"""

from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError

How = Literal["nearest", "bilinear", "bicubic"]
HOWS: tuple[How, ...] = ("nearest", "bilinear", "bicubic")
FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}

Nearest = Literal["nearest", "nearest-exact", "pillow"]
"""Which pixel is nearest to pixel ``i`` of ``m``, out of ``n``: PyTorch's ``"nearest"`` takes
``floor(i * n / m)``, a corner; its ``"nearest-exact"`` takes ``floor((i + 0.5) * n / m)``, a
centre; Pillow means the latter, but adds up steps and so rounds a few pixels the other way."""


def short_size(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Height and width of a picture of ``size`` once its shorter side is ``side`` pixels long.

    Example:
        >>> short_size((375, 500), 224)
        (224, 298)
    """
    short = min(size)
    return size[0] * side // short, size[1] * side // short


def resize_short(x: Tensor, side: int, how: How) -> Tensor:
    """The image (3, h, w) or labels (h, w), resized so that the shorter side has ``side`` pixels.

    ``"nearest"`` is PyTorch's. The others are Pillow's, so that shrinking blurs as it should.
    Labels cannot be mixed and know only ``"nearest"``.
    """
    check_resize(side, how)
    h, w = short_size((x.shape[-2], x.shape[-1]), side)
    if how == "nearest":
        return resize_nearest(x, (h, w))
    if x.ndim == 2:
        raise InputError(f"Labels can only be resized by 'nearest', got {how!r}.")
    picture = Image.fromarray(x.permute(1, 2, 0).numpy())
    return torch.from_numpy(np.array(picture.resize((w, h), FILTERS[how]))).permute(2, 0, 1)


def check_resize(side: int, how: How) -> None:
    """Raise ``InputError`` unless these settings make sense."""
    if how not in HOWS:
        raise InputError(f"how should be one of {list(HOWS)}, got {how!r}.")
    if side < 1:
        raise InputError(f"side should be at least 1 pixel, got {side}.")


def center_crop(x: Tensor, size: int) -> Tensor:
    """The middle ``size`` x ``size`` pixels of (..., h, w); half a pixel goes to the even side."""
    h, w = x.shape[-2:]
    if size > min(h, w):
        raise InputError(
            f"A crop of {size} pixels should fit into the image, got one of {h} x {w}.\n"
            "  Resize it first: resize_short(x, side, how)."
        )
    top, left = round((h - size) / 2), round((w - size) / 2)
    return x[..., top : top + size, left : left + size]


def sources(n: int, m: int, mode: Nearest = "nearest") -> Tensor:
    """Which of ``n`` pixels each of ``m`` is taken from, (m,) int64.

    The answer of the library that the mode is named after, so that no pixel differs from what
    others computed with it.

    Example:
        >>> sources(4, 6), sources(4, 6, "nearest-exact")
        (tensor([0, 0, 1, 2, 2, 3]), tensor([0, 1, 1, 2, 3, 3]))
    """
    if mode == "pillow":
        row = Image.fromarray(np.arange(n, dtype=np.int32)[None])
        return torch.from_numpy(np.array(row.resize((m, 1), Image.Resampling.NEAREST))[0]).long()
    row = torch.arange(n, dtype=torch.float32)  # float64 would round some pixels the other way
    return F.interpolate(row.view(1, 1, n), m, mode=mode).flatten().long()


def resize_nearest(x: Tensor, size: tuple[int, int], mode: Nearest = "nearest") -> Tensor:
    """A map of any type and device at another size, (..., h, w) -> (..., *size)."""
    if x.shape[-2:] == size:
        return x
    rows, cols = (sources(n, m, mode).to(x.device) for n, m in zip(x.shape[-2:], size, strict=True))
    return x.index_select(-1, cols).index_select(-2, rows)  # this way round rows are copied whole
