"""Convolutions with a stride in bfloat16 on a CPU, for the gradient of their weights.

PyTorch 2.13 is twice to three times as slow at it in some processes as in others, for no reason
that could be found: 8 or 20 ms on two cores for the third layer of 4Shapes' network, where one core
alone needs 9. As a product of two matrices it takes 7 ms, every time.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features.ops.convolve import Pair

IN_CACHE = 2**20
"""Numbers in the windows of as many images as are taken at a time."""


def convolve_strided(
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


@torch.library.custom_op("rotating_features::weight_gradient", mutates_args=())
def _weight_gradient(
    wide: Tensor, narrow: Tensor, kernel: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """Every pixel of the narrow map times the window of the wide one that it belongs to.

    A few images at a time, whose windows are still in the cache when they are multiplied, and a
    product for each thread: all threads at one, which has few rows, take a fifth longer.
    """
    (h, w, c), threads = narrow.shape[1:], torch.get_num_threads()
    at_once = max(1, IN_CACHE // (h * w * kernel[0] * kernel[1] * wide.shape[3]))
    products = []
    for first in range(0, len(narrow), at_once):
        pixels = narrow[first : first + at_once].reshape(-1, c)
        seen = _windows(wide[first : first + at_once], [h, w], kernel, stride, padding)
        parts = threads if len(pixels) % threads == 0 else 1
        pixels, seen = (part.view(parts, len(pixels) // parts, -1) for part in (pixels, seen))
        products.append(torch.bmm(pixels.transpose(1, 2), seen))
    product = torch.cat(products).sum(0, dtype=torch.float32).to(narrow.dtype)
    return product.view(c, *kernel, -1).permute(0, 3, 1, 2)


def _windows(
    x: Tensor, count: list[int], kernel: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    """(b, h, w, c) -> (b, *count, kernel, c), with zeros where a window looks beyond the map."""
    rows, columns = ((n - 1) * s + k for n, s, k in zip(count, stride, kernel, strict=True))
    below, right = rows - padding[0] - x.shape[1], columns - padding[1] - x.shape[2]
    padded = F.pad(x, (0, 0, padding[1], right, padding[0], below)).contiguous()
    image, row, column, _ = padded.stride()
    return padded.as_strided(
        (len(x), *count, kernel[0], kernel[1] * x.shape[3]),
        (image, stride[0] * row, stride[1] * column, row, 1),
    ).contiguous()


@_weight_gradient.register_fake
def _(wide: Tensor, narrow: Tensor, kernel: list[int], *_: object) -> Tensor:
    return narrow.new_empty(narrow.shape[3], *kernel, wide.shape[3]).permute(0, 3, 1, 2)


_convolve = torch.library.custom_op("rotating_features::convolve", _forward, mutates_args=())
_convolve.register_fake(_forward)
_convolve.register_autograd(_backward, setup_context=_keep)
