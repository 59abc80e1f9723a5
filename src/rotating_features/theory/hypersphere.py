"""How many objects can point apart: points on spheres in many dimensions."""

from collections.abc import Iterator, Sequence
from math import cos, nan, pi
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.data.counter import uniform
from rotating_features.vectors import check_rotation_dim

Objective = Literal["pair", "nearest"]
SHARPNESS = (5.0, 2000.0)
"""Of the smooth maximum, at the first step and at the last."""


@torch.no_grad()
def hypersphere_capacity(
    dims: Sequence[int],
    points: Sequence[int],
    *,
    steps: int = 10_000,
    seeds: int = 10,
    lr: float = 0.1,
    momentum: float = 0.9,
    objective: Objective = "pair",
    device: torch.device | str = "cpu",
) -> Tensor:
    """How far apart k points on a sphere in n dimensions get: the largest cosine of any two.

    Random points are moved by gradient descent that minimises the largest cosine
    between any two of them, and are put back on the sphere after each step. All problems are
    solved side by side; none depends on the others.

    The paper says no more than that, its rate, momentum and steps, and that it follows Mettes et
    al. (2019). What they minimise is here as ``"nearest"``. At a constant rate it stops short of
    what can be achieved, by 0.06 for ten points in ten dimensions, and in a plane it lets two of
    nine points fall together, since points repel each other the less the closer they are. The
    default, ``"pair"``, is what the paper's words say; for up to 20 points, its mean over seeds
    is within 0.0001 of all that :func:`optimal_cosine` knows.

    Args:
        dims: The n to try.
        points: The k to try.
        steps: Of gradient descent.
        seeds: Random starts for each n and k.
        lr, momentum: Of gradient descent.
        objective: ``"pair"``: the largest cosine of any pair, by a smooth maximum that becomes
            the sharper the further the descent gets, at a rate that falls to 0. ``"nearest"``:
            the mean over points of the cosine to the nearest other one, at a constant rate.
        device: Where to compute.

    Returns:
        The largest cosine of any pair after the last step, float64, shape ``(dims, points,
        seeds)``, on the CPU.

    Example: in a plane, three points are 120 degrees apart.
        >>> hypersphere_capacity([2], [3], steps=1000, seeds=1).round(decimals=2)
        tensor([[[-0.5000]]], dtype=torch.float64)
    """
    _check(dims, points, steps, seeds, objective)
    cosines = torch.empty(len(dims) * len(points), seeds, dtype=torch.float64)
    problems = [(n, k) for n in dims for k in points]
    descent = _Descent(steps, lr, momentum, objective)
    device = torch.device(device)
    for part in _parts(problems, seeds, device):
        x, there = (t.to(device) for t in _pad([_start(*problems[i], seeds) for i in part]))
        x = x.double() if device.type == "cuda" else x  # training may have allowed TF32
        x = _descend(x, there, descent)
        largest = _between(x.double(), _bar(there, torch.float64)).amax((1, 2))
        cosines[part] = largest.view(len(part), seeds).cpu()
    return cosines.view(len(dims), len(points), seeds)


def optimal_cosine(n: int, k: int) -> float:
    r"""The smallest possible largest cosine between k points in n dimensions; ``nan`` if unknown.

    Up to :math:`n+1` points are the corners of a simplex, up to :math:`2n` have a right angle
    (Rankin, 1955), and in a plane all are corners of a regular polygon.

    Example: two points, the corners of a triangle, and the axes of space with their opposites.
        >>> optimal_cosine(9, 2), optimal_cosine(2, 3), optimal_cosine(3, 6)
        (-1.0, -0.5, 0.0)
    """
    if k <= n + 1:
        return -1 / (k - 1)
    if n == 2:
        return cos(2 * pi / k)
    return 0.0 if k <= 2 * n else nan


class _Descent(NamedTuple):
    steps: int
    lr: float
    momentum: float
    objective: Objective


def _descend(x: Tensor, there: Tensor, descent: _Descent) -> Tensor:
    """Where the points end; (b, k, n) and which of them are there, (b, k)."""
    velocity = torch.zeros_like(x)
    bar = _bar(there, x.dtype)
    soft, hard = SHARPNESS
    for step in range(descent.steps):
        cosines = _between(x, bar)
        if descent.objective == "pair":
            slope = _slope_of_any(cosines, soft * (hard / soft) ** (step / descent.steps))
            lr = descent.lr * (1 - step / descent.steps)
        else:
            slope = _slope_of_nearest(cosines, there)
            lr = descent.lr
        velocity.mul_(descent.momentum).add_(_gradient(x, slope))
        x = F.normalize(x.sub(velocity, alpha=lr), dim=2)
    return x


