"""k-means over many small problems at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.evaluate.lloyd import (
    distances,
    first_of_equals,
    is_nearest,
    lloyd,
    spread_out,
)


class KMeans(NamedTuple):
    """The best of all restarts, for each problem of the batch."""

    labels: Tensor  # (b, p) int64, -1 for points that took no part
    centers: Tensor  # (b, k, d)
    inertia: Tensor  # (b,) sum of squared distances to the nearest centre


@torch.no_grad()
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
    at_once = max(1, _at_once(points.device) // (restarts * k * p))
    if points.dtype in (torch.float16, torch.bfloat16):
        points = points.float()
    with _full_precision(), torch.autocast(points.device.type, enabled=False):
        parts = [
            _solve(_pack(x.transpose(1, 2), kept), k, restarts, max_iter, tol, seed)
            for x, kept in zip(points.split(at_once), mask.split(at_once), strict=True)
        ]
    labels, centers, inertia = (torch.cat(part) for part in zip(*parts, strict=True))
    return KMeans(labels.masked_fill(~mask, -1), centers, inertia)


class _Packed(NamedTuple):
    """Point sets as ``lloyd`` wants them, with all points at zero made one."""

    x: Tensor  # (b, d+2, q): coordinates seen from ``origin``, ones, squared lengths
    weight: Tensor  # (b, q): how many points each one stands for, 0 for none
    slot: Tensor  # (b, p): where each point went
    last: Tensor  # (b,): the last slot that stands for a point
    origin: Tensor  # (b, d)


def _pack(points: Tensor, mask: Tensor) -> _Packed:
    """Slot 0 stands for all points at zero, the others for one each; (b, d, p) and (b, p).

    Most pixels of a dark image have no orientation at all, so this more than halves the work. It
    changes nothing: neither the inertia nor k-means++ can tell a weight of w from w equal points.
    """
    b, d, _ = points.shape
    own = mask & (points.abs().amax(1) != 0)
    slot = own.cumsum(1) * own
    last = slot.amax(1)
    q = 16 * (int(last.max()) // 16 + 1)  # rows that start where a CPU's vectors like them to
    x = points.new_zeros(b, d, q)
    points = points.masked_fill(~own.unsqueeze(1), 0)  # not even a nan may leak out of a mask
    x.scatter_(2, slot.unsqueeze(1).expand_as(points), points)
    weight = (torch.arange(q, device=x.device) <= last.unsqueeze(1)).to(x.dtype)
    weight[:, 0] = (mask & ~own).sum(1)
    origin = x.gather(2, last.view(b, 1, 1).expand(b, d, 1))
    x = x - origin  # far from the origin, squared lengths would drown the distances
    x = torch.cat([x, torch.ones_like(x[:, :1]), x.square().sum(1, keepdim=True)], 1)
    return _Packed(x, weight, slot, last, origin.squeeze(2))


def _solve(
    points: _Packed, k: int, restarts: int, max_iter: int, tol: float, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, centres and inertia of the best restart."""
    x, weight, slot, last, origin = points
    b, d = origin.shape
    centers = spread_out(x, weight, last, k, restarts=restarts, seed=seed)
    centers = lloyd(x, weight, centers, tol=tol, max_iter=max_iter)
    distance = distances(x, centers.flatten(2)).unflatten(1, (restarts, k))
    best = (distance.amin(2) * weight.unsqueeze(1)).sum(2).argmin(1)
    rows = torch.arange(b, device=x.device)
    centers = centers[rows, :, best]  # (b, d, k)
    member = first_of_equals(is_nearest(distance[rows, best].unsqueeze(1))).squeeze(1)  # (b, k, q)
    away = (x[:, :d] - centers @ member).square().sum(1)  # unlike ``distance``, exact near zero
    labels = (torch.arange(k, dtype=x.dtype, device=x.device) @ member).long()
    return (
        labels.gather(1, slot),
        centers.transpose(1, 2) + origin.unsqueeze(1),
        (away * weight).sum(1),
    )


def _at_once(device: torch.device) -> int:
    """How many distances to keep: what a CPU's cache holds, or what keeps a GPU busy."""
    return 2**21 if device.type == "cpu" else 2**27


@contextmanager
def _full_precision() -> Iterator[None]:
    """Training may have allowed TF32, whose three digits are too few for distances."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
