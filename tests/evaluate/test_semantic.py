"""Classes of pixels, against slow readings of the definitions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate import (
    accuracy,
    dataset_iou,
    label_pixels,
    match_randomly,
    semantic_scores,
)
from rotating_features.metrics import class_overlap

SEED = st.integers(0, 10**9)
SMALL = st.integers(1, 5)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(rng: torch.Generator, b: int, classes: int) -> torch.Tensor:
    """Which classes are present, at random; often none."""
    return torch.rand(b, classes, generator=rng) < 0.5


def slow_label(
    pixel: torch.Tensor, vectors: torch.Tensor, present: torch.Tensor, threshold: float
) -> int:
    """The class of one pixel (n,) out of vectors (n, classes)."""
    if pixel.norm() < 0.1:
        return 0
    best, label = -math.inf, 0
    for c in range(vectors.shape[1]):
        if present[c]:
            similarity = float(F.cosine_similarity(pixel, vectors[:, c], dim=0))
            if similarity > best:
                best, label = similarity, c + 1
    return label if best >= threshold else 0


@given(SEED, SMALL, st.integers(2, 5), SMALL, SMALL, SMALL, st.floats(-1, 1))
def test_pixels_get_the_class_that_a_slow_reading_gives(
    seed: int, b: int, n: int, classes: int, h: int, w: int, threshold: float
) -> None:
    rng = generator(seed)
    pixels = torch.randn(b, n, h, w, generator=rng, dtype=torch.double)
    pixels *= torch.rand(b, 1, h, w, generator=rng, dtype=torch.double) * 0.3  # many are short
    vectors = torch.randn(b, n, classes, generator=rng, dtype=torch.double)
    present = some(rng, b, classes)
    labels = label_pixels(pixels, vectors, present, threshold=threshold)
    assert labels.shape == (b, h, w)
    assert labels.dtype == torch.int64
    for i in range(b):
        for y in range(h):
            for x in range(w):
                slow = slow_label(pixels[i, :, y, x], vectors[i], present[i], threshold)
                assert labels[i, y, x] == slow


def test_labels_do_not_depend_on_how_long_class_vectors_are() -> None:
    pixels, vectors = torch.randn(2, 4, 5, 6), torch.randn(2, 4, 3)
    present = torch.ones(2, 3, dtype=torch.bool)
    longer = vectors * torch.tensor([0.01, 1.0, 100.0])
    assert torch.equal(
        label_pixels(pixels, vectors, present), label_pixels(pixels, longer, present)
    )


@pytest.mark.parametrize("length", [0.0, 0.05, 0.099])
def test_pixels_that_point_nowhere_are_background(length: float) -> None:
    pixel = torch.tensor([length, 0.0]).view(1, 2, 1, 1)
    vector, present = torch.tensor([[[1.0], [0.0]]]), torch.tensor([[True]])
    assert label_pixels(pixel, vector, present).item() == 0
    assert label_pixels(pixel, vector, present, magnitude_threshold=0).item() == 1


def test_a_pixel_at_right_angles_to_its_class_is_not_background() -> None:
    """Lower than the threshold is background; equal to it is not."""
    pixel, vector = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1), torch.tensor([[[1.0], [0.0]]])
    present = torch.tensor([[True]])
    assert label_pixels(pixel, vector, present).item() == 1
    assert label_pixels(pixel, vector, present, threshold=0.01).item() == 0


def test_a_class_that_points_nowhere_gets_no_pixels() -> None:
    pixel = torch.tensor([-1.0, 0.0]).view(1, 2, 1, 1)
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])  # the second class is zero
    assert label_pixels(pixel, vectors, torch.tensor([[True, True]])).item() == 0


def test_labels_of_half_precision_are_those_of_the_same_numbers() -> None:
    pixels, vectors = torch.randn(2, 4, 5, 6).bfloat16(), torch.randn(2, 4, 3).bfloat16()
    present = torch.ones(2, 3, dtype=torch.bool)
    assert torch.equal(
        label_pixels(pixels, vectors, present),
        label_pixels(pixels.float(), vectors.float(), present),
    )


@given(SEED, SMALL, SMALL, SMALL, SMALL, st.integers(0, 6))
def test_random_matching_gives_each_object_a_class_and_each_class_its_turn(
    seed: int, b: int, classes: int, h: int, w: int, k: int
) -> None:
    rng = generator(seed)
    labels = torch.randint(-1, k + 1, (b, h, w), generator=rng)
    present = some(rng, b, classes)
    matched = match_randomly(labels, present, seed=seed, images=range(b))
    for found, there, out in zip(labels, present, matched, strict=True):
        assert not out[found <= 0].any()
        given_ = []
        for name in found[found > 0].unique():
            (got,) = out[found == name].unique().tolist()  # one class an object
            given_.append(got)
        allowed = (there.nonzero().flatten() + 1).tolist()
        if not allowed:
            assert not any(given_)
            continue
        times = [given_.count(c) for c in allowed]
        assert sum(times) == len(given_)  # no other class
        assert max(times) - min(times) <= 1  # no class again before all had their turn


def test_the_lot_of_an_image_is_its_own() -> None:
    labels = torch.randint(0, 4, (6, 5, 5), generator=generator(0))
    present = torch.ones(6, 7, dtype=torch.bool)
    images = np.array([5, 9, 2, 70, 11, 3])
    together = match_randomly(labels, present, seed=1, images=images)
    for i in range(6):
        alone = match_randomly(labels[i : i + 1], present[:1], seed=1, images=images[i : i + 1])
        assert torch.equal(alone[0], together[i])


def test_lots_are_even_and_differ_by_seed() -> None:
    """Two objects, two classes: each way about half the time."""
    labels = torch.tensor([[[1, 2]]]).expand(4000, 1, 2)
    present = torch.tensor([[True, False, True]]).expand(4000, 3)
    one, other = (match_randomly(labels, present, seed=s, images=range(4000)) for s in (0, 1))
    straight = (one[:, 0, 0] == 1).double().mean().item()
    assert straight == pytest.approx(0.5, abs=0.04)
    assert 0.4 < (one == other).double().mean() < 0.6


def test_each_round_of_classes_has_a_lot_of_its_own() -> None:
    """Four objects, two classes: the third has the class of the first half the time."""
    labels = torch.tensor([[[1, 2, 3, 4]]]).expand(4000, 1, 4)
    present = torch.ones(4000, 2, dtype=torch.bool)
    matched = match_randomly(labels, present, seed=0, images=range(4000))
    same = (matched[..., 0] == matched[..., 2]).double().mean().item()
    assert same == pytest.approx(0.5, abs=0.04)


def slow_scores(pred: np.ndarray, true: np.ndarray, classes: int) -> tuple[float, float]:
    """Means over the true classes of one image, without and with background."""
    counted = true != -1
    iou = {}
    for c in range(classes + 1):
        p, t = (pred == c) & counted, (true == c) & counted
        if t.any():
            iou[c] = (p & t).sum() / (p | t).sum()
    objects = [value for c, value in iou.items() if c > 0]
    return tuple(sum(x) / len(x) if x else math.nan for x in (objects, list(iou.values())))


@given(SEED, SMALL, SMALL, SMALL, SMALL)
def test_scores_agree_with_a_slow_reading(seed: int, b: int, classes: int, h: int, w: int) -> None:
    rng = generator(seed)
    pred = torch.randint(0, classes + 1, (b, h, w), generator=rng)
    true = torch.randint(-1, classes + 1, (b, h, w), generator=rng)
    found = semantic_scores(pred, true, classes)
    slow = [slow_scores(p.numpy(), t.numpy(), classes) for p, t in zip(pred, true, strict=True)]
    for name, column in zip(("iou", "iou_with_background"), zip(*slow, strict=True), strict=True):
        expected = torch.tensor(column, dtype=torch.double)
        torch.testing.assert_close(found[name], expected, equal_nan=True)


def test_a_perfect_answer_scores_one_and_swapped_classes_nothing() -> None:
    true = torch.tensor([[[0, 1, 1], [2, 2, -1]]])
    swapped = torch.tensor([[[0, 2, 2], [1, 1, 1]]])
    assert semantic_scores(true, true, 2)["iou"].item() == 1
    assert semantic_scores(swapped, true, 2)["iou"].item() == 0


def test_the_score_of_a_dataset_pools_its_pixels() -> None:
    pred = torch.tensor([[[0, 1, 1, 1]], [[0, 0, 0, 2]]])
    true = torch.tensor([[[0, 0, 1, 1]], [[1, 0, 0, 2]]])
    overlap = class_overlap(pred, true, 4)
    assert dataset_iou(overlap).item() == pytest.approx((2 / 4 + 1) / 2)
    assert dataset_iou(overlap, background=True).item() == pytest.approx((3 / 5 + 2 / 4 + 1) / 3)


@given(SEED, SMALL, SMALL, st.sampled_from([torch.bool, torch.int64, torch.float32]))
def test_accuracy_counts_the_classes(seed: int, b: int, classes: int, dtype: torch.dtype) -> None:
    rng = generator(seed)
    probabilities = torch.rand(b, classes, generator=rng)
    labels = some(rng, b, classes)
    slow = [
        sum((p > 0.5) == t for p, t in zip(*rows, strict=True)) / classes
        for rows in zip(probabilities.tolist(), labels.tolist(), strict=True)
    ]
    assert accuracy(probabilities, labels.to(dtype)).tolist() == pytest.approx(slow)


def test_mistakes_are_explained() -> None:
    pixels, vectors = torch.ones(2, 3, 4, 4), torch.ones(2, 3, 5)
    present, labels = torch.ones(2, 5, dtype=torch.bool), torch.ones(2, 4, 4, dtype=torch.int64)
    with pytest.raises(InputError, match=r"probabilities > 0\.5"):
        label_pixels(pixels, vectors, present.float())
    with pytest.raises(InputError, match="z_class should have shape"):
        label_pixels(pixels, vectors[:, :2], present)
    with pytest.raises(InputError, match="between -1 and 1, got 2"):
        label_pixels(pixels, vectors, present, threshold=2)
    with pytest.raises(InputError, match="each of 2 images, got 3"):
        match_randomly(labels, present, seed=0, images=range(3))
    with pytest.raises(InputError, match="present should have shape"):
        match_randomly(labels, present[0], seed=0, images=range(2))
    with pytest.raises(InputError, match="target should hold classes"):
        semantic_scores(labels, labels * 9, 5)
    with pytest.raises(InputError, match="labels should have shape"):
        accuracy(torch.rand(2, 5), torch.ones(2, 4))
