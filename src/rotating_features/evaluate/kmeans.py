"""k-means over many small problems at once."""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape


class KMeans(NamedTuple):
    """The best of all restarts, for each problem of the batch."""

    labels: Tensor  # (b, p) int64, -1 for points that took no part
    centers: Tensor  # (b, k, d)
    inertia: Tensor  # (b,) sum of squared distances to the nearest centre


def kmeans(
    points: Tensor,
    k: int,
    *,
    mask: Tensor | None = None,
    restarts: int = 10,
    max_iter: int = 300,
    tol: float = 1e-4,
    seed: int = 0,
) -> KMeans:
    """Lloyd's algorithm from greedy k-means++ starts, for a batch of point sets.

    A problem's answer depends on its own points and ``seed`` alone, not on the rest of the batch.
    With fewer distinct points than ``k``, some labels go unused.

    Args:
        points: Shape ``(b, p, d)``.
        k: Number of clusters.
        mask: Points that take part, bool, shape ``(b, p)``. Default: all.
        restarts: Starts from which the one with the lowest inertia is kept.
        max_iter: Largest number of iterations.
        tol: Stop once the centres move by less than this, relative to the points' variance.
        seed: Decides the starts.

    Example:
        >>> two = torch.tensor([[[0.0], [0.1], [5.0], [5.1]]])
        >>> labels = kmeans(two, k=2).labels[0]
        >>> (labels == labels[0]).tolist()
        [True, True, False, False]
    """
    check_shape("points", points, "b p d")
    b, p, _ = points.shape
    mask = torch.ones(b, p, dtype=torch.bool, device=points.device) if mask is None else mask
    check_shape("mask", mask, "b p", b=b, p=p)
    if restarts < 1 or max_iter < 1:
        raise InputError(f"restarts and max_iter should be at least 1, got {restarts}, {max_iter}.")
    fewest = int(mask.sum(1).min())
    if not 1 <= k <= fewest:
        raise InputError(
            f"k should lie between 1 and the number of points, got k={k} for {fewest} points."
        )

    points = points.masked_fill(~mask.unsqueeze(2), 0)  # not even a nan may leak out of there
    weight = mask.to(points.dtype)
    centers = _start(points, k, weight, restarts, seed)
    enough = tol * _variance(points, weight)
    active = torch.arange(b, device=points.device)
    for _ in range(max_iter):
        x, old = points[active], centers[active]
        _, labels = _nearest(_distances(x, old))
        new = _means(x, weight[active], labels, old)
        centers[active] = new
        shift = (new - old).square().sum((2, 3)).amax(1)  # of the restart that moved most
        active = active[shift > enough[active]]
        if not len(active):
            break

    distance, labels = _nearest(_distances(points, centers))
    inertia = (distance * weight.unsqueeze(1)).sum(2)
    best = inertia.argmin(1)
    rows = torch.arange(b, device=points.device)
    final = labels[rows, best].masked_fill(~mask, -1)
    return KMeans(final, centers[rows, best], inertia[rows, best])


def _distances(x: Tensor, centers: Tensor) -> Tensor:
    """Squared distances, (b, p, d) and (b, r, k, d) -> (b, r, k, p)."""
    cross = centers.flatten(1, 2) @ x.transpose(1, 2)
    far = (
        centers.square().sum(-1).flatten(1).unsqueeze(2)
        - 2 * cross
        + x.square().sum(2).unsqueeze(1)
    )
    return far.clamp_(min=0).unflatten(1, centers.shape[1:3])


def _nearest(distances: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest distance and whose it is, (b, r, k, p) -> twice (b, r, p)."""
    best, label = distances[:, :, 0], torch.zeros_like(distances[:, :, 0], dtype=torch.int64)
    for j in range(1, distances.shape[2]):  # argmin over an outer axis is far slower on the CPU
        other = distances[:, :, j]
        label = label.masked_fill(other < best, j)
        best = torch.minimum(best, other)
    return best, label


def _means(x: Tensor, weight: Tensor, labels: Tensor, old: Tensor) -> Tensor:
    """Means of the clusters; an empty cluster stays where it was."""
    b, r, k, d = old.shape
    every = torch.arange(k, device=x.device).view(k, 1)
    member = (labels.unsqueeze(2) == every).to(x.dtype) * weight[:, None, None]  # (b, r, k, p)
    member = member.flatten(1, 2)
    count = member.sum(2, keepdim=True)
    means = (member @ x / count.clamp(min=1)).view(b, r, k, d)
    return torch.where(count.view(b, r, k, 1) > 0, means, old)


def _variance(x: Tensor, weight: Tensor) -> Tensor:
    """Mean variance over the coordinates, (b, p, d) -> (b,)."""
    share = (weight / weight.sum(1, keepdim=True)).unsqueeze(1)  # (b, 1, p)
    mean = share @ x
    return (share @ (x - mean).square()).mean((1, 2))


def _start(x: Tensor, k: int, keep: Tensor, restarts: int, seed: int) -> Tensor:
    """Greedy k-means++: of a few far points, each time the one that helps most; (b, r, k, d)."""
    trials = 2 + int(math.log(k))
    rng = np.random.default_rng(seed)
    u = torch.from_numpy(rng.random((k, restarts, trials))).to(x)  # the same for every problem
    rows = torch.arange(len(x), device=x.device).view(-1, 1, 1)
    far = keep.unsqueeze(1).expand(-1, restarts, -1)  # (b, r, p), what the next draw is weighted by
    last = (keep * torch.arange(x.shape[1], device=x.device)).argmax(1).view(-1, 1, 1)
    chosen = []
    for draw in u:
        total = far.cumsum(2)
        goal = draw.unsqueeze(0) * total[:, :, -1:]
        index = torch.searchsorted(total, goal.contiguous(), right=True)
        index = torch.minimum(index, last)  # past the end if no point is far from all centres
        candidate = x[rows, index]  # (b, r, trials, d)
        after = _distances(x, candidate) * keep[:, None, None]
        if chosen:
            after = torch.minimum(after, far.unsqueeze(2))
        pick = after.sum(3).argmin(2)[..., None, None]
        chosen.append(candidate.take_along_dim(pick, 2))
        far = after.take_along_dim(pick, 2).squeeze(2)
    return torch.cat(chosen, 2)
