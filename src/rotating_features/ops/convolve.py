"""Convolution of feature maps, channels last.

Convolution libraries like channels by the dozen and are slow in two places that this network has:
a last layer with one to four channels, and weight gradients of layers with 32. On a GPU those have
kernels of their own. On a CPU the first has a way round, gradients of weights have a kernel, and so
have, in float32, 3 x 3 weights that step from pixel to pixel: it needs fewer products.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.ops import Impl, use_triton

Pair = tuple[int, int]


def convolve(
    x: Tensor,
    weight: Tensor,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    output_padding: Pair | None = None,
    impl: Impl | Literal["cpp"] = "auto",
) -> Tensor:
    """Convolve ``x``, or do the transposed: (b, h, w, c) -> (b, h', w', c').

    Args:
        x: Feature maps.
        weight, stride, padding: As in ``nn.Conv2d``, or in ``nn.ConvTranspose2d`` if there is an
            ``output_padding``.
        output_padding: Given for a transposed convolution.
        impl: ``"torch"`` for the definition, ``"triton"`` or ``"cpp"`` for a kernel of GPUs or of
            CPUs, ``"auto"`` to choose.
    """
    if x.is_cuda and torch.is_autocast_enabled("cuda"):
        x, weight = (part.to(torch.get_autocast_dtype("cuda")) for part in (x, weight))
    how = stride, padding, output_padding
    if impl == "cpp" or (impl == "auto" and x.device.type == "cpu"):
        from rotating_features.ops.cpp.convolve import convolve_cpp, use_cpp

        if use_cpp(x, weight, impl, transposed=output_padding is not None):
            return convolve_cpp(x, weight, *how)
    elif use_triton(x, impl):
        from rotating_features.ops.triton.convolve import kernel_for

        kernel = kernel_for(x, weight, *how)
        if kernel is not None:
            with torch.cuda.device(x.device):
                return kernel(x, weight)
        if impl == "triton":
            raise InputError(
                "impl='triton' should get 3 x 3 weights, padding 1, strides 1 or 2 and 16, 32 or "
                f"64 channels; got weights {tuple(weight.shape)}, padding {padding}, stride "
                f"{stride}.\n  Use impl='auto' to fall back to PyTorch."
            )
    if impl == "auto" and not x.is_cuda and output_padding is not None and weight.shape[1] == 1:
        return _fold(x, weight, stride, padding, output_padding)
    if not x.is_cuda and x.dtype == torch.bfloat16 and x.shape[2] < max(2, stride[1]):
        # PyTorch 2.13 leaves parts of the gradient for weights unwritten if a row is one window.
        return convolve_reference(x.float(), weight.float(), *how).to(x.dtype)
    return convolve_reference(x, weight, *how)


def convolve_reference(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair | None
) -> Tensor:
    """The definition. Kernels are correct when they agree with this function."""
    x = x.movedim(-1, 1)
    if output_padding is None:
        y = F.conv2d(x, weight, None, stride, padding)
    else:
        y = F.conv_transpose2d(x, weight, None, stride, padding, output_padding)
    return y.movedim(1, -1)


def _fold(x: Tensor, weight: Tensor, stride: Pair, padding: Pair, output_padding: Pair) -> Tensor:
    """A transposed convolution to one channel: a window for each pixel, and all of them summed."""
    windows = F.conv2d(x.movedim(-1, 1), weight.flatten(1).t()[..., None, None]).flatten(2)
    kernel = weight.shape[2], weight.shape[3]
    h, w = (
        (x.shape[1 + i] - 1) * stride[i] - 2 * padding[i] + kernel[i] + output_padding[i]
        for i in (0, 1)
    )
    return F.fold(windows, (h, w), kernel, 1, padding, stride).movedim(1, -1)
