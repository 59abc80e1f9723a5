"""Convolutions in bfloat16 on CPUs: PyTorch's, but with a kernel for the gradient of their weights.

PyTorch's own is two thirds as fast as its convolution forward, and slower with a stride: 8 ms in
some processes and 20 in others for the third layer of 4Shapes' network on two cores, for no reason
that could be found.
"""

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

from rotating_features.ops.convolve import Pair
from rotating_features.ops.cpp import library


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
def can_be_had() -> bool:
    """Whether the kernel can be compiled here, for a processor with instructions for it."""
    return _library() is not None


@cache
def _library() -> ctypes.CDLL | None:
    kernels = library("weight_gradient", torch.bfloat16)
    if kernels is None or not ctypes.c_bool.in_dll(kernels, "suits_processor"):
        return None
    return kernels


def convolve_bfloat16(
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
    x, weight, *ctx.how = inputs
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    stride, padding, output_padding, transposed = ctx.how
    of_x, of_weight = None, None
    if ctx.needs_input_grad[0]:
        how = stride, padding, [1, 1], transposed, output_padding, 1, [True, False, False]
        maps = g.movedim(-1, 1), x.movedim(-1, 1)
        of_x = torch.ops.aten.convolution_backward(*maps, weight, None, *how)[0].movedim(1, -1)
    if ctx.needs_input_grad[1]:
        wide, narrow = (g, x) if transposed else (x, g)
        of_weight = _weight_gradient(wide, narrow, [*weight.shape[2:]], stride, padding)
    return of_x, of_weight, *[None] * 4


@torch.library.custom_op("rotating_features::weight_gradient", mutates_args=(), device_types="cpu")
def _weight_gradient(
    wide: Tensor, narrow: Tensor, kernel: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """Every pixel of the narrow map times the window of the wide one that it belongs to."""
    kernels, threads = _library(), torch.get_num_threads()
    assert kernels is not None
    wide, narrow = wide.contiguous(), narrow.contiguous()
    sums = torch.zeros(threads, narrow.shape[3], *kernel, wide.shape[3])
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
