"""Label maps at another size."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate import resize_labels


def draw(h: int, w: int, *, k: int = 7, b: int = 2) -> torch.Tensor:
    return torch.randint(-1, k, (b, h, w), generator=torch.Generator().manual_seed(h * w))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(9, 40), st.integers(9, 40))
def test_bilinear_labels_are_those_of_the_largest_plane(h: int, w: int, high: int, wide: int):
    labels = draw(h, w).clamp(min=0)
    planes = torch.stack([(labels == j).float() for j in range(7)], 1)
    wanted = F.interpolate(planes, (high, wide), mode="bilinear").argmax(1)
    assert torch.equal(resize_labels(labels, (high, wide), "bilinear"), wanted)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_labels_of_the_right_size_stay(mode) -> None:
    labels = draw(5, 6).clamp(min=0)
    assert torch.equal(resize_labels(labels, (5, 6), mode), labels)


def test_planes_of_negative_labels_are_refused() -> None:
    with pytest.raises(InputError, match="at least 0, got -1"):
        resize_labels(torch.full((1, 2, 2), -1), (4, 4), "bilinear")


def test_planes_are_made_a_few_images_at_a_time(monkeypatch) -> None:
    labels = draw(5, 6, b=7).clamp(min=0)
    at_once = resize_labels(labels, (11, 9), "bilinear")
    monkeypatch.setattr("rotating_features.evaluate.resize.MOST_VALUES", 2 * 7 * 11 * 9)
    assert torch.equal(resize_labels(labels, (11, 9), "bilinear"), at_once)
