"""Classes of pixels from a classifier that was told only which classes an image has."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.data.counter import uniform
from rotating_features.data.sample import BACKGROUND, IGNORE
from rotating_features.evaluate.orientation import THRESHOLD
from rotating_features.metrics import ClassOverlap, class_overlap
from rotating_features.metrics.contingency import count
from rotating_features.vectors import magnitude, orientation


def label_pixels(
    orientations: Tensor,
    z_class: Tensor,
    present: Tensor,
    *,
    threshold: float = 0.0,
    magnitude_threshold: float = THRESHOLD,
) -> Tensor:
    """The class that points where the pixel does, for every pixel, with no clustering.

    A pixel is background if no class that is present is similar to it, or if it points nowhere. A
    class whose vector is zero points nowhere, too, and gets no pixels.

    Args:
        orientations: Of the pixels, from :func:`orientation_map`, shape ``(b, n, h, w)``.
        z_class: Rotating output of the classifier, shape ``(b, n, classes)``.
        present: Which classes the classifier sees, bool, shape ``(b, classes)``.
        threshold: A cosine similarity lower than this is none.
        magnitude_threshold: Pixels with a shorter vector point nowhere.

    Returns:
        ``(b, h, w)`` int64: 0 for background, 1.. for classes.

    Example:
        >>> pixels = torch.tensor([[[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]]).unsqueeze(2)
        >>> label_pixels(pixels, torch.eye(2).unsqueeze(0), torch.tensor([[True, True]]))
        tensor([[[1, 2, 0]]])
    """
    check_shape("orientations", orientations, "b n h w", hint="Pass what orientation_map gives.")
    b, n = orientations.shape[:2]
    check_shape("z_class", z_class, "b n classes", b=b, n=n)
    _check_classes("present", present, b, z_class.shape[2])
    if not -1 <= threshold <= 1:
        raise InputError(f"threshold should be a cosine, between -1 and 1, got {threshold}.")
    pixels, classes = orientations.double(), z_class.double()  # no TF32, and ties stay ties
    similarity = torch.einsum("bnhw,bnc->bchw", orientation(pixels), orientation(classes))
    candidate = present & (magnitude(classes) > 0)
    best, label = similarity.masked_fill(~candidate[..., None, None], -torch.inf).max(1)
    nowhere = (best < threshold) | (magnitude(pixels) < magnitude_threshold)
    return torch.where(nowhere, BACKGROUND, label + 1)


def match_randomly(
    labels: Tensor, present: Tensor, *, seed: int, images: Sequence[int] | np.ndarray
) -> Tensor:
    """The baseline: objects that were found get classes that were predicted, by lot.

    No two objects of an image get the same class while there are enough of them. If there are
    more objects than classes, all classes are used once, then all of them once more, and so on.
    The lot of an image depends on ``seed`` and its own index alone, not on the rest of the batch.

    Args:
        labels: Found objects, shape ``(b, h, w)``: 0 for background, 1.. for objects; negative
            ones, which belong to none, become background.
        present: Which classes the classifier sees, bool, shape ``(b, classes)``.
        seed: Decides the lots.
        images: Index of each image in its dataset, length ``b``.

    Returns:
        ``(b, h, w)`` int64: 0 for background and where no class is present, 1.. for classes.

    Example:
        >>> found, present = torch.tensor([[[0, 1, 2]]]), torch.tensor([[True, False, True]])
        >>> sorted(match_randomly(found, present, seed=0, images=[0]).flatten().tolist())
        [0, 1, 3]
    """
    check_shape("labels", labels, "b h w")
    b = len(labels)
    _check_classes("present", present, b, present.shape[-1])
    index = np.asarray(images).reshape(-1, 1, 1)
    if len(index) != b:
        raise InputError(f"images should have an index for each of {b} images, got {len(index)}.")
    classes = present.shape[1]
    objects = labels.clamp(min=0).flatten(1)
    k = int(objects.max())
    found = torch.zeros(b, k + 1, dtype=torch.int64, device=labels.device).scatter_(1, objects, 1)
    place = found[:, 1:].cumsum(1) - 1  # among the objects of the image, whatever their names

    lots = uniform(seed, index, np.arange(max(k, 1)).reshape(-1, 1), np.arange(classes))
    drawn = torch.from_numpy(lots).to(labels.device)
    drawn = drawn.masked_fill(~present.unsqueeze(1), torch.inf).argsort(2).flatten(1)
    there = present.sum(1, keepdim=True)
    enough = there.clamp(min=1)
    turn = place.clamp(min=0) // enough * classes + place.clamp(min=0) % enough
    name = torch.where(there > 0, drawn.gather(1, turn) + 1, BACKGROUND)
    name = torch.cat([torch.full_like(there, BACKGROUND), name], 1)
    return name.gather(1, objects).view_as(labels)


def semantic_scores(predicted: Tensor, truth: Tensor, classes: int) -> dict[str, Tensor]:
    """Mean intersection over union of each image, over the classes that it truly has.

    The paper says only "IoU". Its baseline scores half of what the method does with two objects
    (0.393 and 0.785), which is what drawing lots costs if every image is scored on its own and
    background, which both find, is no class: that is ``iou``. With background as one more class
    it is ``iou_with_background``; for the pixels of all images pooled see :func:`dataset_iou`.

    Args:
        predicted: Classes, shape ``(b, h, w)``: 0 for background, 1.. for classes.
        truth: The true ones, the same; pixels that are -1, where objects overlap, do not count.
        classes: How many there are, without background.

    Returns:
        ``(b,)`` float64 each; ``nan`` for an image that has nothing to average.

    Example:
        >>> scores = semantic_scores(torch.tensor([[[0, 1, 1]]]), torch.tensor([[[0, 0, 1]]]), 3)
        >>> {name: score.tolist() for name, score in scores.items()}
        {'iou': [0.5], 'iou_with_background': [0.5]}
    """
    overlap = class_overlap(predicted, truth, classes + 1, ignore=(IGNORE,))
    there = count(truth, truth != IGNORE, classes + 1) > 0
    iou = overlap.iou.masked_fill(~there, torch.nan)
    return {"iou": iou[:, 1:].nanmean(1), "iou_with_background": iou.nanmean(1)}


def dataset_iou(overlap: ClassOverlap, *, background: bool = False) -> Tensor:
    """Mean IoU over the classes of a dataset, the pixels of all images pooled; a float64 scalar.

    Args:
        overlap: From :func:`class_overlap`, of as many images as there are, class 0 being the
            background.
        background: Whether it counts as a class.
    """
    first = 0 if background else 1
    return (overlap.intersection.sum(0) / overlap.union.sum(0))[first:].nanmean()


def accuracy(probabilities: Tensor, labels: Tensor, *, threshold: float = 0.5) -> Tensor:
    """Part of the classes of which it is rightly said that they are there or not.

    Args:
        probabilities: That a class is in the image, shape ``(b, classes)``.
        labels: Whether it is, bool or 0 and 1, shape ``(b, classes)``.
        threshold: A class is said to be there if its probability is higher.

    Returns:
        ``(b,)`` float64.

    Example:
        >>> accuracy(torch.tensor([[0.9, 0.2, 0.6, 0.1]]), torch.tensor([[1, 0, 0, 0]]))
        tensor([0.7500], dtype=torch.float64)
    """
    check_shape("probabilities", probabilities, "b classes")
    b, classes = probabilities.shape
    check_shape("labels", labels, "b classes", b=b, classes=classes)
    return ((probabilities > threshold) == labels.bool()).double().mean(1)


def _check_classes(name: str, x: Tensor, b: int, classes: int) -> None:
    check_shape(name, x, "b classes", b=b, classes=classes)
    if x.dtype != torch.bool:
        raise InputError(
            f"{name} should be of type bool, got {x.dtype}.\n  Pass probabilities > 0.5."
        )
