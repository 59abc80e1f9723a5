import pytest
import torch
from torch import Tensor

from rotating_features.ops.adam import adam_, adam_reference_
from rotating_features.testing import assert_as_exact_as

SETTINGS = [
    {"clip": None, "decay": 0.0},
    {"clip": 0.1, "decay": 0.0},
    {"clip": 1e9, "decay": 0.01},
]


def several(function, p: Tensor, gradients: Tensor, **settings) -> list[Tensor]:
    """Parameters and moments after a few steps."""
    p, m, v = p.clone(), torch.zeros_like(p), torch.zeros_like(p)
    t, rate = p.new_zeros(()), p.new_tensor(1e-2)
    for g in gradients:
        t += 1
        function(p, g, m, v, t, rate, **settings)
    return [p, m, v]


@pytest.mark.parametrize("settings", SETTINGS)
def test_it_is_pytorchs_adam_after_pytorchs_clipping(settings: dict) -> None:
    start, gradients = torch.randn(50).double(), torch.randn(6, 50).double()
    theirs = torch.nn.Parameter(start.clone())
    adam = torch.optim.Adam([theirs], lr=1e-2, weight_decay=settings["decay"])
    for g in gradients:
        theirs.grad = g.clone()
        if settings["clip"] is not None:
            torch.nn.utils.clip_grad_norm_(theirs, settings["clip"])
        adam.step()
    ours, m, v = several(adam_, start, gradients, **settings)
    state = adam.state[theirs]
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(m, state["exp_avg"], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(v, state["exp_avg_sq"], rtol=1e-12, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_kernel_keeps_the_contract(settings: dict) -> None:
    from rotating_features.ops.triton.adam import adam_triton_

    p, gradients = torch.randn(5_001).cuda(), torch.randn(4, 5_001).cuda()
    p[:7] = gradients[:, :7] = 0

    def of(function):
        return lambda p, gradients: several(function, p, gradients, **settings)

    assert_as_exact_as(of(adam_reference_), of(adam_triton_), p, gradients)


@pytest.mark.gpu
def test_a_gradient_that_is_not_a_number_is_not_hidden() -> None:
    p, g = torch.zeros(3).cuda(), torch.tensor([1.0, torch.nan, 1.0]).cuda()
    one = torch.ones((), device="cuda")
    adam_(p, g, torch.zeros_like(p), torch.zeros_like(p), one, one, clip=0.1, impl="triton")
    assert p.isnan().all()
