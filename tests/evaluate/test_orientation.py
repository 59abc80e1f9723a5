"""One orientation for every pixel, against a slow reading of the paper's equations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.evaluate import orientation_map


def slow_orientation_map(z: np.ndarray, t: float) -> np.ndarray:
    """The paper's section on evaluating object separation, pixel by pixel, in float64."""
    b, n, c, h, w = z.shape
    z_eval = np.zeros((b, n, h, w))
    for image, row, col in np.ndindex(b, h, w):
        numerator, denominator = np.zeros(n), 0.0
        for channel in range(c):
            vector = z[image, :, channel, row, col].astype(np.float64)
            length = np.sqrt((vector**2).sum())
            if length > t:
                numerator += vector / length
                denominator += 1
        z_eval[image, :, row, col] = numerator / (denominator + 1e-8)
    return z_eval


def draw(seed: int, *, n: int = 4, c: int = 3) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    scale = torch.rand(2, 1, c, 5, 6, generator=rng) * 0.3  # lengths on both sides of 0.1
    return scale * torch.randn(2, n, c, 5, 6, generator=rng)


@pytest.mark.parametrize("c", [1, 3])
@given(seed=st.integers(0, 10**9), n=st.integers(2, 10), t=st.sampled_from([0.0, 0.1, 0.5]))
def test_agrees_with_a_slow_reading_of_the_paper(c: int, seed: int, n: int, t: float) -> None:
    z = draw(seed, n=n, c=c)
    slow = torch.from_numpy(slow_orientation_map(z.numpy(), t)).float()
    torch.testing.assert_close(orientation_map(z, threshold=t), slow, rtol=0, atol=1e-6)


def test_the_papers_threshold_is_the_default() -> None:
    z = draw(0)
    assert torch.equal(orientation_map(z), orientation_map(z, threshold=0.1))


def test_a_length_equal_to_the_threshold_does_not_count() -> None:
    z = torch.full((1, 2, 1, 1, 1), 0.0)
    z[:, 0] = 0.5
    assert not orientation_map(z, threshold=0.5).any()
    assert orientation_map(z, threshold=0.4999).any()


def test_no_response_is_the_zero_vector() -> None:
    assert torch.equal(orientation_map(torch.zeros(1, 3, 2, 4, 4)), torch.zeros(1, 3, 4, 4))


def test_lengths_above_the_threshold_do_not_matter() -> None:
    """Otherwise the colour of an object would decide where it points."""
    z = torch.nn.functional.normalize(draw(0), dim=1)
    stretched = z * (0.2 + torch.rand(2, 1, 3, 5, 6))
    torch.testing.assert_close(orientation_map(stretched), orientation_map(z))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_gives_float32(dtype: torch.dtype) -> None:
    """Rounding happens in the input alone."""
    z = draw(0).to(dtype)
    found = orientation_map(z)
    assert found.dtype == torch.float32
    assert torch.equal(found, orientation_map(z.float()))


def test_double_precision_stays() -> None:
    assert orientation_map(draw(0).double()).dtype == torch.float64


def test_an_image_instead_of_rotating_features_is_explained() -> None:
    with pytest.raises(InputError, match=r"\(b, n, c, h, w\), got \(2, 3, 8, 8\)(.|\n)*output, z"):
        orientation_map(torch.zeros(2, 3, 8, 8))


def test_a_negative_threshold_is_explained() -> None:
    with pytest.raises(InputError, match=r"at least 0, got -0.1"):
        orientation_map(draw(0), threshold=-0.1)
