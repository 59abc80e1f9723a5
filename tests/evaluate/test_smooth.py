"""The mode filter, against scikit-image and by its properties."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.filters.rank import modal
from skimage.morphology import disk

from rotating_features._check import InputError
from rotating_features.evaluate import mode_filter

SEED = st.integers(0, 10**9)
RADIUS = st.integers(0, 12)


def draw(seed: int, k: int = 4, *, b: int = 2, h: int = 13, w: int = 17) -> torch.Tensor:
    """Every pixel at random, so that many votes are ties."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(k, (b, h, w), generator=rng)


def scikit_image(labels: torch.Tensor, radius: int) -> torch.Tensor:
    """Negative labels are masked, and put back: ``modal`` names masked pixels, too."""
    maps = [
        modal(np.uint8(image.clip(0)), disk(radius), mask=np.uint8(image >= 0))
        for image in labels.numpy()
    ]
    return torch.where(labels < 0, labels, torch.from_numpy(np.stack(maps)).long())


@settings(max_examples=60)
@given(SEED, RADIUS, st.integers(1, 9), st.integers(1, 30), st.integers(1, 30))
def test_agrees_with_scikit_image(seed: int, radius: int, k: int, h: int, w: int) -> None:
    labels = draw(seed, k, h=h, w=w)
    assert torch.equal(mode_filter(labels, radius), scikit_image(labels, radius))


@settings(max_examples=60)
@given(SEED, RADIUS, st.floats(0, 1))
def test_agrees_with_scikit_image_under_a_mask(seed: int, radius: int, share: float) -> None:
    rng = torch.Generator().manual_seed(seed)
    labels = draw(seed)
    labels[torch.rand(labels.shape, generator=rng) < share] = -1
    assert torch.equal(mode_filter(labels, radius), scikit_image(labels, radius))


@pytest.mark.parametrize("radius", [22, 90, 120])
def test_a_large_disk_is_counted_exactly(radius: int) -> None:
    """At 120 its pixels, all of them in the image, outgrow 16 bits."""
    labels = draw(0, 2, b=1, h=250, w=260)
    labels[0, :, :100] = 0
    assert torch.equal(mode_filter(labels, radius), scikit_image(labels, radius))


def test_the_picture_of_the_paper_s_size_agrees_with_scikit_image() -> None:
    labels = draw(0, 8, b=1, h=8, w=8).repeat_interleave(40, 1).repeat_interleave(40, 2)
    labels = torch.where(torch.rand(labels.shape) < 0.3, draw(1, 8, b=1, h=320, w=320), labels)
    assert torch.equal(mode_filter(labels, 22), scikit_image(labels, 22))


@given(SEED, RADIUS)
def test_an_image_alone_gets_the_labels_it_gets_in_a_batch(seed: int, radius: int) -> None:
    """Even if the others have labels that it has not."""
    labels = draw(seed, b=3) + torch.tensor([0, 2, 50]).view(3, 1, 1)
    alone = [mode_filter(image[None], radius) for image in labels]
    assert torch.equal(mode_filter(labels, radius), torch.cat(alone))


def test_how_many_images_are_filtered_at_once_does_not_matter(monkeypatch) -> None:
    labels = draw(0, b=5)
    together = mode_filter(labels, 3)
    monkeypatch.setattr(sys.modules[mode_filter.__module__], "_at_once", lambda device: 1)
    assert torch.equal(mode_filter(labels, 3), together)


@given(SEED)
def test_names_may_be_far_apart_as_long_as_their_order_stays(seed: int) -> None:
    labels, names = draw(seed), torch.tensor([3, 255, 70_000, 10**12])
    assert torch.equal(mode_filter(names[labels], 2), names[mode_filter(labels, 2)])


@given(SEED, st.permutations(range(5)))
def test_turning_the_image_turns_the_answer(seed: int, names: list[int]) -> None:
    labels = torch.tensor(names)[draw(seed, 5)]
    assert torch.equal(mode_filter(labels.mT, 3), mode_filter(labels, 3).mT)


@given(SEED)
def test_a_radius_of_0_changes_nothing(seed: int) -> None:
    labels = draw(seed, 9) - 2
    assert torch.equal(mode_filter(labels, 0), labels)


def test_a_disk_over_everything_leaves_the_most_frequent_label() -> None:
    labels = torch.tensor([[[5, 5, 2], [3, 5, 2]]])
    assert torch.equal(mode_filter(labels, 10), torch.full_like(labels, 5))


def test_the_smallest_of_equally_frequent_labels_wins() -> None:
    assert mode_filter(torch.tensor([[[9, 4]]]), 1).tolist() == [[[4, 4]]]


def test_pixels_without_a_label_stay_and_have_no_vote() -> None:
    labels = torch.tensor([[[-1, -1, -1, 6, -2]]])
    assert torch.equal(mode_filter(labels, 4), labels)


def test_an_image_without_any_label_stays() -> None:
    labels = torch.full((2, 3, 3), -1)
    assert torch.equal(mode_filter(labels, 1), labels)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_the_type_of_the_labels_is_kept(dtype: torch.dtype) -> None:
    labels = torch.tensor([0, 3, 70, 120])[draw(0)]  # too far apart to be their own index
    found = mode_filter(labels.to(dtype), 2)
    assert found.dtype == dtype
    assert torch.equal(found.long(), mode_filter(labels, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_labels_that_are_no_integers_are_explained(dtype: torch.dtype) -> None:
    with pytest.raises(InputError, match=rf"integers, got {dtype}.*\.long"):
        mode_filter(draw(0).to(dtype), 2)


def test_a_negative_radius_is_explained() -> None:
    with pytest.raises(InputError, match="at least 0, got -1"):
        mode_filter(draw(0), -1)


def test_an_image_without_a_batch_axis_is_explained() -> None:
    with pytest.raises(InputError, match=r"\(b, h, w\), got \(13, 17\)"):
        mode_filter(draw(0)[0], 1)
