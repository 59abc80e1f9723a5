"""Which kernel a convolution gets, and where the gradient of its weights is computed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotating_features.ops.beside import Beside, current, run_beside
from rotating_features.ops.convolve import Pair
from rotating_features.ops.triton.pixels import downsample, upsample
from rotating_features.ops.triton.weight_gradient import weight_gradient

FEW = 4
"""Channels up to which they count as pixels."""


def kernel_for(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> Callable[[Tensor, Tensor], Tensor] | None:
    """The kernel for such a convolution, or None where the library's own is the best there is."""
    few = weight.shape[1] <= FEW and weight.shape[0] in (16, 32, 64, 128)
    if few and _plain(weight, padding) and stride == (2, 2):
        if output_padding == (1, 1):
            return upsample
        if output_padding is None and not x.requires_grad:
            return downsample
    own = _own_weight_gradient(x, weight, stride, padding, output_padding)
    beside = current() if weight.is_leaf else None  # else its gradient is wanted at once
    if own or beside is not None:
        how = stride, padding, output_padding, own, beside
        return lambda x, weight: _Convolve.apply(x, weight, *how)
    return None


def _plain(weight: Tensor, padding: Pair) -> bool:
    return weight.shape[2:] == (3, 3) and padding == (1, 1)


def _own_weight_gradient(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> bool:
    """Whether our kernel beats the library's: seen on an H200, for the shapes of the paper."""
    if not _plain(weight, padding) or not {*weight.shape[:2]} <= {16, 32, 64}:
        return False
    if stride not in ((1, 1), (2, 2)):
        return False
    first, second = weight.shape[:2]
    if x.dtype == torch.float32:
        return first < 64 or (stride == (2, 2) and output_padding is None)
    return (first, second) != (32, 64)


class _Convolve(torch.autograd.Function):
    """PyTorch's convolution, but for the gradient of the weights."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        stride: Pair,
        padding: Pair,
        output_padding: Pair | None,
        own: bool,
        beside: Beside | None,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        transposed = output_padding is not None
        ctx.how = stride, padding, (1, 1), transposed, output_padding or (0, 0), 1
        ctx.own, ctx.beside = own, beside
        return torch.convolution(x.movedim(-1, 1), weight, None, *ctx.how).movedim(1, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        stride, _, _, transposed, _, _ = ctx.how

        def library(g: Tensor, x: Tensor, which: tuple[bool, bool, bool]) -> tuple[Tensor, ...]:
            g, x = g.movedim(-1, 1), x.movedim(-1, 1)
            return torch.ops.aten.convolution_backward(g, x, weight, None, *ctx.how, which)

        def of_weight(g: Tensor, x: Tensor) -> Tensor:
            if not ctx.own:
                return library(g, x, (False, True, False))[1]
            small, large = (x, g) if transposed else (g, x)
            return weight_gradient(small, large, stride[0]).movedim(-1, 1)

        g, x = g.contiguous(), x.contiguous()
        g_x = g_weight = None
        if ctx.needs_input_grad[0]:
            g_x = library(g, x, (True, False, False))[0].movedim(1, -1)
        if ctx.needs_input_grad[1]:  # second, to multiply while the activation moves memory
            g_weight = run_beside(ctx.beside, of_weight, g, x)
        return g_x, g_weight, None, None, None, None, None
