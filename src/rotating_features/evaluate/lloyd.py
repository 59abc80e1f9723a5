"""The two halves of k-means, for all restarts of many problems at once.

Shapes: ``x`` is (b, d+2, q), the coordinates of q points, a row of ones and a row of squared
lengths, so that one matrix product gives distances and another the sums and sizes of clusters.
``weight`` (b, q) says how many points each one stands for. Centres are (b, d, r, k) for r
restarts of k clusters.
"""

import math

import numpy as np
import torch
from torch import Tensor


def spread_out(
    x: Tensor, weight: Tensor, last: Tensor, k: int, *, restarts: int, seed: int
) -> Tensor:
    """Where to start, by greedy k-means++: of a few far points, each time the one that helps most.

    ``last`` (b,) is the last point of positive weight, for when no point is far from all centres.
    """
    b, d = len(x), x.shape[1] - 2
    weight = weight.unsqueeze(1)
    trials = 2 + int(math.log(k))
    rng = np.random.default_rng(seed)
    u = torch.from_numpy(rng.random((k, restarts, trials))).to(x)  # the same for every problem
    first = torch.arange(b * restarts, device=x.device) * trials
    far = torch.ones_like(weight).expand(-1, restarts, -1)  # (b, r, q), to the nearest centre yet
    chosen = []
    for draw in u:
        total = (far * weight).cumsum(2)
        index = torch.searchsorted(total, draw * total[:, :, -1:], right=True)
        index = index.minimum(last.view(b, 1, 1))  # past the end if all is 0
        index = index.flatten(1).unsqueeze(1).expand(b, d, restarts * trials)
        candidate = x[:, :d].gather(2, index)
        after = distances(x, candidate).unflatten(1, (restarts, trials))
        if chosen:
            torch.minimum(after, far.unsqueeze(2), out=after)
        pick = (after * weight.unsqueeze(1)).sum(3).argmin(2)  # (b, r)
        far = after.flatten(0, 2).index_select(0, first + pick.flatten())
        far = far.clamp_(min=0).view(b, restarts, -1)
        pick = pick.view(b, 1, restarts, 1).expand(b, d, restarts, 1)
        chosen.append(candidate.unflatten(2, (restarts, trials)).gather(3, pick))
    return torch.cat(chosen, 3)


def lloyd(x: Tensor, weight: Tensor, start: Tensor, *, tol: float, max_iter: int) -> Tensor:
    """Centres moved to the means of their points until they hardly move; each restart by itself."""
    b, d, r, _ = start.shape
    enough = tol * _variance(x[:, :d], weight)
    weighted = (x * weight.unsqueeze(1))[:, : d + 1]
    final, centers = start.transpose(1, 2).flatten(0, 1), start
    home = torch.arange(b * r, device=x.device).view(b, r)  # whose centres these are
    moving = torch.ones_like(home, dtype=torch.bool)
    for _ in range(max_iter):
        new = _means(x, weighted, centers)
        shift = (new - centers).square().sum((1, 3))
        centers = torch.where(moving[:, None, :, None], new, centers)
        moving &= shift > enough.unsqueeze(1)
        left = int(moving.sum())
        if left == 0:
            break
        if 3 * left <= moving.numel():  # go on with these alone, each with its own copy of points
            final[home] = centers.transpose(1, 2)
            problem, restart = moving.nonzero(as_tuple=True)
            x, weighted, enough = x[problem], weighted[problem], enough[problem]
            centers = centers[problem, :, restart].unsqueeze(2)
            home = home[problem, restart].unsqueeze(1)
            moving = torch.ones_like(home, dtype=torch.bool)
    final[home] = centers.transpose(1, 2)
    return final.unflatten(0, (b, r)).transpose(1, 2)


def distances(x: Tensor, centers: Tensor) -> Tensor:
    """Squared distances up to rounding, (b, d+2, q) and (b, d, m) -> (b, m, q)."""
    length = centers.square().sum(1, keepdim=True)
    return torch.cat([-2 * centers, length, torch.ones_like(length)], 1).transpose(1, 2) @ x


def is_nearest(distances: Tensor) -> Tensor:
    """1 for the nearest centre or centres and 0 for the others; (b, r, k, q), in place.

    In floating point, for argmin and comparisons that give bool are far slower on the CPU.
    """
    return distances.eq_(distances.amin(2, keepdim=True))


def first_of_equals(member: Tensor) -> Tensor:
    """Each point's first 1 along axis 2 stays and the others become 0; in place."""
    first, *others = member.unbind(2)
    free = 1 - first
    for other in others:
        torch.minimum(other, free, out=other)
        free -= other
    return member


def _means(x: Tensor, weighted: Tensor, centers: Tensor) -> Tensor:
    """Means of the clusters; an empty cluster stays where it was."""
    d, r, k = centers.shape[1:]
    member = is_nearest(distances(x, centers.flatten(2)).unflatten(1, (r, k)))
    sums = _sums(weighted, member)
    if (sums[:, d].sum(2) != weighted[:, d].sum(1, keepdim=True)).any():
        sums = _sums(weighted, first_of_equals(member))  # a point between two counted twice
    count = sums[:, d:]
    return torch.where(count > 0, sums[:, :d] / count.clamp(min=1), centers)


def _sums(weighted: Tensor, member: Tensor) -> Tensor:
    """Sums over the members of clusters, (b, d+1, q) and (b, r, k, q) -> (b, d+1, r, k)."""
    sums = weighted @ member.flatten(1, 2).transpose(1, 2)
    return sums.unflatten(2, member.shape[1:3])


def _variance(x: Tensor, weight: Tensor) -> Tensor:
    """Mean variance over the coordinates, (b, d, q) -> (b,)."""
    share = (weight / weight.sum(1, keepdim=True)).unsqueeze(1)  # (b, 1, q)
    mean = (x * share).sum(2, keepdim=True)
    return ((x - mean).square() * share).sum(2).mean(1)
