"""The kernels behind ``ops/convolve.py`` on CPUs, as operators that ``torch.compile`` calls."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.ops.convolve import Pair
from rotating_features.ops.cpp import library
from rotating_features.ops.cpp.weight_gradient import (
    How,
    can_be_had,
    convolve_with_gradient,
    gradient_of_weight,
)

WIDTH = 32
"""Channels that are computed at once."""


class _Maps(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_int64) for name in ("images", "height", "width", "inner", "outer")
    )


def suits(x: Tensor, weight: Tensor, *, transposed: bool) -> bool:
    """Whether there is a kernel for such a convolution, and it can be compiled here."""
    return (
        x.device.type == "cpu"
        and x.ndim == 4
        and x.shape[3] == weight.shape[0 if transposed else 1]
        and x.dtype == weight.dtype
        and x.dtype in (torch.float32, torch.bfloat16)
        and all(channels % WIDTH == 0 for channels in weight.shape[:2])
        and can_be_had(x.dtype)
    )


def use_cpp(x: Tensor, weight: Tensor, impl: str, *, transposed: bool) -> bool:
    """Decide whether a call gets a kernel: ``"cpp"`` does or is refused, ``"auto"`` if it may."""
    usable = suits(x, weight, transposed=transposed)
    if impl == "cpp" and not usable:
        raise InputError(
            "impl='cpp' should get maps and weights on a CPU in float32 or bfloat16 with channels "
            f"by the {WIDTH}, Linux with a C++ compiler, and a processor with AVX-512 or, for "
            f"bfloat16, with AVX-512 BF16 and no AMX; got maps {tuple(x.shape)} on {x.device} in "
            f"{x.dtype}, weights {tuple(weight.shape)} in {weight.dtype}.\n"
            "  Use impl='auto' to fall back to PyTorch."
        )
    return usable


def convolve_cpp(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> Tensor:
    """As :func:`rotating_features.ops.convolve.convolve_reference`."""
    if (
        x.dtype == torch.float32
        and output_padding is None
        and weight.shape[2:] == (3, 3)
        and stride == padding == (1, 1)
        and all(side % 2 == 0 for side in x.shape[1:3])
        and _winograd_can_be_had()
    ):
        return _winograd(x, weight)
    return convolve_with_gradient(x, weight, stride, padding, output_padding)


@torch.compiler.assume_constant_result
def _winograd_can_be_had() -> bool:
    return library("convolve", torch.float32) is not None


@torch.library.custom_op("rotating_features::winograd", mutates_args=(), device_types="cpu")
def _winograd(x: Tensor, weight: Tensor) -> Tensor:
    """In float32, with 3 x 3 weights, stride and padding 1, of maps with even sides."""
    kernels = library("convolve", torch.float32)
    assert kernels is not None
    x, transformed = x.contiguous(), _transform(weight)
    y = x.new_empty(*x.shape[:3], len(weight))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, transformed, y)]
    kernels.convolve(_Maps(*x.shape, len(weight)), torch.get_num_threads(), *pointers)
    return y


def _transform(weight: Tensor) -> Tensor:
    """(outer, inner, 3, 3) -> (16, inner, outer): what each number of a tile is multiplied by."""
    g = weight.new_tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    return torch.einsum("ia,kcab,jb->ijck", g, weight, g).flatten(0, 1).contiguous()


@_winograd.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:3], weight.shape[0])


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG001 PyTorch's names
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    of_x, of_weight = None, None
    if ctx.needs_input_grad[0]:
        of_x = _winograd(g, weight.transpose(0, 1).flip(2, 3))
    if ctx.needs_input_grad[1]:
        of_weight = gradient_of_weight(g, x, weight, How([1, 1], [1, 1], [0, 0], False))
    return of_x, of_weight


_winograd.register_autograd(_backward, setup_context=_keep)
