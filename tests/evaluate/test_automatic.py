"""The number of clusters, found."""

import pytest
import torch
from sklearn.metrics import adjusted_rand_score
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate import cluster, discover, kmeans, kmeans_auto
from rotating_features.evaluate.automatic import silhouette
from rotating_features.evaluate.kmeans import KMeans
from rotating_features.models import RotatingAutoEncoder


def draw(k: int, b: int = 4, *, n: int = 8, p: int = 196, noise: float = 0.15):
    """Points around ``k`` directions at right angles, and which of them each belongs to."""
    axes = torch.linalg.qr(torch.randn(b, n, n)).Q[:, :k]
    owner = torch.randint(k, (b, p))
    points = axes.gather(1, owner.unsqueeze(2).expand(b, p, n))
    return F.normalize(points + noise * torch.randn(b, p, n), dim=2), owner


@pytest.mark.parametrize("n", [8, 12])
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_directions_that_are_far_apart_are_counted(k: int, n: int) -> None:
    points, owner = draw(k, n=n)
    labels = kmeans_auto(points).labels
    for found, true in zip(labels, owner, strict=True):
        assert adjusted_rand_score(true, found) > 0.99


@pytest.mark.parametrize("n", [6, 8, 12])
def test_directions_around_one_are_one(n: int) -> None:
    labels, centers, _ = kmeans_auto(draw(1, n=n)[0])
    assert not labels.any()
    assert centers[:, 1:].isnan().all()


def test_noise_without_any_clusters_is_one() -> None:
    assert not kmeans_auto(torch.randn(4, 300, 5)).labels.any()


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_points_that_are_all_alike_are_one(value: float) -> None:
    labels, centers, inertia = kmeans_auto(torch.full((2, 50, 3), value))
    assert not labels.any()
    torch.testing.assert_close(centers[:, 0], torch.full((2, 3), value))
    assert not inertia.any()


@pytest.mark.parametrize("distinct", [2, 3, 4])
def test_points_at_few_places_are_as_many_clusters(distinct: int) -> None:
    points = torch.eye(5)[:distinct].repeat(1, 20, 1)
    assert len(kmeans_auto(points).labels.unique()) == distinct


def test_an_object_before_background_without_direction_is_two() -> None:
    points, _ = draw(1, b=3)
    points[:, 50:] = 0
    labels = kmeans_auto(points).labels
    assert all(len(image.unique()) == 2 for image in labels)
    assert torch.equal(labels == labels[:, :1], (torch.arange(196) < 50).expand(3, -1))


def test_image_by_image_the_answer_is_that_of_kmeans() -> None:
    points = torch.cat([draw(k, b=1)[0] for k in (1, 3, 5)])
    found = kmeans_auto(points, seed=2)
    for i, k in enumerate((1, 3, 5)):
        wanted = kmeans(points[i : i + 1], k, seed=2)
        assert torch.equal(found.labels[i], wanted.labels[0])
        torch.testing.assert_close(found.centers[i, :k], wanted.centers[0])
        assert found.centers[i, k:].isnan().all()
        torch.testing.assert_close(found.inertia[i], wanted.inertia[0])


def test_masked_points_get_no_label_and_have_no_say() -> None:
    points, owner = draw(3, b=2)
    mask = torch.rand(2, 196) < 0.7
    spoilt = torch.where(mask.unsqueeze(2), points, torch.nan)
    labels = kmeans_auto(spoilt, mask=mask).labels
    assert torch.equal(labels == -1, ~mask)
    for found, true, keep in zip(labels, owner, mask, strict=True):
        assert adjusted_rand_score(true[keep], found[keep]) > 0.99


def test_no_more_clusters_are_found_than_asked_for() -> None:
    points, _ = draw(6)
    assert kmeans_auto(points, most=4).labels.max() <= 3
    assert not kmeans_auto(points, most=1).labels.any()


def test_fewer_points_than_clusters_looked_for_are_no_obstacle() -> None:
    assert kmeans_auto(torch.eye(3)[None]).labels.shape == (1, 3)
    assert kmeans_auto(torch.ones(2, 1, 4)).labels.tolist() == [[0], [0]]


def test_silhouettes_are_those_of_the_definition() -> None:
    points, _ = draw(4, b=3, p=40, noise=0.5)
    mask = torch.rand(3, 40) < 0.8
    found = kmeans(points, 4, mask=mask)
    for x, labels, centers, ours in zip(
        *(points, *found[:2]), silhouette(points, found), strict=True
    ):
        values = []
        for point, label in zip(x.double(), labels.tolist(), strict=True):
            if label >= 0:
                away = [(point - c).norm().item() for c in centers.double()]
                a, b = away[label], min(away[:label] + away[label + 1 :])
                values.append((b - a) / max(a, b))
        assert ours.item() == pytest.approx(sum(values) / len(values), abs=1e-5)


def test_a_cluster_without_points_does_not_change_a_silhouette() -> None:
    points, _ = draw(3, b=1, noise=0.3)
    labels, centers, inertia = kmeans(points, 3)
    more = KMeans(labels, torch.cat([centers, points[:, :1]], 1), inertia)
    assert torch.equal(
        silhouette(points, more), silhouette(points, KMeans(labels, centers, inertia))
    )


def test_one_cluster_has_a_silhouette_of_0() -> None:
    points, _ = draw(2, b=1)
    assert silhouette(points, kmeans(points, 1)).item() == 0


def test_cluster_finds_the_number_if_asked() -> None:
    points = torch.cat([draw(k, b=1)[0] for k in (2, 4)])
    maps = points.mT.unflatten(2, (14, 14))
    found = cluster(maps, k="auto")
    assert [len(image.unique()) for image in found.labels] == [2, 4]
    assert found.uncertainty.isfinite().all()


def test_discover_finds_the_number_if_asked() -> None:
    model = RotatingAutoEncoder(channels=1, size=(16, 16), hidden_dim=4, rotation_dim=3)
    found = discover(model, torch.rand(2, 1, 16, 16), k="auto")
    assert found.labels.shape == (2, 16, 16)
    assert (found.labels >= 0).all()


def test_another_word_than_auto_is_explained() -> None:
    with pytest.raises(InputError, match="a number or 'auto', got 'many'"):
        cluster(torch.randn(1, 2, 4, 4), k="many")


def test_nothing_to_cluster_is_explained() -> None:
    with pytest.raises(InputError, match="1 point, got most=8 and 0 points"):
        kmeans_auto(torch.ones(1, 4, 2), mask=torch.zeros(1, 4, dtype=torch.bool))
