"""How many clusters there are, by the points alone."""

import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.evaluate.kmeans import KMeans, kmeans

MOST = 8
"""Clusters looked for at most, unless told otherwise."""
MARGIN = 0.1
"""By how much clusters must be kept apart better than chance has it. Of 200 points without any
clusters, normal or directions in six dimensions and more, 0.05 was seen; directions in two or three
dimensions, which lie on a curve, reach 0.2. Two equally large clusters of directions with noise of
0.2 in each coordinate have 0.15 or more, and more clusters have more."""


@torch.no_grad()
def kmeans_auto(
    points: Tensor, *, most: int = MOST, mask: Tensor | None = None, seed: int = 0
) -> KMeans:
    r"""k-means with as many clusters as are kept apart best, found for each point set by itself.

    How well ``k`` clusters are kept apart is their mean silhouette, and

    .. math:: k^* = \arg\max_{2 \le k \le K} S(k).

    A cloud without any clusters has a silhouette, too. So all points are one cluster unless
    :math:`S(k^*)` is above that of a normal cloud of the same mean and covariance by a margin, in
    the manner of the gap statistic (Tibshirani et al., 2001).

    Args:
        points: Shape ``(b, p, d)``.
        most: The :math:`K` of the equation.
        mask: Points that take part, bool, shape ``(b, p)``. Default: all.
        seed: Decides where k-means starts, and the normal cloud.

    Returns:
        As :func:`kmeans`; centres ``(b, most, d)`` with rows of nan after the last cluster.

    Example:
        >>> three = torch.eye(3).repeat(1, 10, 1)  # ten points at each of three places
        >>> kmeans_auto(three).labels.unique().tolist()
        [0, 1, 2]
        >>> kmeans_auto(torch.ones(1, 30, 3)).labels.unique().tolist()
        [0]
    """
    check_shape("points", points, "b p d")
    b, p, _ = points.shape
    mask = torch.ones(b, p, dtype=torch.bool, device=points.device) if mask is None else mask
    fewest = int(mask.sum(1).min())
    if min(most, fewest) < 1:
        raise InputError(
            f"There should be at least 1 cluster and 1 point, got most={most} and {fewest} points."
        )
    points = points.float() if points.dtype in (torch.float16, torch.bfloat16) else points
    one = kmeans(points, 1, mask=mask, restarts=1, seed=seed)
    tries = [kmeans(points, k, mask=mask, seed=seed) for k in range(2, min(most, fewest) + 1)]
    if not tries:
        return _choose([one], torch.zeros_like(one.labels[:, 0]), most)
    apart = torch.stack([silhouette(points, found) for found in tries])  # (k, b)
    best, which = apart.max(0)
    cloud = _normal_cloud(points, mask, seed)
    for i in which.unique().tolist():
        own = (which == i).nonzero().squeeze(1)
        chance = kmeans(cloud[own], 2 + i, mask=mask[own], seed=seed)
        best[own] -= silhouette(cloud[own], chance)
    return _choose([one, *tries], torch.where(best > MARGIN, 1 + which, 0), most)


def _choose(tries: list[KMeans], which: Tensor, most: int) -> KMeans:
    """Of several answers, which begin with one cluster, each point set's own."""
    labels, centers, inertia = tries[0]
    centers = torch.cat([centers, torch.full_like(centers, torch.nan).repeat(1, most - 1, 1)], 1)
    for i, found in enumerate(tries):
        own = which == i
        labels = torch.where(own.unsqueeze(1), found.labels, labels)
        inertia = torch.where(own, found.inertia, inertia)
        k = found.centers.shape[1]
        centers[:, :k] = torch.where(own.view(-1, 1, 1), found.centers, centers[:, :k])
    return KMeans(labels, centers, inertia)


def silhouette(points: Tensor, found: KMeans) -> Tensor:
    r"""Mean silhouette of each point set, with distances to centres instead of points; (b,).

    .. math:: s = \frac{b - a}{\max(a, b)}

    for a point :math:`a` away from its own centre and :math:`b` from the next. 1 if all points are
    at their centres, 0 if all lie between two, or if there is but one.
    """
    labels, centers, _ = found
    own = torch.full_like(points[:, :, 0], torch.inf)
    other = torch.full_like(own, torch.inf)
    for j, center in enumerate(centers.unbind(1)):
        away = (points - center.unsqueeze(1)).square_().sum(2).sqrt_()
        mine = labels == j
        own = torch.where(mine, away, own)
        used = mine.any(1, keepdim=True)  # a cluster without points is nobody's neighbour
        other = torch.where(mine | ~used, other, other.minimum(away))
    s = ((other - own) / other.maximum(own)).nan_to_num(0.0)  # no other cluster, or all in a point
    kept = labels >= 0
    return (s * kept).sum(1) / kept.sum(1)


def _normal_cloud(points: Tensor, mask: Tensor, seed: int) -> Tensor:
    """Normal points with the mean and covariance of those that take part; (b, p, d)."""
    _, p, d = points.shape
    share = (mask / mask.sum(1, keepdim=True)).to(points.dtype).unsqueeze(2)
    points = points.masked_fill(~mask.unsqueeze(2), 0)  # not even a nan may leak out of a mask
    mean = (points * share).sum(1, keepdim=True)
    apart = (points - mean) * share.sqrt()
    variance, axes = torch.linalg.eigh((apart.mT @ apart).double())
    rng = torch.Generator().manual_seed(seed)
    draws = torch.randn(p, d, generator=rng).to(axes)  # the same for every point set
    spread = (variance.clamp(min=0).sqrt().unsqueeze(1) * axes).mT
    return (draws @ spread).to(points.dtype) + mean
