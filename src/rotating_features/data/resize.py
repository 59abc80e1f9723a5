"""Images and labels of a common size: the shorter side resized, the middle cut out."""

from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from rotating_features._check import InputError

How = Literal["nearest", "bilinear", "bicubic"]
FILTERS: dict[How, Image.Resampling] = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


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

    Pillow does it, so that shrinking by ``"bilinear"`` or ``"bicubic"`` blurs as it should. Labels
    cannot be mixed and know only ``"nearest"``.
    """
    check_resize(side, how)
    labels = x.ndim == 2
    if labels and how != "nearest":
        raise InputError(f"Labels can only be resized by 'nearest', got {how!r}.")
    picture = Image.fromarray(x.int().numpy() if labels else x.permute(1, 2, 0).numpy())
    h, w = short_size((picture.height, picture.width), side)
    resized = torch.from_numpy(np.array(picture.resize((w, h), FILTERS[how])))
    return resized.to(x.dtype) if labels else resized.permute(2, 0, 1)


def check_resize(side: int, how: How) -> None:
    """Raise ``InputError`` unless these settings make sense."""
    if how not in FILTERS:
        raise InputError(f"how should be one of {list(FILTERS)}, got {how!r}.")
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
