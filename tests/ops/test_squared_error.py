import pytest
import torch
from torch import Tensor

from rotating_features.nn import Readout
from rotating_features.ops.squared_error import squared_error, squared_error_reference
from rotating_features.testing import assert_as_exact_as


@pytest.mark.parametrize("sigmoid", [True, False])
def test_it_is_the_error_of_the_readout(sigmoid: bool) -> None:
    readout = Readout(3, sigmoid=sigmoid)
    torch.nn.init.normal_(readout.weight)
    torch.nn.init.normal_(readout.bias)
    m, x = torch.rand(2, 5, 4, 3), torch.rand(2, 3, 5, 4)
    expected = (readout(m.movedim(-1, 1)) - x).square().mean()
    ours = squared_error(m, readout.weight, readout.bias, x, sigmoid=sigmoid)
    torch.testing.assert_close(ours, expected)


def test_another_size_is_refused() -> None:
    one = torch.ones(1)
    with pytest.raises(ValueError, match="x should have shape"):
        squared_error(torch.rand(2, 4, 4, 1), one, one, torch.rand(2, 1, 3, 3), sigmoid=True)


@pytest.mark.gpu
def test_the_images_own_gradient_is_not_lost() -> None:
    one = torch.ones(1, device="cuda")
    m, x = torch.rand(2, 4, 4, 1).cuda(), torch.rand(2, 1, 4, 4).cuda().requires_grad_()
    loss = squared_error(m, one, one, x, sigmoid=True)
    assert torch.autograd.grad(loss, x)[0].abs().sum() > 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("c", "sigmoid"), [(1, True), (3, True), (200, False)])
def test_the_kernel_keeps_the_contract(
    c: int, sigmoid: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On magnitudes that are a crop of larger ones, and images in either layout."""
    from rotating_features.ops.triton import squared_error as kernels
    from rotating_features.ops.triton.squared_error import squared_error_triton

    monkeypatch.setattr(kernels, "PROGRAMS", 3)
    m = torch.rand(5, 9, 8, c).to("cuda", dtype)[:, 1:8, 1:7]
    weight, bias = torch.randn(2, c).cuda()
    x = torch.rand(5, c, 7, 6).cuda()

    def of(function):
        def results(m: Tensor, weight: Tensor, bias: Tensor, x: Tensor) -> list[Tensor]:
            leaves = [part.detach().requires_grad_() for part in (m, weight, bias)]
            loss = function(*leaves, x, sigmoid)
            return [loss, *torch.autograd.grad(3 * loss, leaves)]

        return results

    for layout in (x, x.contiguous(memory_format=torch.channels_last)):
        inputs = (m, weight, bias, layout)
        assert_as_exact_as(of(squared_error_reference), of(squared_error_triton), *inputs)
