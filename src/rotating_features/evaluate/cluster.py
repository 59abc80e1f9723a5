"""From an orientation map to objects, without looking at any label."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError, check_shape
from rotating_features.evaluate.automatic import kmeans_auto
from rotating_features.evaluate.kmeans import kmeans
from rotating_features.evaluate.ward import ward

Method = Literal["kmeans", "agglomerative"]
Count = int | Literal["auto"]
"""A number of clusters, or the wish that it be found."""


class Clusters(NamedTuple):
    """Objects found in a batch of orientation maps."""

    labels: Tensor  # (b, h, w) int64, -1 for pixels that took no part
    uncertainty: Tensor  # (b, h, w) distance to the nearest cluster centre
    centers: Tensor  # (b, k, n), rows of nan after an image's last cluster


def cluster(
    orientations: Tensor,
    method: Method = "kmeans",
    *,
    k: Count | None = None,
    distance_threshold: float | None = None,
    mask: Tensor | None = None,
    seed: int = 0,
) -> Clusters:
    """Pixels grouped by where they point, (b, n, h, w) -> labels (b, h, w).

    Args:
        orientations: Output of :func:`orientation_map`.
        method: ``"kmeans"`` wants the number of clusters ``k``, background included;
            ``"agglomerative"`` (Ward linkage) wants a ``distance_threshold`` and finds it.
        k: Number of clusters, or ``"auto"`` to find it for each image, see :func:`kmeans_auto`.
        distance_threshold: Distance from which clusters are no longer joined.
        mask: Pixels that take part, bool, shape ``(b, h, w)``. Default: all.
        seed: Decides where k-means starts.

    Returns:
        Labels, the distance of every pixel to its nearest centre, which says how unsure its
        label is, and the centres.
    """
    check_shape("orientations", orientations, "b n h w", hint="Make one with orientation_map(z).")
    b, _, h, w = orientations.shape
    points = orientations.flatten(2).transpose(1, 2)
    if mask is not None:
        check_shape("mask", mask, "b h w", b=b, h=h, w=w)
        mask = mask.flatten(1)
    if method == "kmeans":
        if k is None:
            raise InputError("k-means should be told the number of clusters: pass k, e.g. k=5.")
        if isinstance(k, str) and k != "auto":
            raise InputError(f"k should be a number or 'auto', got {k!r}.")
        labels, centers, _ = (
            kmeans_auto(points, mask=mask, seed=seed)
            if k == "auto"
            else kmeans(points, k, mask=mask, seed=seed)
        )
    elif method == "agglomerative":
        if distance_threshold is None or distance_threshold <= 0:
            raise InputError(
                f"Agglomerative clustering should get a distance_threshold above 0, "
                f"e.g. 5, got {distance_threshold}."
            )
        labels = ward(points, distance_threshold, mask=mask)
        centers = _means(points, labels)
    else:
        raise InputError(f"method should be 'kmeans' or 'agglomerative', got {method!r}.")
    uncertainty = _nearest(orientations, centers)
    return Clusters(labels.view(b, h, w), uncertainty, centers)


def count_clusters(labels: Tensor, k: int) -> Tensor:
    """How many of the labels from 0 to k-1 each image has, (b, h, w) -> (b,) int64."""
    seen = torch.zeros(len(labels), k + 1, dtype=torch.int64, device=labels.device)
    return seen.scatter_(1, labels.flatten(1) + 1, 1)[:, 1:].sum(1)


def sort_labels(labels: Tensor, centers: Tensor) -> Tensor:
    """Labels renamed: 0 for the cluster that points nowhere, then 1.. from large to small.

    A cluster is background if its centre is nearer to zero than to the unit sphere: its pixels
    have no orientation, for no channel responds there. So is one that is all there is: nothing
    stands apart in it.
    """
    k = centers.shape[1]
    size = F.one_hot(labels.flatten(1) + 1, k + 1)[..., 1:].sum(1).float()  # (b, k)
    length = centers.norm(dim=2).masked_fill(size == 0, torch.inf)
    alone = (size > 0).sum(1, keepdim=True) == 1
    background = F.one_hot(length.argmin(1), k).bool() & ((length < 0.5) | alone)
    order = size.masked_fill(background, torch.inf).argsort(dim=1, descending=True)
    name = order.argsort(dim=1) + ~background.any(1, keepdim=True)
    renamed = name.gather(1, labels.flatten(1).clamp(min=0)).view_as(labels)
    return torch.where(labels < 0, labels, renamed)


def _nearest(orientations: Tensor, centers: Tensor) -> Tensor:
    """Distance of every pixel to the nearest centre, rows of nan being none; (b, h, w).

    One centre at a time: ``cdist`` is slower and, by way of a matrix product, wrong near zero.
    """
    nearest = torch.full_like(orientations[:, 0], torch.inf)
    for center in centers.unbind(1):
        away = (orientations - center[:, :, None, None]).square_().sum(1)
        nearest = torch.fmin(nearest, away)
    return nearest.sqrt_()


def _means(points: Tensor, labels: Tensor) -> Tensor:
    """Means of the points of each label, (b, p, d) and (b, p) -> (b, k, d), nan where none is."""
    (b, _, d), k = points.shape, int(labels.max()) + 1
    place = labels + 1  # row 0 is for points that took no part
    sums = points.new_zeros(b, k + 1, d).scatter_add_(
        1, place.unsqueeze(2).expand_as(points), points
    )
    sizes = points.new_zeros(b, k + 1).scatter_add_(1, place, torch.ones_like(points[:, :, 0]))
    return (sums / sizes.unsqueeze(2))[:, 1:]
