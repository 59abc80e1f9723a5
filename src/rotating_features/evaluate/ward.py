"""Agglomerative clustering by Ward's criterion: the same clusters as scikit-learn's, ties included.

scikit-learn hands the work to SciPy, whose nearest-neighbour chain compares rounded numbers, so
where distances are equal, rounding decides. On a CPU we call SciPy as well: nothing was faster.
On a GPU many images go through the same chain side by side, in the same operations, each rounded
in the same way.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rotating_features._check import InputError

MOST_POINTS = 25_000
"""Their distances take 2.5 GB, and as much again to work with."""


@torch.no_grad()
def ward(points: Tensor, threshold: float, *, mask: Tensor | None = None) -> Tensor:
    """Clusters that are at least ``threshold`` apart, (b, p, d) -> labels (b, p) int64.

    Labels count from 0, in the order of the clusters' last points.

    Args:
        points: Shape ``(b, p, d)``.
        threshold: Distance from which clusters are no longer joined.
        mask: Points that take part, bool, shape ``(b, p)``; the others get -1. Default: all.

    Example:
        >>> ward(torch.tensor([[[0.0], [0.1], [5.0], [5.1]]]), threshold=1)
        tensor([[0, 0, 1, 1]])
    """
    b, p, _ = points.shape
    mask = torch.ones(b, p, dtype=torch.bool, device=points.device) if mask is None else mask
    if (fewest := int(mask.sum(1).min())) < 2:
        raise InputError(f"Clustering wants at least 2 points, got {fewest}.")
    if p > MOST_POINTS:
        raise InputError(
            f"Agglomerative clustering compares all pairs, so it takes {MOST_POINTS:,} points at "
            f"most, got {p:,}.\n  Use k-means: pass k."
        )
    if points.device.type == "cpu":
        found = [_by_scipy(x, keep, threshold) for x, keep in zip(points, mask, strict=True)]
        joined = torch.stack(found)
    else:
        at_once = max(1, 2**29 // p**2)  # 4 GB of distances, and as much again to work with
        parts = zip(points.split(at_once), mask.split(at_once), strict=True)
        with torch.cuda.device(points.device):
            found = [chain(x, keep) for x, keep in parts]
        joined = torch.cat([torch.where(height < threshold, to, -1) for to, height in found])
    return _name(joined, mask)


def _by_scipy(points: Tensor, keep: Tensor, threshold: float) -> Tensor:
    """Which later point each point is joined to, -1 for none, (p, d) -> (p,)."""
    from scipy.cluster.hierarchy import fcluster, linkage  # here, for it takes as long as torch
    from scipy.spatial.distance import pdist

    tree = linkage(pdist(points[keep].double().numpy()), "ward")
    groups = fcluster(tree, math.nextafter(threshold, 0), "distance")  # it joins up to that one
    where = keep.nonzero().squeeze(1).numpy()
    last = np.empty(groups.max() + 1, dtype=np.int64)
    last[groups] = where  # of a cluster's points the last one stays
    joined = torch.full(keep.shape, -1)
    joined[keep] = torch.from_numpy(np.where(last[groups] == where, -1, last[groups]))
    return joined


def chain(points: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """SciPy's nearest-neighbour chain for a batch, (b, p, d) and (b, p) -> twice (b, p).

    A chain of clusters, each followed by its nearest one, ends in two that are nearest to each
    other; these are joined, the first into the second. Every image takes one such step at a time.

    Returns:
        The later point that each point's cluster was joined to, and at what distance; infinite
        for the last cluster and for masked points.
    """
    b, p, _ = points.shape
    distance = _distances(points.double())
    size = mask.double()
    image = torch.arange(b, device=points.device)
    links, length = image.new_zeros(b, p + 1), image.new_zeros(b)
    to, height = image.new_full((b, p), -1), torch.full_like(size, torch.inf)

    def step() -> None:
        first = size.sign().argmax(1)
        links[:, 0] = torch.where(length == 0, first, links[:, 0])
        length.clamp_(min=1)
        x, before = links[image, length - 1], links[image, length - 2]
        row = distance[image, x].masked_fill_(size == 0, torch.inf)
        low, y = row.min(1)
        join = (length > 1) & (row[image, before] == low) & (low < torch.inf)
        y = torch.where(join, before, y)  # of equally near ones the one before, lest it run round
        links[image, length] = y
        length.add_(torch.where(join, -2, (low < torch.inf).long()))

        x, y = torch.minimum(x, y), torch.maximum(x, y)
        here, there = size[image, x], size[image, y]
        old = distance[image, y]
        new = _joined(distance[image, x], old, low, here, there, size)
        new = torch.where(join.unsqueeze(1) & old.isfinite(), new, old)
        distance[image, y] = new
        distance[image, :, y] = new
        size[image, x] = torch.where(join, 0, here)
        size[image, y] = torch.where(join, here + there, there)
        to[image, x] = torch.where(join, y, to[image, x])
        height[image, x] = torch.where(join, low, height[image, x])

    step()
    again = step if points.device.type == "cpu" else _recorded(step)
    for taken in range(1, 3 * (p - 1)):
        again()
        if taken % 256 == 0 and bool((size.count_nonzero(1) <= 1).all()):
            break
    return to, height


def _recorded(step: Callable[[], None]) -> Callable[[], None]:
    """The step as one CUDA graph: its many small launches would take longer than its work."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _joined(dx: Tensor, dy: Tensor, dxy: Tensor, nx: Tensor, ny: Tensor, n: Tensor) -> Tensor:
    """Distances of all clusters to the union of two, in the order in which SciPy rounds them."""
    dxy, nx, ny = dxy.unsqueeze(1), nx.unsqueeze(1), ny.unsqueeze(1)
    t = 1 / (nx + ny + n)
    return _root((n + nx) * t * dx * dx + (n + ny) * t * dy * dy - n * t * dxy * dxy)


def _distances(points: Tensor) -> Tensor:
    """Distances between all points of an image, infinite to themselves, (b, p, d) -> (b, p, p)."""
    b, p, _ = points.shape
    total = points.new_zeros(b, p, p)
    for x in points.unbind(2):  # one coordinate after the other, for the rounding
        total += (x.unsqueeze(2) - x.unsqueeze(1)).square_()
    total = _root(total)
    total.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    return total


def _root(x: Tensor) -> Tensor:
    """Square roots, correctly rounded; PyTorch's are on a GPU, but on a CPU one in 70 is not."""
    if x.is_cuda:
        return x.sqrt()
    with np.errstate(invalid="ignore"):  # of places that nobody reads
        return torch.from_numpy(np.sqrt(x.numpy()))


def _name(joined: Tensor, mask: Tensor) -> Tensor:
    """Labels, from which later point each point is joined to; -1 where there is no mask."""
    own = torch.arange(joined.shape[1], device=joined.device).expand_as(joined)
    root = torch.where(joined < 0, own, joined)
    for _ in range(joined.shape[1].bit_length()):  # each time twice as far up the tree
        root = root.gather(1, root)
    label = ((root == own) & mask).cumsum(1) - 1
    return label.gather(1, root).masked_fill(~mask, -1)
