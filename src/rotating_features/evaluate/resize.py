"""Label maps and masks at another size, where "nearest" is said by whom."""

from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError, check_shape

Nearest = Literal["nearest", "nearest-exact", "pillow"]
"""Which pixel is nearest to pixel ``i`` of ``m``, out of ``n``: PyTorch's ``"nearest"`` takes
``floor(i * n / m)``, a corner; its ``"nearest-exact"`` takes ``floor((i + 0.5) * n / m)``, a
centre; Pillow means the latter, but adds up steps and so rounds a few pixels the other way."""


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
    return x.index_select(-1, cols).index_select(
        -2, rows
    )  # in this order, for rows are copied whole


def resize_labels(
    labels: Tensor, size: tuple[int, int], mode: Literal["nearest", "bilinear"] = "nearest"
) -> Tensor:
    """Labels of a grid at the size of a mask or a photograph, (b, h, w) -> (b, *size).

    Args:
        labels: Integers; with ``"bilinear"`` from 0.
        size: Height and width.
        mode: ``"nearest"`` as in PyTorch, or ``"bilinear"``: each label's plane of zeros and ones
            is resized, and a pixel takes the label with the largest value, the first of equals.
    """
    check_shape("labels", labels, "b h w")
    if mode == "nearest":
        return resize_nearest(labels, size)
    low, high = torch.stack(labels.aminmax()).tolist()
    if low < 0:
        raise InputError(f"Labels that are resized as planes should be at least 0, got {low}.")
    if labels.shape[-2:] == size:
        return labels
    planes = F.one_hot(labels.long(), high + 1).movedim(-1, 1).float()
    return F.interpolate(planes, size, mode="bilinear").argmax(1).to(labels.dtype)


def short_side(h: int, w: int, side: int) -> tuple[int, int]:
    """Height and width once the shorter of both is ``side``; the other is rounded down."""
    return (side, side * w // h) if h <= w else (side * h // w, side)


def center(n: int, side: int) -> slice:
    """The middle ``side`` of ``n`` pixels; half a pixel is rounded to the even one, as others do.

    Example:
        >>> center(323, 320), center(321, 320)
        (slice(2, 322, None), slice(0, 320, None))
    """
    first = round((n - side) / 2)
    return slice(first, first + side)
