"""Points on spheres, against known optima, automatic gradients and a plain optimiser."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.theory import Objective, hypersphere_capacity, optimal_cosine
from rotating_features.theory import hypersphere as ours

KNOWN = [
    (n, k) for n in (2, 3, 4, 6, 9) for k in range(2, 13) if not math.isnan(optimal_cosine(n, k))
]
OBJECTIVES: tuple[Objective, ...] = ("pair", "nearest")
SHARP = 7.0


def random_points(b: int, k: int, n: int, seed: int = 0) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(b, k, n, generator=rng, dtype=torch.double), dim=2)


def all_there(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(x.shape[:2], dtype=torch.bool)


def loss(x: torch.Tensor, objective: Objective, sharpness: float = SHARP) -> torch.Tensor:
    """What is minimised for one set of points, cosine by cosine."""
    k = len(x)
    rows = [
        torch.stack([F.cosine_similarity(x[i], x[j], dim=0) for j in range(k) if j != i])
        for i in range(k)
    ]
    if objective == "nearest":
        return torch.stack([row.max() for row in rows]).mean()
    return (torch.cat(rows) * sharpness).logsumexp(0) / sharpness


def our_gradient(x: torch.Tensor, there: torch.Tensor, objective: Objective) -> torch.Tensor:
    cosines = ours._between(x, ours._bar(there, x.dtype))
    if objective == "pair":
        return ours._gradient(x, ours._slope_of_any(cosines, SHARP))
    return ours._gradient(x, ours._slope_of_nearest(cosines, there))


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 6), n=st.integers(2, 5))
@settings(max_examples=25)
def test_the_gradient_is_that_of_the_loss(objective: Objective, seed: int, k: int, n: int) -> None:
    x = random_points(1, k, n, seed).requires_grad_()
    (auto,) = torch.autograd.grad(loss(x[0], objective), x)
    torch.testing.assert_close(our_gradient(x.detach(), all_there(x), objective), auto)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_padding_changes_no_gradient_and_gets_none(objective: Objective) -> None:
    x = random_points(3, 4, 3)
    padded = F.pad(x, (0, 2, 0, 3))
    there = F.pad(all_there(x), (0, 3))
    gradient = our_gradient(padded, there, objective)
    torch.testing.assert_close(gradient[:, :4, :3], our_gradient(x, all_there(x), objective))
    assert not gradient[:, 4:].any()
    assert not gradient[..., 3:].any()


def test_a_descent_is_that_of_a_plain_optimiser() -> None:
    x = random_points(1, 5, 3)
    points = x[0].clone().requires_grad_()
    optimiser = torch.optim.SGD([points], lr=0.1, momentum=0.9)
    for _ in range(20):
        optimiser.zero_grad()
        loss(points, "nearest").backward()
        optimiser.step()
        points.data = F.normalize(points.data, dim=1)
    found = ours._descend(x, all_there(x), ours._Descent(20, 0.1, 0.9, "nearest"))
    torch.testing.assert_close(found[0], points.detach())


def test_every_known_optimum_is_reached_and_none_is_beaten() -> None:
    dims, points = sorted({n for n, _ in KNOWN}), sorted({k for _, k in KNOWN})
    found = hypersphere_capacity(dims, points, steps=1500, seeds=2)
    for n, k in KNOWN:
        reached = found[dims.index(n), points.index(k)]
        assert (reached >= optimal_cosine(n, k) - 1e-6).all(), (n, k)
        assert (reached <= optimal_cosine(n, k) + 2e-3).all(), (n, k)


def test_twelve_points_in_space_form_an_icosahedron() -> None:
    found = hypersphere_capacity([3], [12], steps=1000, seeds=3)
    assert found.flatten().tolist() == pytest.approx([1 / math.sqrt(5)] * 3, abs=1e-3)


def test_the_nearest_objective_comes_close_in_high_dimensions() -> None:
    found = hypersphere_capacity([16], [8], steps=1000, seeds=2, objective="nearest")
    assert (found >= -1 / 7 - 1e-6).all()
    assert (found < 0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_problem_does_not_depend_on_its_company(objective: Objective) -> None:
    """Only rounding may differ, so few steps are taken."""
    together = hypersphere_capacity([2, 5, 20], [3, 7], steps=5, seeds=2, objective=objective)
    alone = hypersphere_capacity([5], [7], steps=5, seeds=1, objective=objective)
    torch.testing.assert_close(together[1, 1, :1], alone[0, 0], rtol=0, atol=1e-4)
    assert together.shape == (3, 2, 2)


def test_seeds_differ_and_repeat() -> None:
    once, again = (hypersphere_capacity([3], [7], steps=1, seeds=2) for _ in range(2))
    assert torch.equal(once, again)
    assert once[0, 0, 0] != once[0, 0, 1]


def test_points_in_the_space_they_span_have_the_cosines_they_had() -> None:
    """Four points in nine dimensions need four coordinates."""
    small = ours._start(9, 4, seeds=3)
    numbers = ours._normal(torch.arange(3).view(-1, 1).numpy(), 9, 4, torch.arange(36).numpy())
    full = F.normalize(torch.from_numpy(numbers).view(3, 4, 9), dim=2).float()
    assert small.shape == (3, 4, 4)
    torch.testing.assert_close(small @ small.mT, full @ full.mT, rtol=0, atol=1e-6)


def test_starts_are_spread_over_the_sphere() -> None:
    x = ours._start(3, 200, seeds=20).flatten(0, 1)
    torch.testing.assert_close(x.norm(dim=1), torch.ones(len(x)))
    torch.testing.assert_close(x.T @ x / len(x), torch.eye(3) / 3, rtol=0, atol=0.03)
    assert x.mean(0).norm() < 0.05


def test_parts_have_each_problem_once() -> None:
    problems = [(n, k) for n in range(2, 12) for k in range(2, 30)]
    for device in ("cpu", "cuda"):
        parts = list(ours._parts(problems, 10, torch.device(device)))
        assert sorted(i for part in parts for i in part) == list(range(len(problems)))
        assert (len(parts) > 1) == (device == "cpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": []}, "at least one number"),
        ({"dims": [1]}, "at least 2, got 1"),
        ({"points": [3, 1]}, "at least 2, got 1"),
        ({"steps": 0}, "at least 1, got 0"),
        ({"seeds": 0}, "at least 1, got 3 and 0"),
        ({"objective": "all"}, "'pair' or 'nearest', got 'all'"),
    ],
)
def test_mistakes_are_explained(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hypersphere_capacity(**{"dims": [2], "points": [2], "steps": 3, **arguments})


@pytest.mark.gpu
def test_a_gpu_reaches_the_optimum_too() -> None:
    found = hypersphere_capacity([2, 3, 10], [2, 4, 11], steps=1500, seeds=2, device="cuda")
    assert found.device.type == "cpu"
    assert found[2, 2].tolist() == pytest.approx([-0.1, -0.1], abs=1e-3)
