"""The binding mechanism's figure, against its closed form and the paper's words."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.theory import binding_effect

COSINES = torch.linspace(-1, 1, 41, dtype=torch.double)


@given(st.integers(2, 12), st.integers(0, 10**6))
def test_the_answer_depends_on_the_cosine_alone(n: int, seed: int) -> None:
    """The length of 2a + b is the root of 5 + 4 cos(a, b), whatever a, b and n are."""
    found = binding_effect(COSINES, n=n, seed=seed)
    plain = (5 + 4 * COSINES).sqrt() / 3
    torch.testing.assert_close(found.without_binding, plain)
    torch.testing.assert_close(found.with_binding, plain / 2 + 1 / 2)
    assert torch.equal(found.cosines, COSINES)


def test_an_opposite_input_is_masked_out_and_an_equal_one_counts_fully() -> None:
    found = binding_effect(torch.tensor([-1.0, 1.0]))
    assert found.with_binding.tolist() == pytest.approx([2 / 3, 1])
    assert found.without_binding.tolist() == pytest.approx([1 / 3, 1])


@pytest.mark.parametrize("cosine", [1.1, -2.0, float("nan")])
def test_what_is_no_cosine_is_explained(cosine: float) -> None:
    with pytest.raises(InputError, match="between -1 and 1"):
        binding_effect(torch.tensor([cosine]))
