"""Pixel counts that every segmentation metric starts from."""

import torch
from torch import Tensor

from rotating_features._check import check_shape

DIRECT = 64
"""Labels that lie in a range no wider than this are their own index; others are looked up."""


def contingency(pred: Tensor, target: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """How many kept pixels each pair of labels shares, image by image.

    Args:
        pred, target: Integer labels, shape ``(b, h, w)``.
        keep: Which pixels count, bool, shape ``(b, h, w)``.

    Returns:
        Counts ``(b, t, p)`` in float64, with a row for every target label and a column for every
        predicted label of the whole batch, and the ``t`` target labels that the rows stand for.
        There may be rows and columns for labels in between, too; they are all zero.
    """
    check_same_size(pred, target)
    ends = torch.stack([*target.aminmax(), *pred.aminmax()]).tolist()  # one wait for the device
    rows, i = place_labels(target, *ends[:2])
    cols, j = place_labels(pred, *ends[2:])
    t, p = len(rows), len(cols)
    return count(i * p + j, keep, t * p).view(-1, t, p), rows


def count(labels: Tensor, keep: Tensor, n: int) -> Tensor:
    """How many kept pixels of each image have each label from 0 to n-1, (b, h, w) -> (b, n)."""
    b = len(labels)
    image = torch.arange(b, device=labels.device).view(b, 1, 1)
    cell = torch.where(keep, image * n + labels, b * n)  # the last is for what is left out
    counts = torch.zeros(b * n + 1, dtype=torch.float64, device=labels.device)
    counts.scatter_add_(0, cell.flatten(), counts.new_ones(1).expand(cell.numel()))
    return counts[:-1].view(b, n)


def not_in(target: Tensor, skip: tuple[int, ...]) -> Tensor:
    """Where ``target`` has none of the labels in ``skip``."""
    keep = torch.ones_like(target, dtype=torch.bool)
    for label in skip:
        keep &= target != label
    return keep


def check_same_size(pred: Tensor, target: Tensor) -> None:
    """Raise ``InputError`` unless both are label maps ``(b, h, w)`` of one size."""
    check_shape("target", target, "b h w")
    b, h, w = target.shape
    check_shape("pred", pred, "b h w", b=b, h=h, w=w, hint="Resize predictions first.")


def place_labels(labels: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Names in rising order, and the place among them of every label from ``low`` to ``high``.

    There may be names that no label has.
    """
    if high - low >= DIRECT or labels.is_floating_point():
        return labels.unique(return_inverse=True)
    return torch.arange(low, high + 1, device=labels.device), labels.long() - int(low)
