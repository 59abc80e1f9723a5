"""Ward clustering: scikit-learn's clusters, and SciPy's tree to the last bit, ties and all."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import AgglomerativeClustering

from rotating_features._check import InputError
from rotating_features.evaluate.ward import _distances, _name, chain, ward

SEED = st.integers(0, 10**9)
KINDS = ("noise", "grid", "duplicates", "orientations")


def draw(kind: str, seed: int = 0, *, b: int = 2, p: int = 40, d: int = 3) -> torch.Tensor:
    """Points of which none, many or most have distances in common."""
    rng = torch.Generator().manual_seed(seed)
    points = torch.randn(b, p, d, generator=rng)
    if kind == "grid":
        return points.round()
    if kind == "duplicates":
        copied = torch.randint(p, (b, p, 1), generator=rng).expand(b, p, d)
        return points.gather(1, copied)
    if kind == "orientations":
        there = torch.rand(b, p, 1, generator=rng) < 0.4
        return torch.nn.functional.normalize(points, dim=2) * there
    return points


def scikit_learn(points: torch.Tensor, threshold: float) -> np.ndarray:
    model = AgglomerativeClustering(n_clusters=None, distance_threshold=threshold)
    return model.fit_predict(points.double().numpy())


def assert_same_partition(ours: torch.Tensor, theirs: np.ndarray) -> None:
    pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
    assert len(pairs) == len(set(ours.tolist())) == len(set(theirs.tolist()))


def heights(points: torch.Tensor) -> np.ndarray:
    """The distances at which SciPy joins clusters, in rising order."""
    return linkage(pdist(points.double().numpy()), "ward")[:, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threshold", [0.01, 0.7, 1.0, 2.0, 5.0, 100.0])
def test_clusters_are_those_of_scikit_learn(kind: str, threshold: float) -> None:
    points = draw(kind, b=4)
    for x, labels in zip(points, ward(points, threshold), strict=True):
        assert_same_partition(labels, scikit_learn(x, threshold))


@pytest.mark.parametrize("kind", KINDS)
def test_a_threshold_that_is_a_height_cuts_as_scikit_learn_does(kind: str) -> None:
    points = draw(kind, b=1)
    for threshold in set(heights(points[0]).tolist()) - {0.0}:
        assert_same_partition(ward(points, threshold)[0], scikit_learn(points[0], threshold))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(seed=SEED, p=st.integers(2, 40), d=st.integers(1, 10))
def test_the_chain_joins_at_the_distances_of_scipy_to_the_last_bit(kind, seed, p, d) -> None:
    points = draw(kind, seed, p=p, d=d)
    _, height = chain(points, torch.ones(2, p, dtype=torch.bool))
    for x, found in zip(points, height, strict=True):
        np.testing.assert_array_equal(np.sort(found)[:-1], heights(x))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(seed=SEED, threshold=st.sampled_from([0.5, 1.0, 2.0, 5.0]))
def test_the_chain_finds_the_clusters_and_their_names(kind, seed, threshold) -> None:
    """Those of the way through SciPy, under a mask as well."""
    points = draw(kind, seed)
    mask = torch.rand(2, 40, generator=torch.Generator().manual_seed(seed)) < 0.7
    to, height = chain(points, mask)
    found = _name(torch.where(height < threshold, to, -1), mask)
    assert torch.equal(found, ward(points, threshold, mask=mask))


@settings(max_examples=20)
@given(SEED, st.integers(1, 12))
def test_distances_are_those_of_scipy_to_the_last_bit(seed: int, d: int) -> None:
    points = draw("noise", seed, b=1, d=d).double()
    ours = _distances(points)[0].fill_diagonal_(0)
    np.testing.assert_array_equal(ours, squareform(pdist(points[0].numpy())))


@given(SEED)
def test_clusters_are_named_in_the_order_of_their_last_points(seed: int) -> None:
    labels = ward(draw("orientations", seed), 1.0)
    for found in labels:
        names, place = np.unique(found.flip(0).numpy(), return_index=True)
        assert names.tolist() == list(range(len(names)))
        assert np.all(np.diff(place) < 0)


def test_masked_points_get_no_label_and_have_no_say() -> None:
    points, mask = draw("noise"), draw("noise", 1)[..., 0] > -0.5
    labels = ward(points, 2.0, mask=mask)
    assert torch.equal(labels == -1, ~mask)
    for x, keep, found in zip(points, mask, labels, strict=True):
        assert_same_partition(found[keep], scikit_learn(x[keep], 2.0))


def test_too_few_points_are_explained() -> None:
    with pytest.raises(InputError, match="at least 2 points, got 1"):
        ward(torch.zeros(1, 1, 3), 1.0)


def test_more_points_than_memory_has_pairs_for_are_refused() -> None:
    with pytest.raises(InputError, match=r"25,000 points at most, got 25,001.\n  Use k-means"):
        ward(torch.zeros(1, 25_001, 1), 1.0)
