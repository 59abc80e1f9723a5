import pytest
import torch

from rotating_features.ops.bind import bind

SHAPES = [(1, 2), (2, 3, 5), (2, 8, 3, 5, 7)]


def linear(z: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The paper's psi and chi of a linear unit without bias: (b, n, c), (c,) -> (b, n), (b,)."""
    return z @ w, z.norm(dim=1) @ w


@pytest.mark.parametrize("shape", SHAPES)
def test_binding_is_the_mean_of_both_responses(shape: tuple[int, ...]) -> None:
    psi = torch.randn(shape, dtype=torch.double)
    chi = torch.randn(shape[0], *shape[2:], dtype=torch.double)
    torch.testing.assert_close(bind(psi, chi), (psi.square().sum(1).sqrt() + chi) / 2)


def test_inputs_that_agree_keep_their_magnitude() -> None:
    a = torch.tensor([0.6, 0.8])
    psi, chi = linear(torch.stack([a, 2 * a, 3 * a], dim=1).unsqueeze(0), torch.ones(3))
    torch.testing.assert_close(bind(psi, chi), torch.tensor([6.0]))


def test_an_opposed_input_is_masked_out() -> None:
    """The paper's figure: [a, a, -a] under weights of 1/3 gives 2/3, as [a, a, 0] does."""
    a = torch.tensor([0.6, 0.8])
    w = torch.full((3,), 1 / 3)
    opposed = bind(*linear(torch.stack([a, a, -a], dim=1).unsqueeze(0), w))
    absent = bind(*linear(torch.stack([a, a, 0 * a], dim=1).unsqueeze(0), w))
    torch.testing.assert_close(opposed, torch.tensor([2 / 3]))
    torch.testing.assert_close(opposed, absent)


def test_inputs_that_turn_apart_are_scaled_down() -> None:
    angle = torch.linspace(0, torch.pi, 9)
    a = torch.stack([torch.ones(9), torch.zeros(9)], dim=1)
    b = torch.stack([angle.cos(), angle.sin()], dim=1)
    strength = bind(*linear(torch.stack([a, a, b], dim=2), torch.ones(3)))
    assert (strength.diff() < 0).all()


def test_gradients_are_finite_where_inputs_cancel() -> None:
    psi = torch.zeros(1, 2, 3, requires_grad=True)
    bind(psi, torch.ones(1, 3)).sum().backward()
    assert psi.grad.isfinite().all()


def test_gradients_are_those_of_finite_differences() -> None:
    psi = torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True)
    chi = torch.randn(2, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(bind, (psi, chi))
