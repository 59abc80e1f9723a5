"""The kernels behind ``ops/convolve.py`` on CPUs, as operators that ``torch.compile`` calls."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.ops.convolve import Pair
from rotating_features.ops.cpp import library, weight_gradient

WIDTH = 32
"""Channels that are computed at once."""


class _Maps(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_int64) for name in ("images", "height", "width", "inner", "outer")
    )


def suits(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> bool:
    """Whether there is a kernel for such a convolution, and it can be compiled here."""
    if (
        x.device.type != "cpu"
        or x.dtype != weight.dtype
        or any(channels % WIDTH for channels in weight.shape[:2])
    ):
        return False
    if x.dtype == torch.bfloat16:
        return weight_gradient.can_be_had()
    return (
        x.dtype == torch.float32
        and output_padding is None
        and weight.shape[2:] == (3, 3)
        and stride == padding == (1, 1)
        and all(side % 2 == 0 for side in x.shape[1:3])
        and _can_be_had()
    )


def use_cpp(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None, impl: str
) -> bool:
    """Decide whether a call gets a kernel: ``"cpp"`` does or is refused, ``"auto"`` if it may."""
    usable = suits(x, weight, stride, padding, output_padding)
    if impl == "cpp" and not usable:
        raise InputError(
            f"impl='cpp' should get maps on a CPU with channels by the {WIDTH}, in float32 with "
            "even sides, 3 x 3 weights, stride 1 and padding 1, or in bfloat16 where the processor "
            "multiplies that with AVX-512; and Linux with a C++ compiler. It got "
            f"maps {tuple(x.shape)} on {x.device} in {x.dtype}, weights {tuple(weight.shape)}, "
            f"stride {stride}, padding {padding}.\n  Use impl='auto' to fall back to PyTorch."
        )
    return usable


def convolve_cpp(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> Tensor:
    """As :func:`rotating_features.ops.convolve.convolve_reference`."""
    if x.dtype == torch.bfloat16:
        return weight_gradient.convolve_bfloat16(x, weight, stride, padding, output_padding)
    return _winograd(x, weight)


@torch.compiler.assume_constant_result
def _can_be_had() -> bool:
    return library("convolve", torch.float32) is not None


@torch.library.custom_op("rotating_features::winograd", mutates_args=(), device_types="cpu")
def _winograd(x: Tensor, weight: Tensor) -> Tensor:
    """In float32, with stride and padding 1."""
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
        how = [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]
        maps = g.movedim(-1, 1), x.movedim(-1, 1)
        of_weight = torch.ops.aten.convolution_backward(*maps, weight, None, *how)[1]
    return of_x, of_weight


_winograd.register_autograd(_backward, setup_context=_keep)
