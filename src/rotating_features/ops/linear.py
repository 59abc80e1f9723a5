"""A linear map, whose weight gradient may run beside the backward pass."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from rotating_features.ops.beside import current, run_beside


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """``x`` times the transposed ``weight``: (..., c) and (c', c) -> (..., c')."""
    if torch.compiler.is_compiling() or current() is None or not weight.is_leaf:
        return F.linear(x, weight)
    return _Linear.apply(x, weight)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.beside = current()
        return F.linear(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (g,) = grad_outputs
        x, weight = ctx.saved_tensors
        total = run_beside(ctx.beside, _of_weight, g, x)
        return g @ weight, total


def _of_weight(g: Tensor, x: Tensor) -> Tensor:
    return g.flatten(0, -2).t() @ x.flatten(0, -2)
