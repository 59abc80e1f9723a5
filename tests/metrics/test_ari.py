"""Adjusted Rand index, against scikit-learn and by its properties."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from rotating_features._check import InputError
from rotating_features.metrics import adjusted_rand_index

SEED = st.integers(0, 10**9)
CLUSTERS = st.integers(1, 40)


def draw(seed: int, k: int, *, low: int = 0, b: int = 4, side: int = 9) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(low, max(k, low + 1), (b, side, side), generator=rng)


def scikit_learn(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    pairs = zip(pred.flatten(1), target.flatten(1), strict=True)
    return torch.tensor([adjusted_rand_score(t, p) for p, t in pairs], dtype=torch.double)


@pytest.mark.filterwarnings("ignore:The number of unique classes")  # of older scikit-learn
@given(SEED, SEED, CLUSTERS, CLUSTERS)
def test_agrees_with_scikit_learn(one: int, other: int, found: int, true: int) -> None:
    pred, target = draw(one, found), draw(other, true)
    ours = adjusted_rand_index(pred, target)
    torch.testing.assert_close(ours, scikit_learn(pred, target), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The number of unique classes")  # of older scikit-learn
@given(SEED, SEED, CLUSTERS)
def test_agrees_with_scikit_learn_on_the_pixels_that_are_not_skipped(one, other, k) -> None:
    pred, target = draw(one, k), draw(other, 5, low=-1)
    kept = target > 0
    ours = adjusted_rand_index(pred, target, skip=(0, -1))
    theirs = [
        scikit_learn(p[keep][None], t[keep][None])
        for p, t, keep in zip(pred, target, kept, strict=True)
    ]
    torch.testing.assert_close(ours, torch.cat(theirs), rtol=0, atol=1e-12)


@given(SEED, st.permutations(range(6)))
def test_names_of_clusters_do_not_matter(seed: int, names: list[int]) -> None:
    pred, target = draw(seed, 6), draw(seed + 1, 6)
    renamed = torch.tensor(names)[pred]
    torch.testing.assert_close(
        adjusted_rand_index(renamed, target), adjusted_rand_index(pred, target), rtol=0, atol=1e-12
    )


@given(SEED, SEED)
def test_predictions_on_skipped_pixels_do_not_matter(seed: int, other: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 4, low=-1)
    changed = torch.where(target <= 0, draw(other, 99), pred)
    torch.testing.assert_close(
        adjusted_rand_index(changed, target, skip=(0, -1)),
        adjusted_rand_index(pred, target, skip=(0, -1)),
        rtol=0,
        atol=1e-12,
    )


@given(SEED)
def test_an_image_scores_the_same_alone_and_in_a_batch(seed: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 5, low=-1)
    batch = adjusted_rand_index(pred, target, skip=(-1,))
    alone = [
        adjusted_rand_index(p[None], t[None], skip=(-1,)) for p, t in zip(pred, target, strict=True)
    ]
    assert torch.equal(batch, torch.cat(alone))


@given(SEED, CLUSTERS)
def test_the_truth_scores_1(seed: int, k: int) -> None:
    target = draw(seed, k)
    assert adjusted_rand_index(target + 3, target).tolist() == [1.0] * 4


def test_chance_scores_0_on_average() -> None:
    pred, target = draw(0, 4, b=2_000), draw(1, 4, b=2_000)
    assert abs(adjusted_rand_index(pred, target).mean()) < 1e-3


def test_one_cluster_over_two_objects_scores_0() -> None:
    target = torch.tensor([[[1, 1, 2, 2]]])
    assert adjusted_rand_index(torch.zeros_like(target), target).tolist() == [0.0]


def test_nothing_to_score_is_nan_for_that_image_alone() -> None:
    target = torch.stack([torch.zeros(4, 4).long(), torch.arange(16).view(4, 4)])
    scores = adjusted_rand_index(target, target, skip=(0,))
    assert scores.isnan().tolist() == [True, False]


def test_a_large_image_is_scored_exactly() -> None:
    """Its pixel pairs outgrow what float32 can count."""
    pred, target = draw(0, 5, b=1, side=640), draw(1, 3, b=1, side=640)
    pred = torch.where(draw(2, 2, b=1, side=640) == 0, target, pred)
    ours = adjusted_rand_index(pred, target)
    torch.testing.assert_close(ours, scikit_learn(pred, target), rtol=0, atol=1e-12)


def test_predictions_of_another_size_are_explained() -> None:
    with pytest.raises(InputError, match=r"h=9.*got \(4, 8, 8\)(.|\n)*Resize predictions"):
        adjusted_rand_index(draw(0, 3, side=8), draw(0, 3, side=9))


def test_an_image_without_a_batch_axis_is_explained() -> None:
    with pytest.raises(InputError, match=r"\(b, h, w\), got \(9, 9\)"):
        adjusted_rand_index(draw(0, 3)[0], draw(0, 3)[0])


def test_no_images_at_all_are_explained() -> None:
    with pytest.raises(InputError, match="empty"):
        adjusted_rand_index(draw(0, 3, b=0), draw(0, 3, b=0))
