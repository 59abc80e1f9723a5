"""Mean best overlap, against a slow reading of its definition and by its properties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.metrics import mean_best_overlap

SEED = st.integers(0, 10**9)
CLUSTERS = st.integers(1, 12)


def draw(seed: int, k: int, *, low: int = 0, b: int = 4) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(low, max(k, low + 1), (b, 7, 8), generator=rng)


def slow_mbo(pred: np.ndarray, target: np.ndarray) -> float:
    """One image, mask by mask: what the definition says, with no shared arithmetic."""
    counted = target != -1
    found = [(pred == label) & counted for label in np.unique(pred)]
    best = []
    for label in np.unique(target):
        if label > 0:
            true = (target == label) & counted
            best.append(max((true & mask).sum() / (true | mask).sum() for mask in found))
    return float(np.mean(best)) if best else math.nan


@given(SEED, SEED, CLUSTERS, CLUSTERS)
def test_agrees_with_a_slow_reading_of_the_definition(one, other, found, true) -> None:
    pred, target = draw(one, found), draw(other, true, low=-1)
    slow = [slow_mbo(p.numpy(), t.numpy()) for p, t in zip(pred, target, strict=True)]
    ours = mean_best_overlap(pred, target)
    torch.testing.assert_close(
        ours, torch.tensor(slow, dtype=torch.double), rtol=0, atol=1e-12, equal_nan=True
    )


@given(SEED, st.permutations(range(6)))
def test_names_of_clusters_do_not_matter(seed: int, names: list[int]) -> None:
    pred, target = draw(seed, 6), draw(seed + 1, 5, low=-1)
    renamed = torch.tensor(names)[pred]
    assert torch.equal(mean_best_overlap(renamed, target), mean_best_overlap(pred, target))


@given(SEED, SEED)
def test_predictions_on_ignored_pixels_do_not_matter(seed: int, other: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 5, low=-1)
    changed = torch.where(target == -1, draw(other, 9), pred)
    assert torch.equal(mean_best_overlap(changed, target), mean_best_overlap(pred, target))


@given(SEED)
def test_an_image_scores_the_same_alone_and_in_a_batch(seed: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 5, low=-1)
    alone = [mean_best_overlap(p[None], t[None]) for p, t in zip(pred, target, strict=True)]
    assert torch.equal(mean_best_overlap(pred, target), torch.cat(alone))


@given(SEED, st.integers(2, 9))
def test_the_truth_scores_1(seed: int, k: int) -> None:
    target = draw(seed, k)
    assert mean_best_overlap(target + 3, target).tolist() == [1.0] * 4


def test_a_mask_that_spills_over_the_background_loses() -> None:
    target = torch.tensor([[[0, 0, 1, 1]]])
    spilled = torch.tensor([[[0, 1, 1, 1]]])
    assert mean_best_overlap(spilled, target).item() == pytest.approx(2 / 3, abs=1e-15)


def test_finding_the_background_earns_nothing() -> None:
    target = torch.tensor([[[0, 0, 0, 0, 1, 2]]])
    merged = torch.tensor([[[0, 0, 0, 0, 1, 1]]])
    assert mean_best_overlap(merged, target).item() == 0.5


def test_one_mask_may_be_the_best_of_two_objects() -> None:
    target = torch.tensor([[[1, 1, 2, 2]]])
    assert mean_best_overlap(torch.zeros_like(target), target).item() == 0.5


def test_an_image_without_objects_is_nan_and_the_others_are_not() -> None:
    target = torch.tensor([[[0, -1]], [[0, 1]]])
    assert mean_best_overlap(target, target).isnan().tolist() == [True, False]


def test_predictions_of_another_size_are_explained() -> None:
    with pytest.raises(InputError, match=r"w=8.*got \(4, 7, 7\)(.|\n)*Resize predictions"):
        mean_best_overlap(draw(0, 3)[..., 1:], draw(0, 3))


@given(SEED)
def test_far_apart_and_negative_names_of_objects_score_like_small_ones(seed: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 5, low=-1)
    far = torch.where(target > 0, 10**6 * target, target)
    assert torch.equal(mean_best_overlap(-(10**9) * pred, far), mean_best_overlap(pred, target))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.float32])
def test_labels_of_any_type_are_taken(dtype: torch.dtype) -> None:
    target = draw(0, 2)
    assert mean_best_overlap(target.to(dtype), target.to(dtype)).tolist() == [1.0] * 4
