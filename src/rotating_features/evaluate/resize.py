"""Labels of a grid at the size of a mask or a photograph."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError, check_shape
from rotating_features.data.resize import resize_nearest

MOST_VALUES = 2**27
"""Of planes at once, in half a gigabyte."""


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
    at_once = max(1, MOST_VALUES // ((high + 1) * size[0] * size[1]))
    parts = []
    for part in labels.split(at_once):
        planes = F.one_hot(part.long(), high + 1).movedim(-1, 1).float()
        parts.append(F.interpolate(planes, size, mode="bilinear").argmax(1).to(labels.dtype))
    return torch.cat(parts)
