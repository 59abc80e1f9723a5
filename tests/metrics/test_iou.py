"""Intersection over union, against scikit-learn, a slow reading and by its properties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score

from rotating_features._check import InputError
from rotating_features.metrics import class_overlap, mean_iou

SEED = st.integers(0, 10**9)
CLASSES = st.integers(1, 12)


def draw(seed: int, classes: int, *, low: int = 0, b: int = 4) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(low, classes, (b, 7, 8), generator=rng)


def slow_iou(pred: np.ndarray, target: np.ndarray, label: int) -> float:
    """One image and class, mask by mask."""
    counted = target != -1
    found, true = (pred == label) & counted, (target == label) & counted
    union = (found | true).sum()
    return (found & true).sum() / union if union else math.nan


@given(SEED, SEED, CLASSES)
def test_agrees_with_a_slow_reading_of_the_definition(one: int, other: int, classes: int) -> None:
    pred, target = draw(one, classes, low=-1), draw(other, classes, low=-1)
    slow = [
        [slow_iou(p.numpy(), t.numpy(), label) for label in range(classes)]
        for p, t in zip(pred, target, strict=True)
    ]
    ours = class_overlap(pred, target, classes).iou
    torch.testing.assert_close(
        ours, torch.tensor(slow, dtype=torch.double), rtol=0, atol=1e-12, equal_nan=True
    )


@given(SEED, SEED, CLASSES)
def test_agrees_with_scikit_learn(one: int, other: int, classes: int) -> None:
    pred, target = draw(one, classes), draw(other, classes)
    pairs = zip(pred.flatten(1).numpy(), target.flatten(1).numpy(), strict=True)
    theirs = [jaccard_score(t, p, average="macro", zero_division=0) for p, t in pairs]
    torch.testing.assert_close(
        mean_iou(pred, target, classes),
        torch.tensor(theirs, dtype=torch.double),
        rtol=0,
        atol=1e-12,
    )


@given(SEED, SEED, CLASSES)
def test_counts_add_up_to_the_scikit_learn_score_of_all_pixels(one, other, classes: int) -> None:
    pred, target = draw(one, classes), draw(other, classes)
    found = class_overlap(pred, target, classes)
    pooled = (found.intersection.sum(0) / found.union.sum(0)).nanmean().item()
    theirs = jaccard_score(target.flatten(), pred.flatten(), average="macro", zero_division=0)
    assert pooled == pytest.approx(theirs, abs=1e-12)


@given(SEED, SEED)
def test_predictions_on_ignored_pixels_do_not_matter(seed: int, other: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 5, low=-1)
    changed = torch.where(target == -1, draw(other, 5), pred)
    ours, theirs = class_overlap(pred, target, 5), class_overlap(changed, target, 5)
    assert torch.equal(ours.intersection, theirs.intersection)
    assert torch.equal(ours.union, theirs.union)


@given(SEED)
def test_an_image_scores_the_same_alone_and_in_a_batch(seed: int) -> None:
    pred, target = draw(seed, 5), draw(seed + 1, 5, low=-1)
    alone = [mean_iou(p[None], t[None], 5) for p, t in zip(pred, target, strict=True)]
    assert torch.equal(mean_iou(pred, target, 5), torch.cat(alone))


@given(SEED, CLASSES)
def test_the_truth_scores_1(seed: int, classes: int) -> None:
    target = draw(seed, classes)
    assert mean_iou(target, target, classes).tolist() == [1.0] * 4


def test_a_pixel_without_a_class_is_missing_from_the_true_one() -> None:
    target = torch.tensor([[[0, 1, 1, 1]]])
    found = class_overlap(torch.tensor([[[0, -1, -1, 1]]]), target, 2)
    assert found.iou.tolist() == [[1.0, pytest.approx(1 / 3)]]


def test_labels_of_eight_bits_are_taken() -> None:
    pred, target = draw(0, 21).to(torch.uint8), draw(1, 21).to(torch.uint8)
    target[:, 0] = 255
    wide = torch.where(target == 255, -1, target.long())
    assert torch.equal(mean_iou(pred, target, 21, ignore=(255,)), mean_iou(pred, wide, 21))


def test_an_image_of_which_nothing_counts_is_nan_and_the_others_are_not() -> None:
    target = torch.tensor([[[-1, -1]], [[0, 1]]])
    assert mean_iou(target.clamp(min=0), target, 2).isnan().tolist() == [True, False]


def test_a_target_that_is_no_class_is_explained() -> None:
    target = torch.tensor([[[0, 255]]])
    with pytest.raises(InputError, match=r"target.* 0 to 20, got values from 0 to 255.\n.*ignore"):
        mean_iou(torch.zeros_like(target), target, 21)


@pytest.mark.parametrize("label", [-2, 3])
def test_a_prediction_that_is_no_class_is_explained(label: int) -> None:
    pred = torch.tensor([[[0, label]]])
    with pytest.raises(InputError, match=rf"pred should hold classes from -1 to 2.* {label}"):
        mean_iou(pred, torch.zeros_like(pred), 3)


def test_no_classes_are_explained() -> None:
    with pytest.raises(InputError, match="at least 1, got 0"):
        mean_iou(draw(0, 3), draw(0, 3), 0)


def test_predictions_of_another_size_are_explained() -> None:
    with pytest.raises(InputError, match=r"w=8.*got \(4, 7, 7\)(.|\n)*Resize predictions"):
        mean_iou(draw(0, 3)[..., 1:], draw(0, 3), 3)
