import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features.ops.activate_complex import SHORTEST, direction

numbers = st.floats(-1e3, 1e3, width=32)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_directions_are_those_of_complex_numbers_and_never_shorter_than_one(pairs: list) -> None:
    psi = torch.tensor(pairs)
    got = direction(psi)
    torch.testing.assert_close(got.norm(dim=1), torch.ones(len(pairs)))
    there = psi.norm(dim=1) > 1e3 * SHORTEST
    angle = torch.complex(psi[:, 0], psi[:, 1]).angle()
    expected = torch.stack([angle.cos(), angle.sin()], dim=1)
    torch.testing.assert_close(got[there], expected[there], rtol=0, atol=2e-3)


def test_zero_points_upwards_and_has_no_gradient() -> None:
    psi = torch.zeros(1, 2, 3, requires_grad=True)
    got = direction(psi)
    assert torch.equal(got, torch.tensor([0.0, 1.0]).view(1, 2, 1).expand(1, 2, 3))
    got.sum().backward()
    assert not psi.grad.any()


def test_real_numbers_lean_upwards_so_that_phases_can_start_to_learn() -> None:
    re, im = direction(torch.tensor([[-2.0, 0.0], [3.0, 0.0]])).unbind(1)
    assert re.tolist() == [-1, 1]
    assert (im > 0).all()
