import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rotating_features.ops.activate import Norm
from rotating_features.ops.activate_complex import (
    SHORTEST,
    activate_complex,
    activate_complex_reference,
    direction,
)
from rotating_features.testing import assert_as_exact_as

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


KERNEL_CASES = {
    "batch": (21, (7, 3), {}),
    "batch, image": (16, (9, 9), {"lifted": True}),
    "batch, magnitudes": (24, (6, 6), {"only_magnitude": True}),
    "batch, in use": (21, (7, 3), {"training": False}),
    "batch, many channels": (200, (3, 3), {}),
    "items": (37, (), {}),
    "items, image": (40, (), {"lifted": True}),
    "items, magnitudes": (40, (), {"only_magnitude": True}),
}


def results(function, norm: Norm, y: Tensor, biases: Tensor, g: Tensor, **switches) -> list[Tensor]:
    """Output, every gradient, and the running statistics afterwards."""
    norm = copy.deepcopy(norm).to(biases)
    y, biases = y.clone().requires_grad_(), biases.clone().requires_grad_()
    out = function(y, *biases, norm, **{"only_magnitude": False, **switches})
    wanted = (y, biases, norm.weight, norm.bias)
    g_y, g_biases, *rest = torch.autograd.grad(out, wanted, g.to(out), materialize_grads=True)
    if isinstance(norm, nn.BatchNorm1d) and norm.training:
        g_biases = g_biases[1:]  # the magnitude bias is normalised away; what is left is noise
    return [out, g_y, g_biases, *rest, *norm.buffers()]


@pytest.mark.gpu
@pytest.mark.usefixtures("few_programs")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", KERNEL_CASES)
def test_the_kernel_keeps_the_contract(case: str, dtype: torch.dtype) -> None:
    """On odd shapes, on zeros and real numbers, and on input that is not contiguous."""
    from rotating_features.ops.triton.activate import activate_complex_triton

    c, space, options = KERNEL_CASES[case]
    options = dict(options)
    lifted, training = options.pop("lifted", False), options.pop("training", True)
    norm = nn.BatchNorm1d(c) if space else nn.LayerNorm(c)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    norm = norm.cuda().train(training)
    y = torch.randn(c, 33, 1 if lifted else 3, *space).movedim(0, -1).to("cuda", dtype)
    assert not y.is_contiguous()
    y[:3] = 0
    if not lifted:
        y[3:6, 1] = 0
    out = (33, *space, c) if options.get("only_magnitude") else (33, 3, *space, c)
    g = torch.randn(out).to("cuda", dtype)

    def of(function):
        return lambda y, biases, g: results(function, norm, y, biases, g, **options)

    biases = torch.randn(2, c).cuda()
    assert_as_exact_as(of(activate_complex_reference), of(activate_complex_triton), y, biases, g)


def test_triton_on_the_cpu_is_refused() -> None:
    with pytest.raises(ValueError, match=r"should get a CUDA tensor.*\n.*impl='auto'"):
        activate_complex(torch.randn(4, 3, 6), *torch.randn(2, 6), nn.LayerNorm(6), impl="triton")
