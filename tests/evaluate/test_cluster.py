"""Objects from orientation maps, without looking at any label."""

import numpy as np
import pytest
import torch
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from rotating_features._check import InputError
from rotating_features.evaluate import cluster, kmeans

OPTIONS = {"kmeans": {"k": 4}, "agglomerative": {"distance_threshold": 2.0}}


def draw(seed: int = 0, b: int = 3, *, n: int = 4, side: int = 8) -> torch.Tensor:
    """Unit vectors around the axes, and a few zeros."""
    rng = torch.Generator().manual_seed(seed)
    axis = torch.eye(n)[torch.randint(n, (b, side, side), generator=rng)].movedim(-1, 1)
    noisy = axis + 0.3 * torch.randn(b, n, side, side, generator=rng)
    there = torch.rand(b, 1, side, side, generator=rng) < 0.8
    return torch.nn.functional.normalize(noisy, dim=1) * there


def some(orientations: torch.Tensor) -> torch.Tensor:
    rng = torch.Generator().manual_seed(1)
    return torch.rand(orientations[:, 0].shape, generator=rng) < 0.7


def as_points(image: torch.Tensor) -> np.ndarray:
    return image.flatten(1).T.double().numpy()


@pytest.mark.parametrize("threshold", [0.5, 1.0, 2.0, 5.0])
def test_agglomerative_clusters_are_those_of_scikit_learn(threshold: float) -> None:
    orientations = draw()
    ours = cluster(orientations, "agglomerative", distance_threshold=threshold).labels
    ward = AgglomerativeClustering(n_clusters=None, distance_threshold=threshold)
    for image, labels in zip(orientations, ours, strict=True):
        theirs = ward.fit_predict(as_points(image))
        assert adjusted_rand_score(theirs, labels.flatten()) == 1


def test_agglomerative_clusters_under_a_mask_are_those_of_scikit_learn() -> None:
    orientations = draw()
    mask = some(orientations)
    ours = cluster(orientations, "agglomerative", distance_threshold=2.0, mask=mask).labels
    ward = AgglomerativeClustering(n_clusters=None, distance_threshold=2.0)
    for image, labels, keep in zip(orientations, ours, mask, strict=True):
        theirs = ward.fit_predict(as_points(image)[keep.flatten()])
        assert adjusted_rand_score(theirs, labels[keep]) == 1


def test_kmeans_clusters_are_those_of_kmeans() -> None:
    orientations = draw()
    labels, centers, _ = kmeans(orientations.flatten(2).transpose(1, 2), 4, seed=5)
    found = cluster(orientations, "kmeans", k=4, seed=5)
    assert torch.equal(found.labels, labels.view_as(found.labels))
    assert torch.equal(found.centers, centers)


@pytest.mark.parametrize("method", OPTIONS)
@pytest.mark.parametrize("masked", [False, True])
def test_uncertainty_is_the_distance_to_the_nearest_centre(method, masked: bool) -> None:
    orientations = draw()
    mask = some(orientations) if masked else None
    found = cluster(orientations, method, mask=mask, **OPTIONS[method])
    for image, centers, doubt in zip(orientations, found.centers, found.uncertainty, strict=True):
        real = centers[~centers.isnan().any(1)].double().numpy()
        distance = np.sqrt(((as_points(image)[:, None] - real) ** 2).sum(2)).min(1)
        np.testing.assert_allclose(doubt.flatten(), distance, rtol=0, atol=1e-5)


@pytest.mark.parametrize("method", OPTIONS)
def test_centres_are_the_means_of_their_clusters(method) -> None:
    orientations = draw()
    labels, _, centers = cluster(orientations, method, **OPTIONS[method])
    for image, found, center in zip(orientations, labels, centers, strict=True):
        for label in found.unique():
            torch.testing.assert_close(
                center[label], image[:, found == label].mean(1), rtol=0, atol=1e-3
            )


def test_images_may_have_different_numbers_of_clusters() -> None:
    """Rows of nan fill up the table of centres and disturb nothing."""
    one = torch.zeros(1, 4, 8, 8)
    found = cluster(torch.cat([one, draw(b=1)]), "agglomerative", distance_threshold=2.0)
    assert found.centers[0].isnan().any(1).tolist() == [False] + [True] * (
        len(found.centers[0]) - 1
    )
    assert found.uncertainty.isfinite().all()


@pytest.mark.parametrize("method", OPTIONS)
def test_masked_pixels_get_no_label_and_have_no_say(method) -> None:
    orientations = draw()
    mask = some(orientations)
    changed = torch.where(mask.unsqueeze(1), orientations, draw(seed=9))
    ours = cluster(orientations, method, mask=mask, **OPTIONS[method])
    theirs = cluster(changed, method, mask=mask, **OPTIONS[method])
    assert torch.equal(ours.labels == -1, ~mask)
    assert torch.equal(ours.labels, theirs.labels)
    torch.testing.assert_close(ours.centers, theirs.centers, equal_nan=True)


@pytest.mark.parametrize("method", OPTIONS)
def test_an_image_alone_gets_the_labels_it_gets_in_a_batch(method) -> None:
    orientations = draw()
    together = cluster(orientations, method, **OPTIONS[method]).labels
    alone = [cluster(image[None], method, **OPTIONS[method]).labels for image in orientations]
    assert torch.equal(together, torch.cat(alone))


def test_an_unknown_method_is_explained() -> None:
    with pytest.raises(InputError, match="'kmeans' or 'agglomerative', got 'spectral'"):
        cluster(draw(), "spectral", k=4)


def test_a_missing_k_is_explained() -> None:
    with pytest.raises(InputError, match=r"number of clusters: pass k, e\.g\. k=5"):
        cluster(draw(), "kmeans")


@pytest.mark.parametrize("threshold", [None, 0, -1.0])
def test_a_bad_threshold_is_explained(threshold: float | None) -> None:
    with pytest.raises(InputError, match=rf"distance_threshold above 0.* got {threshold}"):
        cluster(draw(), "agglomerative", distance_threshold=threshold)


def test_too_few_pixels_for_agglomerative_clustering_are_explained() -> None:
    mask = torch.zeros(3, 8, 8, dtype=torch.bool)
    with pytest.raises(InputError, match="at least 2 points, got 0"):
        cluster(draw(), "agglomerative", distance_threshold=2.0, mask=mask)


def test_features_instead_of_orientations_are_explained() -> None:
    with pytest.raises(InputError, match=r"\(b, n, h, w\), got .*\n.*orientation_map"):
        cluster(torch.zeros(1, 3, 1, 8, 8), k=2)


def test_a_mask_of_another_shape_is_explained() -> None:
    with pytest.raises(InputError, match=r"mask should have shape \(b=3, h=8, w=8\)"):
        cluster(draw(), k=2, mask=torch.ones(3, 4, 8, dtype=torch.bool))
