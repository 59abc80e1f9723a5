"""The kernel behind ``ops/activate.py`` on CPUs, as operators that ``torch.compile`` calls."""

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rotating_features._check import InputError
from rotating_features.ops.cpp import library
from rotating_features.ops.rescale import SHORTEST

WIDTH = 16
"""Channels that are computed at once."""


class _Shape(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("images", "slots", "pixels", "channels"))


class _Norm(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("mean", "scale", "weight", "shift"))


def suits(
    y: Tensor,
    bias: Tensor,
    norm: nn.Module,
    *,
    bias_in_magnitude: bool,
    binding: bool,
    only_magnitude: bool,
) -> bool:
    """Whether the kernel knows such a layer, and can be compiled here."""
    return (
        (bias_in_magnitude and binding and not only_magnitude)
        and y.device.type == "cpu"
        and isinstance(norm, nn.BatchNorm1d)
        and norm.training
        and norm.affine
        and norm.track_running_stats
        and norm.momentum is not None
        and bias.dtype == torch.float32
        and y.ndim > 3
        and y.shape[-1] % WIDTH == 0
        and y.numel() > y.shape[1] * y.shape[-1]  # a single pixel has no statistics
        and _can_be_had(len(bias), y.dtype)
    )


def use_cpp(y: Tensor, bias: Tensor, norm: nn.Module, impl: str, **switches: bool) -> bool:
    """Decide whether a call gets the kernel: ``"cpp"`` does or is refused, ``"auto"`` if it may."""
    usable = suits(y, bias, norm, **switches)
    if impl == "cpp" and not usable:
        raise InputError(
            "impl='cpp' should get feature maps on a CPU in float32 or bfloat16 with channels by "
            f"the {WIDTH}, a batch norm in training, the paper's switches, and Linux with a C++ "
            f"compiler; got {norm} for shape {tuple(y.shape)} on {y.device} in {y.dtype}, "
            f"{switches}.\n"
            "  Use impl='auto' to fall back to PyTorch."
        )
    return usable


def activate_cpp(y: Tensor, bias: Tensor, norm: nn.BatchNorm1d) -> Tensor:
    """As :func:`rotating_features.ops.activate.activate_reference`, with the paper's switches."""
    flat = y.reshape(*y.shape[:2], -1, y.shape[-1])
    out, mean, var = _activate(flat, bias, norm.weight, norm.bias, norm.eps)
    _remember(norm, mean, var, count=len(flat) * flat.shape[2])
    return out.view(*out.shape[:2], *y.shape[2:])


@torch.compiler.assume_constant_result
def _can_be_had(n: int, dtype: torch.dtype) -> bool:
    return _library(n, dtype) is not None


def _library(n: int, dtype: torch.dtype) -> ctypes.CDLL | None:
    return library("activate", dtype, N=n, SHORTEST=SHORTEST)


def _remember(norm: nn.BatchNorm1d, mean: Tensor, var: Tensor, count: int) -> None:
    """Update the running statistics as PyTorch's batch norm does."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    with torch.no_grad():
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(var * (count / (count - 1)), norm.momentum)
        norm.num_batches_tracked.add_(1)


@torch.library.custom_op("rotating_features::activate", mutates_args=(), device_types="cpu")
def _activate(
    y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(b, slots, pixels, c) -> (b, n + 1, pixels, c), and the mean and variance of the norm."""
    layer = _Layer.of(y, bias)
    sums = layer.call("measure", torch.zeros(len(y), 2, y.shape[3], dtype=torch.float64))
    mean, square = sums.sum(0) / layer.points
    var = (square - mean.square()).clamp_(min=0)
    mean, var = mean.float(), var.float()
    out = y.new_empty(len(y), len(bias) + 1, *y.shape[2:])
    layer.normed(mean, var, weight, shift, eps).call("activate", out)
    return out, mean, var


@torch.library.custom_op(
    "rotating_features::activate_gradient", mutates_args=(), device_types="cpu"
)
def _activate_gradient(
    g: Tensor,
    y: Tensor,
    bias: Tensor,
    weight: Tensor,
    shift: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of all that is learned, from that of the features."""
    g = g.contiguous()
    layer = _Layer.of(y, bias).normed(mean, var, weight, shift, eps)
    sums = torch.zeros(len(y), 2, y.shape[3], dtype=torch.float64)
    layer.call("measure_gradient", g, sums)
    of_norm = sums.sum(0)
    means = (of_norm / layer.points).float()
    of_y, of_bias = torch.empty_like(layer.y), bias.new_zeros(len(y), *bias.shape)
    layer.call("activate_gradient", g, *means, of_y, of_bias)
    of_shift, of_weight = of_norm.float()
    return of_y, of_bias.sum(0), of_weight.clone(), of_shift.clone()


class _Layer(NamedTuple):
    """What all functions of the library start with."""

    kernels: ctypes.CDLL
    y: Tensor
    bias: Tensor
    norm: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, y: Tensor, bias: Tensor) -> "_Layer":
        kernels = _library(len(bias), y.dtype)
        assert kernels is not None
        return cls(kernels, y.contiguous(), bias.contiguous())

    @property
    def points(self) -> int:
        """How many points a channel has."""
        return len(self.y) * self.y.shape[2]

    def normed(
        self, mean: Tensor, var: Tensor, weight: Tensor, shift: Tensor, eps: float
    ) -> "_Layer":
        scale = (var + eps).rsqrt()
        return self._replace(norm=(mean, scale, weight.contiguous(), shift.contiguous()))

    def call(self, name: str, *tensors: Tensor) -> Tensor:
        """Run that function; the last tensor, which it writes."""
        norm = [_Norm(*(part.data_ptr() for part in self.norm))] if self.norm else []
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        self.kernels[name](
            _Shape(*self.y.shape),
            torch.get_num_threads(),
            ctypes.c_void_p(self.y.data_ptr()),
            ctypes.c_void_p(self.bias.data_ptr()),
            *norm,
            *pointers,
        )
        return tensors[-1]


@_activate.register_fake
def _(y: Tensor, bias: Tensor, weight: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor]:
    out = y.new_empty(y.shape[0], bias.shape[0] + 1, *y.shape[2:])
    return out, torch.empty_like(weight), torch.empty_like(weight)


@_activate_gradient.register_fake
def _(
    _: Tensor, y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, *__: object
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    of_y = y.new_empty(y.shape)
    return of_y, torch.empty_like(bias), torch.empty_like(weight), torch.empty_like(shift)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *kept, ctx.eps = inputs
    ctx.save_for_backward(*kept, *output[1:])


def _backward(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    return *_activate_gradient(g, *ctx.saved_tensors, ctx.eps), None


_activate.register_autograd(_backward, setup_context=_keep)
