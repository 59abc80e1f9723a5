"""What is batched for a GPU finds there what it finds on the CPU."""

import pytest
import torch

from rotating_features.evaluate import (
    PHOTO_PROTOCOLS,
    cluster,
    kmeans,
    kmeans_auto,
    mode_filter,
)
from rotating_features.evaluate.ward import ward
from rotating_features.metrics import adjusted_rand_index, mean_best_overlap, mean_iou

pytestmark = pytest.mark.gpu


def orientations(b: int = 50, n: int = 6) -> torch.Tensor:
    """Unit vectors around the axes, and many zeros."""
    axis = torch.eye(n)[torch.randint(n, (b, 16, 16))].movedim(-1, 1)
    there = torch.rand(b, 1, 16, 16) < 0.4
    return torch.nn.functional.normalize(axis + 0.2 * torch.randn(b, n, 16, 16), dim=1) * there


def test_kmeans() -> None:
    points = orientations().flatten(2).transpose(1, 2)
    here, there = kmeans(points, 7), kmeans(points.cuda(), 7)
    torch.testing.assert_close(here.inertia, there.inertia.cpu(), rtol=0.02, atol=0)
    assert (
        adjusted_rand_index(
            here.labels.view(-1, 16, 16), there.labels.cpu().view(-1, 16, 16)
        ).mean()
        > 0.95
    )


@pytest.mark.parametrize("threshold", [0.5, 1.0, 5.0])
def test_ward(threshold: float) -> None:
    points = orientations().flatten(2).transpose(1, 2)
    for x in (points, points.mul(4).round()):
        assert torch.equal(ward(x.cuda(), threshold).cpu(), ward(x, threshold))


def test_agglomerative_clusters_with_centres_and_uncertainty() -> None:
    maps = orientations()
    here = cluster(maps, "agglomerative", distance_threshold=2.0)
    there = cluster(maps.cuda(), "agglomerative", distance_threshold=2.0)
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=0, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("radius", [1, 22, 95])
def test_mode_filter(radius: int) -> None:
    labels = torch.randint(-1, 12, (20, 100, 130))
    assert torch.equal(mode_filter(labels.cuda(), radius).cpu(), mode_filter(labels, radius))


def test_metrics() -> None:
    pred, target = torch.randint(6, (50, 40, 40)), torch.randint(-1, 5, (50, 40, 40))
    for metric in (
        adjusted_rand_index,
        mean_best_overlap,
        lambda p, t: mean_iou(p, t, 6),
    ):
        there = metric(pred.cuda(), target.cuda()).cpu()
        torch.testing.assert_close(there, metric(pred, target), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PHOTO_PROTOCOLS)
def test_scores_of_photographs(name: str) -> None:
    protocol = PHOTO_PROTOCOLS[name]
    grid, (instances, classes) = (
        torch.randint(4, (9, 14, 14)),
        torch.randint(-1, 6, (2, 9, 320, 320)),
    )
    here, there = protocol.fit_labels(grid), protocol.fit_labels(grid.cuda())
    assert (here == there.cpu()).float().mean() > 0.999  # planes may tie
    scores = protocol.score(here.cuda(), instances.cuda(), classes.cuda())
    for key, wanted in protocol.score(here, instances, classes).items():
        torch.testing.assert_close(scores[key].cpu(), wanted, rtol=0, atol=1e-12)


def test_the_number_of_clusters_is_found() -> None:
    owner = torch.randint(5, (20, 196))
    points = torch.eye(8)[owner] + 0.1 * torch.randn(20, 196, 8)
    labels = kmeans_auto(points.cuda()).labels.cpu()
    assert (adjusted_rand_index(labels.unsqueeze(1), owner.unsqueeze(1)) > 0.99).all()
