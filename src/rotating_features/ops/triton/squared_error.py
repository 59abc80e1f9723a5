"""The kernels behind ``ops/squared_error.py``: one pass forward, one back."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotating_features.ops.triton.add_up import PROGRAMS, add_up, partial_sums


@triton.jit
def _slope(
    m, weight, bias, x, tile, block, rows, h, w, mb, mh, mw, xb, xc, xh, xw, scale,
    C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, SIGMOID: tl.constexpr,
):  # fmt: skip
    """Magnitudes of a tile, errors, and the loss's slope before the sigmoid."""
    p = tile * ROWS + tl.arange(0, ROWS)[:, None]
    c = block * COLS + tl.arange(0, COLS)[None, :]
    image, i, j = (p // (h * w)).to(tl.int64), p // w % h, p % w
    mask = (p < rows) & (c < C)
    at = image * mb + i * mh + j * mw + c
    size = tl.load(m + at, mask=mask, other=0.0).to(tl.float32)
    goal = tl.load(x + image * xb + c * xc + i * xh + j * xw, mask=mask, other=0.0)
    factor = tl.load(weight + c, mask=c < C, other=0.0)
    y = factor * size + tl.load(bias + c, mask=c < C, other=0.0)
    if SIGMOID:
        y = 1 / (1 + tl.exp(-y))
    error = tl.where(mask, y - goal, 0.0)
    slope = error * (2 * scale)
    if SIGMOID:
        slope *= y * (1 - y)
    return p, c, mask, size, error, slope, factor


@triton.jit
def _forward(
    m, weight, bias, x, sums, rows, h, w, mb, mh, mw, xb, xc, xh, xw, scale, blocks, programs,
    C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, SIGMOID: tl.constexpr,
):  # fmt: skip
    block, part = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    squares = tl.zeros([ROWS, COLS], tl.float32)
    of_weight = tl.zeros([ROWS, COLS], tl.float32)
    of_bias = tl.zeros([ROWS, COLS], tl.float32)
    for tile in range(part, tl.cdiv(rows, ROWS), programs):
        _, _, _, size, error, slope, _ = _slope(
            m, weight, bias, x, tile, block, rows, h, w, mb, mh, mw, xb, xc, xh, xw, scale,
            C, ROWS, COLS, SIGMOID,
        )  # fmt: skip
        squares += error * error * scale
        of_weight += slope * size
        of_bias += slope
    c = block * COLS + tl.arange(0, COLS)
    to = sums + part * 3 * C + c
    tl.store(to, tl.sum(squares, 0), mask=c < C)
    tl.store(to + C, tl.sum(of_weight, 0), mask=c < C)
    tl.store(to + 2 * C, tl.sum(of_bias, 0), mask=c < C)


@triton.jit
def _backward(
    g, m, weight, bias, x, g_m, rows, h, w, mb, mh, mw, xb, xc, xh, xw, scale, blocks,
    C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, SIGMOID: tl.constexpr,
):  # fmt: skip
    block, tile = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    p, c, mask, _, _, slope, factor = _slope(
        m, weight, bias, x, tile, block, rows, h, w, mb, mh, mw, xb, xc, xh, xw, scale,
        C, ROWS, COLS, SIGMOID,
    )  # fmt: skip
    back = slope * factor * tl.load(g)
    tl.store(g_m + p.to(tl.int64) * C + c, back.to(g_m.dtype.element_ty), mask=mask)


class _SquaredError(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, m: Tensor, weight: Tensor, bias: Tensor, x: Tensor, sigmoid: bool
    ) -> Tensor:
        m = m if m.stride(-1) == 1 or m.shape[-1] == 1 else m.contiguous()
        b, h, w, c = m.shape
        cols = min(triton.next_power_of_2(c), 128)
        shape = {"C": c, "ROWS": 512 // cols, "COLS": cols, "SIGMOID": sigmoid}
        place = b * h * w, h, w, *m.stride()[:3], *x.stride(), 1 / m.numel(), triton.cdiv(c, cols)
        tiles, blocks = triton.cdiv(b * h * w, shape["ROWS"]), triton.cdiv(c, cols)
        programs = min(tiles, PROGRAMS)
        new = partial_sums(m)
        partial = new(programs, 3, c)
        _forward[(blocks * programs,)](m, weight, bias, x, partial, *place, programs, **shape)
        sums = add_up(partial, new(3, c))
        ctx.save_for_backward(m, weight, bias, x, sums)
        ctx.how = (blocks * tiles,), place, shape
        return sums[0].sum() if c > 1 else sums[0, 0].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        m, weight, bias, x, sums = ctx.saved_tensors
        grid, place, shape = ctx.how
        g_m = torch.empty_like(m, memory_format=torch.contiguous_format)
        _backward[grid](g, m, weight, bias, x, g_m, *place, **shape)
        of_weight, of_bias = sums[1:] * g
        return g_m, of_weight, of_bias, None, None


def squared_error_triton(
    m: Tensor, weight: Tensor, bias: Tensor, x: Tensor, sigmoid: bool
) -> Tensor:
    """As :func:`rotating_features.ops.squared_error.squared_error_reference`."""
    return _SquaredError.apply(m, weight, bias, x, sigmoid)
