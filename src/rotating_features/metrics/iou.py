"""Intersection over union of classes, for semantic segmentation."""

from typing import NamedTuple

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.metrics.contingency import check_same_size, count, not_in


class ClassOverlap(NamedTuple):
    """Pixel counts of each image and class, shape ``(b, classes)``, float64."""

    intersection: Tensor
    union: Tensor

    @property
    def iou(self) -> Tensor:
        """Intersection over union; ``nan`` where a class is neither there nor predicted."""
        return self.intersection / self.union  # 0 / 0 is nan


def class_overlap(
    pred: Tensor, target: Tensor, classes: int, *, ignore: tuple[int, ...] = (-1,)
) -> ClassOverlap:
    r"""Overlap of predicted and true pixels of each class, image by image.

    .. math:: \mathrm{IoU}_c = \frac{|p_c \cap t_c|}{|p_c \cup t_c|}

    Published mean IoU values pool the pixels of all images before they divide, and then average
    over classes. Counts can be added up over batches, so this gives either mean.

    Args:
        pred: Classes from 0 to ``classes - 1``, shape ``(b, h, w)``; -1 for pixels without any,
            which are in no class but missing from the true one.
        target: Classes, shape ``(b, h, w)``.
        classes: How many classes there are, the background being one of them.
        ignore: Target labels whose pixels do not count at all.

    Example:
        >>> target = torch.tensor([[[0, 0, 1, 1]], [[0, 0, 0, 2]]])
        >>> found = class_overlap(torch.tensor([[[0, 1, 1, 1]], [[0, 0, 0, 0]]]), target, classes=3)
        >>> found.iou  # of each image
        tensor([[0.5000, 0.6667,    nan],
                [0.7500,    nan, 0.0000]], dtype=torch.float64)
        >>> (found.intersection.sum(0) / found.union.sum(0)).nanmean()  # of the dataset
        tensor(0.4444, dtype=torch.float64)
    """
    check_same_size(pred, target)
    if classes < 1:
        raise InputError(f"classes should be at least 1, got {classes}.")
    keep = not_in(target, ignore)
    counted = torch.where(keep, target, 0)
    low, high, lowest, highest = torch.stack([*counted.aminmax(), *pred.aminmax()]).tolist()
    _check_range("target", low, high, 0, classes, "Name other labels in ignore, e.g. (-1, 255).")
    _check_range("pred", lowest, highest, -1, classes, "Or were there more classes?")
    intersection = count(target, keep & (pred == target), classes)
    true, found = count(target, keep, classes), count(pred, keep & (pred >= 0), classes)
    return ClassOverlap(intersection, true + found - intersection)


def mean_iou(
    pred: Tensor, target: Tensor, classes: int, *, ignore: tuple[int, ...] = (-1,)
) -> Tensor:
    """Mean IoU of each image over the classes that are there or predicted, ``(b,)`` float64.

    Arguments are those of :func:`class_overlap`, which also says how to get the mean IoU of a
    whole dataset. An image of which nothing counts gives ``nan``.

    Example:
        >>> mean_iou(torch.tensor([[[0, 1, 1, 1]]]), torch.tensor([[[0, 0, 1, 1]]]), classes=21)
        tensor([0.5833], dtype=torch.float64)
    """
    return class_overlap(pred, target, classes, ignore=ignore).iou.nanmean(1)


def _check_range(name: str, low: int, high: int, least: int, classes: int, hint: str) -> None:
    if low < least or high >= classes:
        raise InputError(
            f"{name} should hold classes from {least} to {classes - 1}, "
            f"got values from {low} to {high}.\n  {hint}"
        )
