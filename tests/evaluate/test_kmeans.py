"""k-means, against scikit-learn and by its properties."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from rotating_features._check import InputError
from rotating_features.bench import synthetic
from rotating_features.data import BACKGROUND, IGNORE
from rotating_features.evaluate import kmeans
from rotating_features.metrics import adjusted_rand_index

SEED = st.integers(0, 10**9)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Problems as small as these are over before a second thread has woken."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(before)


def noise(seed: int, b: int = 1, p: int = 60, d: int = 3) -> torch.Tensor:
    return torch.randn(b, p, d, generator=torch.Generator().manual_seed(seed))


def blobs(seed: int, b: int, k: int, *, p: int = 200, spread: float = 0.1) -> torch.Tensor:
    """Points around ``k`` orthogonal directions, as a good model's orientations lie."""
    rng = np.random.default_rng(seed)
    centers = np.eye(k)[rng.integers(k, size=(b, p))]
    return torch.from_numpy(centers + spread * rng.standard_normal((b, p, k))).float()


def squared_distances(points: torch.Tensor, centers: torch.Tensor) -> np.ndarray:
    """(b, p, d) and (b, k, d) -> (b, p, k), in float64 and without tricks."""
    x, c = points.double().numpy(), centers.double().numpy()
    return ((x[:, :, None] - c[:, None]) ** 2).sum(3)


def scikit_learn(points: torch.Tensor, k: int) -> list[KMeans]:
    return [KMeans(k, n_init=10, random_state=0).fit(x.double().numpy()) for x in points]


@pytest.mark.parametrize("spread", [0.1, 0.3, 0.5])
def test_inertia_is_within_a_thousandth_of_scikit_learn(spread: float) -> None:
    points = blobs(0, b=24, k=5, spread=spread)
    theirs = np.array([fit.inertia_ for fit in scikit_learn(points, 5)])
    assert (kmeans(points, 5).inertia.numpy() / theirs).mean() < 1.001


def test_inertia_is_that_of_scikit_learn_even_without_clusters() -> None:
    """Every problem then has many local optima, and luck alone makes one percent."""
    points = noise(0, b=24)
    theirs = np.array([fit.inertia_ for fit in scikit_learn(points, 8)])
    assert abs((kmeans(points, 8).inertia.numpy() / theirs).mean() - 1) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.2, 0.3])
