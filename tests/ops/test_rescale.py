import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from rotating_features.ops.rescale import rescale
from rotating_features.vectors import magnitude

SHAPES = [(2, 2), (2, 3, 5), (2, 8, 3, 5, 7)]
LENGTHS = st.integers(-36, 18).map(lambda exponent: 10.0**exponent)


def make(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    psi = torch.randn(shape, dtype=torch.double, requires_grad=True)
    return psi, torch.rand(shape[0], *shape[2:], dtype=torch.double, requires_grad=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_get_the_new_length(shape: tuple[int, ...]) -> None:
    psi, m = make(shape)
    torch.testing.assert_close(magnitude(rescale(psi, m)[0]), m)


@pytest.mark.parametrize("shape", SHAPES)
def test_vectors_keep_their_direction(shape: tuple[int, ...]) -> None:
    psi, m = make(shape)
    torch.testing.assert_close(cosine_similarity(rescale(psi, m)[0], psi), torch.ones_like(m))


def test_the_length_returned_is_that_of_the_vectors() -> None:
    psi, m = make((2, 3, 5))
    psi = psi.detach()
    psi[0, :, 2] = 0
    z, length = rescale(psi, m)
    torch.testing.assert_close(length, magnitude(z))


def test_a_zero_vector_stays_zero() -> None:
    z, length = rescale(torch.zeros(1, 3, 2), torch.ones(1, 2))
    assert torch.equal(z, torch.zeros(1, 3, 2))
    assert torch.equal(length, torch.zeros(1, 2))


def test_vectors_that_are_no_numbers_are_not_hidden() -> None:
    """Taken for zero, they would make a network that has diverged look well."""
    z, length = rescale(torch.full((1, 3, 2), torch.nan), torch.full((1, 2), torch.nan))
    assert z.isnan().all()
    assert length.isnan().all()


def test_gradients_are_those_of_finite_differences() -> None:
    assert torch.autograd.gradcheck(rescale, make((2, 3, 4)))


def test_gradients_are_finite_at_a_zero_vector() -> None:
    psi = torch.zeros(1, 3, 2, requires_grad=True)
    m = torch.ones(1, 2, requires_grad=True)
    z, length = rescale(psi, m)
    (z.sum() + length.sum()).backward()
    assert psi.grad.isfinite().all()
    assert m.grad.isfinite().all()


@given(LENGTHS)
def test_gradients_are_finite_at_vectors_of_every_length(length: float) -> None:
    """Also where the square of the length is too small for a float32."""
    psi = (length * torch.tensor([[0.6, 0.8]])).requires_grad_()
    rescale(psi, torch.ones(1))[0][0, 0].backward()
    assert psi.grad.isfinite().all()
