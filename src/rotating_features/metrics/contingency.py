"""Pixel counts that every segmentation metric starts from."""

import torch
from torch import Tensor

from rotating_features._check import check_shape


def contingency(pred: Tensor, target: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """How many kept pixels each pair of labels shares, image by image.

    Args:
        pred, target: Integer labels, shape ``(b, h, w)``.
        keep: Which pixels count, bool, shape ``(b, h, w)``.

    Returns:
        Counts ``(b, t, p)`` in float64, for all target and predicted labels of the whole batch,
        and the ``t`` target labels that the rows stand for.
    """
    check_shape("target", target, "b h w")
    b, h, w = target.shape
    check_shape("pred", pred, "b h w", b=b, h=h, w=w, hint="Resize predictions first.")
    rows, i = target.unique(return_inverse=True)
    cols, j = pred.unique(return_inverse=True)
    image = torch.arange(b, device=target.device).view(b, 1, 1).expand_as(target)
    cell = (image * len(rows) + i) * len(cols) + j
    counts = torch.bincount(cell[keep], minlength=b * len(rows) * len(cols))
    return counts.view(b, len(rows), len(cols)).double(), rows


def not_in(target: Tensor, skip: tuple[int, ...]) -> Tensor:
    """Where ``target`` has none of the labels in ``skip``."""
    return ~torch.isin(target, torch.tensor(skip, dtype=target.dtype, device=target.device))