def test_scores_are_those_of_scikit_learn(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 200 maps and three seeds of each: a seed alone moves scikit-learn's mean by 0.004."""
    monkeypatch.setattr(synthetic, "NOISE", noise)
    maps, instances = synthetic.orientation_maps(200)
    points = maps.flatten(2).transpose(1, 2)

    def score(labels: torch.Tensor) -> float:
        labels = labels.view_as(instances)
        return float(adjusted_rand_index(labels, instances, skip=(BACKGROUND, IGNORE)).mean())

    ours = [kmeans(points, 5, seed=seed) for seed in range(3)]
    theirs = [[KMeans(5, n_init=10, random_state=seed).fit(x) for x in points] for seed in range(3)]
    inertia = np.mean([fit.inertia_ for fits in theirs for fit in fits])
    assert abs(np.mean([found.inertia.mean() for found in ours]) / inertia - 1) < 0.001
    labels = [torch.tensor(np.stack([fit.labels_ for fit in fits])).long() for fits in theirs]
    difference = np.mean([score(f.labels) for f in ours]) - np.mean([score(f) for f in labels])
    assert abs(difference) < 0.002


def test_separated_clusters_are_those_of_scikit_learn() -> None:
    points = blobs(0, b=20, k=5)
    ours = kmeans(points, 5).labels
    fits = scikit_learn(points, 5)
    scores = [adjusted_rand_score(t.labels_, o) for t, o in zip(fits, ours, strict=True)]
    assert np.mean(scores) > 0.999


def test_points_at_zero_count_as_many_as_they_are() -> None:
    """They are kept as one heavy point, as orientation maps have many of them."""
    points = blobs(0, b=24, k=5, spread=0.3)
    points[:, ::3] = 0
    theirs = np.array([fit.inertia_ for fit in scikit_learn(points, 5)])
    assert (kmeans(points, 5).inertia.numpy() / theirs).mean() < 1.001


def test_clusters_far_from_zero_are_told_apart() -> None:
    points = blobs(0, b=8, k=5)
    here, there = kmeans(points, 5), kmeans(points + 1000, 5)
    for one, other in zip(here.labels, there.labels, strict=True):
        assert adjusted_rand_score(one, other) == 1
    torch.testing.assert_close(here.inertia, there.inertia, rtol=1e-2, atol=0)


def test_how_many_problems_are_solved_at_once_does_not_matter(monkeypatch) -> None:
    points = noise(0, b=5)
    together = kmeans(points, 4)
    monkeypatch.setattr(sys.modules[kmeans.__module__], "_at_once", lambda device: 1)
    apart = kmeans(points, 4)
    assert torch.equal(together.labels, apart.labels)
    torch.testing.assert_close(together.centers, apart.centers)


@pytest.fixture
def tf32() -> Iterator[None]:
    """What training may leave behind."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    yield
    torch.backends.cuda.matmul.fp32_precision = before


@pytest.mark.usefixtures("tf32")
def test_distances_are_taken_in_full_precision_whatever_training_allowed(monkeypatch) -> None:
    module, seen = sys.modules[kmeans.__module__], []
    solve = module._solve

    def spy(*args):
        seen.append(torch.backends.cuda.matmul.fp32_precision)
        return solve(*args)

    monkeypatch.setattr(module, "_solve", spy)
    kmeans(noise(0), 2)
    assert seen == ["ieee"]
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"


@settings(max_examples=20)
@given(SEED, st.integers(1, 8))
def test_every_label_is_that_of_the_nearest_centre(seed: int, k: int) -> None:
    points = noise(seed, b=2)
    found = kmeans(points, k)
    distance = squared_distances(points, found.centers)
    own = np.take_along_axis(distance, found.labels.numpy()[..., None], 2)[..., 0]
    np.testing.assert_allclose(own, distance.min(2), rtol=0, atol=1e-5)


@settings(max_examples=20)
@given(SEED, st.integers(1, 8))
def test_inertia_is_the_sum_of_squared_distances_to_the_nearest_centre(seed, k) -> None:
    points = noise(seed, b=2)
    found = kmeans(points, k)
    nearest = squared_distances(points, found.centers).min(2)
    np.testing.assert_allclose(found.inertia, nearest.sum(1), rtol=1e-5)


@settings(max_examples=15)
@given(SEED)
def test_every_centre_is_the_mean_of_its_points(seed: int) -> None:
    points = noise(seed)
    labels, centers, _ = kmeans(points, 4, tol=0)
    for label, center in enumerate(centers[0]):
        torch.testing.assert_close(center, points[0, labels[0] == label].mean(0))


@settings(max_examples=15)
@given(SEED, st.integers(2, 6))
def test_points_between_two_centres_belong_to_one_alone(seed: int, k: int) -> None:
    """On a grid many are; the centres are still the means of the points that say so."""
    points = noise(seed).mul(2).round()
    labels, centers, _ = kmeans(points, k, tol=0)
    for label in labels.unique():
        torch.testing.assert_close(centers[0, label], points[labels == label].mean(0))


@settings(max_examples=15)
@given(SEED, st.integers(2, 6))
def test_the_answer_does_not_depend_on_the_rest_of_the_batch(seed: int, b: int) -> None:
    """Each problem stops on its own; with so large a tolerance, later steps would show."""
    points = torch.cat([noise(seed, b=b - 1), 100 * noise(seed + 1)])
    together = kmeans(points, 4, tol=0.1)
    for i in range(b):
        alone = kmeans(points[i : i + 1], 4, tol=0.1)
        assert torch.equal(alone.labels[0], together.labels[i])
        torch.testing.assert_close(alone.centers[0], together.centers[i])


@settings(max_examples=15)
@given(SEED, SEED)
def test_masked_points_get_no_label_and_have_no_say(seed: int, other: int) -> None:
    points = noise(seed, b=3)
    mask = torch.rand(3, 60, generator=torch.Generator().manual_seed(other)) < 0.7
    changed = torch.where(mask.unsqueeze(2), points, 50 * noise(other, b=3))
    ours, theirs = kmeans(points, 3, mask=mask), kmeans(changed, 3, mask=mask)
    assert torch.equal(ours.labels == -1, ~mask)
    assert torch.equal(ours.labels, theirs.labels)
    assert torch.equal(ours.centers, theirs.centers)
    assert torch.equal(ours.inertia, theirs.inertia)


def test_masked_points_may_be_anything_even_nan() -> None:
    points = noise(0)
    mask = torch.ones(1, 60, dtype=torch.bool)
    mask[0, 7] = False
    points[0, 7] = torch.nan
    assert kmeans(points, 3, mask=mask).inertia.isfinite().all()


def test_no_centre_lies_on_a_masked_point() -> None:
    """Not even when there are more clusters than distinct points to put them on."""
    points = torch.zeros(1, 6, 2)
    points[0, -1] = 9
    mask = torch.tensor([[True] * 5 + [False]])
    assert torch.equal(kmeans(points, 2, mask=mask).centers, torch.zeros(1, 2, 2))


def test_a_mask_is_the_same_as_leaving_points_out() -> None:
    points = blobs(0, b=1, k=3)
    mask = torch.ones(1, 200, dtype=torch.bool)
    mask[0, 150:] = False
    with_mask, without = kmeans(points, 3, mask=mask), kmeans(points[:, :150], 3)
    assert adjusted_rand_score(with_mask.labels[0, :150], without.labels[0]) == 1
    torch.testing.assert_close(with_mask.inertia, without.inertia)


def test_one_cluster_is_the_mean() -> None:
    points = noise(0, b=2)
    labels, centers, inertia = kmeans(points, 1)
    assert not labels.any()
    torch.testing.assert_close(centers.squeeze(1), points.mean(1))
    torch.testing.assert_close(inertia, points.var(1, correction=0).sum(1) * 60)


def test_a_cluster_for_every_point_gives_each_its_own() -> None:
    points = noise(0, b=2, p=7)
    labels, _, inertia = kmeans(points, 7)
    assert labels.sort(dim=1).values.tolist() == [list(range(7))] * 2
    torch.testing.assert_close(inertia, torch.zeros(2), rtol=0, atol=1e-5)


def test_equal_points_are_one_cluster() -> None:
    labels, centers, inertia = kmeans(torch.full((2, 10, 3), 0.7), 4)
    assert not labels.any()
    assert not inertia.any()
    torch.testing.assert_close(centers, torch.full((2, 4, 3), 0.7))


def test_the_same_seed_gives_the_same_answer() -> None:
    points = noise(0, b=3)
    one, two = kmeans(points, 5, seed=3), kmeans(points, 5, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_the_seed_decides_the_start() -> None:
    points = noise(0, b=3)
    one, two = (kmeans(points, 5, restarts=1, max_iter=1, seed=seed) for seed in (0, 1))
    assert not torch.equal(one.centers, two.centers)


def test_more_restarts_are_better_on_average() -> None:
    points = noise(0, b=20)
    few, many = (kmeans(points, 8, restarts=r).inertia.mean() for r in (1, 10))
    assert many < few


def test_points_may_come_with_a_graph_and_the_answer_has_none() -> None:
    assert not kmeans(noise(0).requires_grad_(), 3).centers.requires_grad


@pytest.mark.parametrize("k", [0, -1, 11])
def test_a_k_beyond_the_number_of_points_is_explained(k: int) -> None:
    with pytest.raises(InputError, match=rf"got k={k} for 10 points"):
        kmeans(noise(0, p=10), k)


def test_masked_points_do_not_count_towards_k() -> None:
    mask = torch.arange(10).expand(2, 10) < torch.tensor([[10], [4]])
    with pytest.raises(InputError, match="got k=5 for 4 points"):
        kmeans(noise(0, b=2, p=10), 5, mask=mask)


@pytest.mark.parametrize("option", ["restarts", "max_iter"])
def test_zero_tries_are_explained(option: str) -> None:
    with pytest.raises(InputError, match="at least 1"):
        kmeans(noise(0), 2, **{option: 0})


def test_points_without_a_batch_axis_are_explained() -> None:
    with pytest.raises(InputError, match=r"\(b, p, d\), got \(60, 3\)"):
        kmeans(noise(0)[0], 2)


def test_a_mask_of_another_shape_is_explained() -> None:
    with pytest.raises(InputError, match=r"mask should have shape \(b=1, p=60\)"):
        kmeans(noise(0), 2, mask=torch.ones(1, 59, dtype=torch.bool))


def test_autocast_changes_nothing() -> None:
    points = torch.randn(3, 50, 4)
    exact = kmeans(points, k=3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(kmeans(points, k=3).inertia, exact.inertia)
