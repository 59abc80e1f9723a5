import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.vectors import lift, magnitude, orientation

SHAPES = [(2, 3), (2, 3, 5), (2, 3, 5, 7)]
LENGTHS = st.integers(-36, 18).map(lambda exponent: 10.0**exponent)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_lifting_puts_the_image_in_the_first_slot(shape: tuple[int, ...], n: int) -> None:
    x = torch.randn(shape)
    assert torch.equal(lift(x, n)[:, 0], x)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_lifting_leaves_the_other_slots_empty(shape: tuple[int, ...], n: int) -> None:
    empty = lift(torch.randn(shape), n)[:, 1:]
    assert torch.equal(empty, torch.zeros(shape[0], n - 1, *shape[1:]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_lifting_keeps_the_dtype(dtype: torch.dtype) -> None:
    assert lift(torch.ones(1, 1, dtype=dtype), 2).dtype == dtype


def test_magnitude_undoes_the_lift_of_an_image() -> None:
    x = torch.rand(2, 3, 5, 7)
    assert torch.equal(magnitude(lift(x, 4)), x)


def test_magnitude_is_the_root_of_the_sum_of_squares() -> None:
    z = torch.randn(2, 4, 3, 5, dtype=torch.double)
    np.testing.assert_allclose(magnitude(z), np.sqrt((z.numpy() ** 2).sum(1)), rtol=1e-14)


def test_the_slope_of_the_magnitude_at_zero_is_zero() -> None:
    z = torch.zeros(1, 3, 2, requires_grad=True)
    magnitude(z).sum().backward()
    assert torch.equal(z.grad, torch.zeros(1, 3, 2))


def test_magnitude_times_orientation_is_the_vector() -> None:
    z = torch.randn(2, 4, 3, 5)
    torch.testing.assert_close(magnitude(z).unsqueeze(1) * orientation(z), z)


@given(LENGTHS)
def test_orientation_does_not_depend_on_length(length: float) -> None:
    """Also where the square of the length is too small for a float32."""
    z = torch.tensor([[0.6, 0.0, -0.8]])
    torch.testing.assert_close(orientation(length * z), z, rtol=1e-5, atol=0)


def test_the_orientation_of_a_zero_vector_is_zero() -> None:
    assert torch.equal(orientation(torch.zeros(1, 3, 2)), torch.zeros(1, 3, 2))


@pytest.mark.parametrize("n", [1, 0, -1])
def test_a_rotation_dimension_in_which_nothing_turns_is_explained(n: int) -> None:
    with pytest.raises(InputError, match=rf"n should be at least 2, got {n}\."):
        lift(torch.ones(1, 1), n)


def test_lifting_something_without_channels_is_explained() -> None:
    with pytest.raises(InputError, match=r"axes \(b, c, \.\.\.\), got shape \(5,\)"):
        lift(torch.ones(5), 2)
