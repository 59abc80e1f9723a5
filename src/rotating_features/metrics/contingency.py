"""Pixel counts that every segmentation metric starts from."""

from typing import NamedTuple

import torch
from torch import Tensor

from rotating_features._check import check_shape

DIRECT = 64
"""Labels that lie in a range no wider than this are their own index; others are looked up."""


class Table(NamedTuple):
    """How many pixels each pair of labels shares, image by image."""

    counts: Tensor  # (b, t, p) float64: a row for each target label, a column for each predicted
    rows: Tensor  # (t,) the target labels; some may be no image's, and their rows all zero

    def without(self, labels: tuple[int, ...]) -> Tensor:
        """The counts as if pixels of these target labels were not there."""
        return self.counts * not_in(self.rows, labels).view(-1, 1)


def contingency(pred: Tensor, target: Tensor) -> Table:
    """The table of all pixels of integer labels, both (b, h, w)."""
    check_same_size(pred, target)
    ends = torch.stack([*target.aminmax(), *pred.aminmax()]).tolist()  # one wait for the device
    rows, i = place_labels(target, *ends[:2])
    cols, j = place_labels(pred, *ends[2:])
    b, t, p = len(target), len(rows), len(cols)
    cell = (i.int() * p + j.int()).flatten(1).long()  # int64 is slow to multiply on the CPU
    counts = torch.zeros(b, t * p, dtype=torch.float64, device=cell.device)
    counts.scatter_add_(1, cell, counts.new_ones(1, 1).expand_as(cell))
    return Table(counts.view(b, t, p), rows)


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

    There may be names that no label has. Places are integers of any type.
    """
    if high - low >= DIRECT or labels.is_floating_point():
        return labels.unique(return_inverse=True)
    labels = labels.byte() if labels.dtype == torch.bool else labels
    return torch.arange(low, high + 1, device=labels.device), labels - int(low)
