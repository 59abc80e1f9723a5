"""Convolutions on CPUs: PyTorch's, but with a kernel for the gradient of their weights.

PyTorch's own is slow with a stride and, in bfloat16, two thirds as fast without as its convolution
forward: for the third layer of 4Shapes' network in bfloat16 it takes 8 ms on two cores in some
processes and 20 in others, for no reason that could be found.
"""

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rotating_features.ops.convolve import Pair
from rotating_features.ops.cpp import library

NARROW = 64
"""Channels up to which the kernel is faster than PyTorch's own where there is no stride."""


class How(NamedTuple):
    """Of a convolution, as PyTorch's operators want it."""

    stride: list[int]
    padding: list[int]
    output_padding: list[int]
    transposed: bool


class _Map(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("height", "width", "channels"))


class _Convolution(ctypes.Structure):
    _fields_ = (
        ("images", ctypes.c_int64),
        ("narrow", _Map),
        ("wide", _Map),
        *((name, ctypes.c_int64 * 2) for name in ("kernel", "stride", "padding")),
    )


@torch.compiler.assume_constant_result
def can_be_had(dtype: torch.dtype) -> bool:
    """Whether the kernel can be compiled here for such maps and weights."""
    return _library(dtype) is not None


def _library(dtype: torch.dtype) -> ctypes.CDLL | None:
    pairs = {"PAIRS": 1} if dtype == torch.bfloat16 else {}
    return library("weight_gradient", dtype, **pairs)


def convolve_with_gradient(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> Tensor:
    """As :func:`rotating_features.ops.convolve.convolve_reference`."""
    transposed = output_padding is not None
    return _convolve(x, weight, [*stride], [*padding], [*(output_padding or (0, 0))], transposed)


def _forward(
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    output_padding: list[int],
    transposed: bool,
) -> Tensor:
    how = stride, padding, [1, 1], transposed, output_padding, 1
    return torch.convolution(x.movedim(-1, 1), weight, None, *how).movedim(1, -1).contiguous()


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 PyTorch's names
    x, weight, *how = inputs
    ctx.how = How(*how)
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    of_x, of_weight = None, None
    if ctx.needs_input_grad[0]:
        of_x = _from_pytorch(g, x, weight, ctx.how, which=0).movedim(1, -1)
    if ctx.needs_input_grad[1]:
        of_weight = gradient_of_weight(g, x, weight, ctx.how)
    return of_x, of_weight, *[None] * 4


def gradient_of_weight(g: Tensor, x: Tensor, weight: Tensor, how: How) -> Tensor:
    """From the gradient ``g`` of what a convolution made of ``x``."""
    if max(how.stride) == 1 and max(weight.shape[:2]) > NARROW:
        return _from_pytorch(g, x, weight, how, which=1)
    wide, narrow = (g, x) if how.transposed else (x, g)
    return _weight_gradient(wide, narrow, [*weight.shape[2:]], how.stride, how.padding)


def _from_pytorch(g: Tensor, x: Tensor, weight: Tensor, how: How, *, which: int) -> Tensor:
    settings = how.stride, how.padding, [1, 1], how.transposed, how.output_padding, 1
    wanted = [i == which for i in range(3)]
    maps = g.movedim(-1, 1), x.movedim(-1, 1)
    return torch.ops.aten.convolution_backward(*maps, weight, None, *settings, wanted)[which]


@torch.library.custom_op("rotating_features::weight_gradient", mutates_args=(), device_types="cpu")
def _weight_gradient(
    wide: Tensor, narrow: Tensor, kernel: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """Every pixel of the narrow map times the window of the wide one that it belongs to."""
    kernels, threads = _library(wide.dtype), torch.get_num_threads()
    assert kernels is not None
    wide, narrow = wide.contiguous(), narrow.contiguous()
    shape = threads, narrow.shape[3], *kernel, wide.shape[3]
    sums = narrow.new_zeros(shape, dtype=torch.float32)
    pairs = [(ctypes.c_int64 * 2)(*pair) for pair in (kernel, stride, padding)]
    maps = [_Map(*part.shape[1:]) for part in (narrow, wide)]
    pointers = [ctypes.c_void_p(part.data_ptr()) for part in (narrow, wide, sums)]
    kernels.weight_gradient(_Convolution(len(wide), *maps, *pairs), threads, *pointers)
    return sums.sum(0).to(narrow.dtype).permute(0, 3, 1, 2)


@_weight_gradient.register_fake
def _(wide: Tensor, narrow: Tensor, kernel: list[int], *_: object) -> Tensor:
    return narrow.new_empty(narrow.shape[3], *kernel, wide.shape[3]).permute(0, 3, 1, 2)


_convolve = torch.library.custom_op(
    "rotating_features::convolve", _forward, mutates_args=(), device_types="cpu"
)
_convolve.register_fake(_forward)
_convolve.register_autograd(_backward, setup_context=_keep)


def _keep_maps(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 PyTorch's names
    wide, narrow, ctx.kernel, ctx.stride, ctx.padding = inputs
    ctx.save_for_backward(wide, narrow)


def _second_backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    """Of the gradient itself: of the narrow map a convolution with ``g``, of the wide one back."""
    wide, narrow = ctx.saved_tensors
    left_over = [
        wide.shape[1 + i]
        - ((narrow.shape[1 + i] - 1) * ctx.stride[i] - 2 * ctx.padding[i] + ctx.kernel[i])
        for i in (0, 1)
    ]
    of_wide = _convolve(narrow, g, ctx.stride, ctx.padding, left_over, True)
    of_narrow = _convolve(wide, g, ctx.stride, ctx.padding, [0, 0], False)
    return of_wide, of_narrow, None, None, None


_weight_gradient.register_autograd(_second_backward, setup_context=_keep_maps)