def _bar(there: Tensor, dtype: torch.dtype) -> Tensor:
    """-inf for a point and itself or one that is not there, 0 for other pairs; (b, k, k)."""
    pairs = there.unsqueeze(1) & there.unsqueeze(2)
    pairs &= ~torch.eye(there.shape[1], dtype=torch.bool, device=there.device)
    return torch.zeros(pairs.shape, dtype=dtype, device=there.device).masked_fill(
        ~pairs, -torch.inf
    )


def _between(x: Tensor, bar: Tensor) -> Tensor:
    """Cosine of each point with each other one, -inf where there is a bar."""
    return torch.baddbmm(bar, x, x.transpose(1, 2))


def _slope_of_any(cosines: Tensor, sharpness: float) -> Tensor:
    """Derivative by each cosine of their smooth maximum, log(sum(exp(s c))) / s."""
    return (cosines * sharpness).flatten(1).softmax(1).mul_(2).view_as(cosines)


def _slope_of_nearest(cosines: Tensor, there: Tensor) -> Tensor:
    """Derivative by each cosine of the mean over points of their largest ones."""
    nearest = F.one_hot(cosines.argmax(2), cosines.shape[2]).to(cosines.dtype)
    nearest *= (there / there.sum(1, keepdim=True)).unsqueeze(2)
    return nearest + nearest.transpose(1, 2)


def _gradient(x: Tensor, slope: Tensor) -> Tensor:
    """From derivatives by cosines to those by points of length 1, along the sphere.

    The cosine of a pair stands in ``slope`` twice, with the whole of its derivative.
    """
    g = slope @ x
    return g.addcmul_((g * x).sum(2, keepdim=True), x, value=-1)


def _start(n: int, k: int, seeds: int) -> Tensor:
    """Random points on the sphere, (seeds, k, min(n, k)).

    Gradients are sums of points, so the points never leave the space they span, and coordinates
    within it will do.
    """
    seed = np.arange(seeds).reshape(-1, 1)
    x = torch.from_numpy(_normal(seed, n, k, np.arange(k * n))).view(seeds, k, n)
    x = torch.linalg.qr(x.transpose(1, 2)).R.transpose(1, 2) if k < n else x
    return F.normalize(x, dim=2).float()


def _normal(*address: int | np.ndarray) -> np.ndarray:
    """Normally distributed numbers that depend on their address alone."""
    return ndtri(uniform(*address) + 2.0**-54)  # never at 0, where it is infinite


def _pad(starts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All problems as one batch with zeros around, and which points are there."""
    k, n = (max(x.shape[axis] for x in starts) for axis in (1, 2))
    x = torch.cat([F.pad(x, (0, n - x.shape[2], 0, k - x.shape[1])) for x in starts])
    return x, x.abs().amax(2) > 0


def _parts(
    problems: Sequence[tuple[int, int]], seeds: int, device: torch.device
) -> Iterator[list[int]]:
    """Indices of problems to solve together: all on a GPU, what a cache holds on a CPU.

    They come sorted by size, so that little is padded.
    """
    room = 2**15 if device.type == "cpu" else 2**27
    part: list[int] = []
    for i in sorted(range(len(problems)), key=lambda i: (problems[i][1], min(problems[i]))):
        if part and (len(part) + 1) * seeds * problems[i][1] ** 2 > room:
            yield part
            part = []
        part.append(i)
    yield part


def _check(
    dims: Sequence[int], points: Sequence[int], steps: int, seeds: int, objective: str
) -> None:
    if not dims or not points:
        raise InputError("dims and points should name at least one number each.")
    for n in dims:
        check_rotation_dim(n)
    if min(points) < 2:
        raise InputError(f"points should be at least 2, got {min(points)}: one has no neighbour.")
    if steps < 1 or seeds < 1:
        raise InputError(f"steps and seeds should be at least 1, got {steps} and {seeds}.")
    if objective not in ("pair", "nearest"):
        raise InputError(f"objective should be 'pair' or 'nearest', got {objective!r}.")
