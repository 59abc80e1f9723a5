"""Transposed convolution to a few channels, twice as large: from features back to pixels.

Output pixel (2i + a, 2j + b) sees inputs (i + u, j + v) with u <= a and v <= b, through the tap
(a + 1 - 2u, b + 1 - 2v). So each input pixel and its three neighbours below and to the right make
four output pixels, which is one small matrix product for each neighbour.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotating_features.ops.triton.add_up import add_up, partial_sums, precision

ROWS = 64
PROGRAMS = 528


@triton.jit
def _forward(
    x, weight, y, rows, h, w, si, so, sh, sw,
    CI: tl.constexpr, CO: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i, j = (p // w) % h, p % w
    c = tl.arange(0, CI)
    q = tl.arange(0, 16)
    a, b, o = q // CO // 2, q // CO % 2, q % CO
    total = tl.zeros([ROWS, 16], tl.float32)
    for u in tl.static_range(2):
        for v in tl.static_range(2):
            here = (p < rows) & (i + u < h) & (j + v < w)
            source = (p + u * w + v).to(tl.int64)
            part = tl.load(x + source[:, None] * CI + c[None, :], mask=here[:, None], other=0.0)
            kh, kw = a + 1 - 2 * u, b + 1 - 2 * v
            seen = (kh >= 0) & (kw >= 0) & (q < 4 * CO)
            at = c[:, None] * si + o[None, :] * so + kh[None, :] * sh + kw[None, :] * sw
            taps = tl.load(weight + at, mask=seen[None, :], other=0.0)
            total = tl.dot(part, taps, total, input_precision=PRECISION)
    image = (p // (h * w)).to(tl.int64)
    line = (image * 2 * h + 2 * i)[:, None] + a[None, :]
    at = (line * 2 * w + (2 * j)[:, None] + b[None, :]) * CO + o[None, :]
    mask = (p < rows)[:, None] & (q < 4 * CO)[None, :]
    tl.store(y + at, total.to(y.dtype.element_ty), mask=mask)


@triton.jit
def _backward(
    g, x, weight, g_x, g_weight, rows, h, w, si, so, sh, sw, programs,
    CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    c = tl.arange(0, CI)
    q = tl.arange(0, TAPS)
    kh, kw, o = q // CO // 3, q // CO % 3, q % CO
    used = q < 9 * CO
    tap = o * so + kh * sh + kw * sw
    taps = tl.load(weight + tap[:, None] + c[None, :] * si, mask=used[:, None], other=0.0)
    total = tl.zeros([CI, TAPS], tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), programs):
        p = tile * ROWS + tl.arange(0, ROWS)
        i, j = (p // w) % h, p % w
        image = (p // (h * w)).to(tl.int64)
        line = (2 * i - 1)[:, None] + kh[None, :]
        column = (2 * j - 1)[:, None] + kw[None, :]
        here = (p < rows)[:, None] & used[None, :] & (line >= 0) & (column >= 0)
        source = ((image[:, None] * 2 * h + line) * 2 * w + column) * CO + o[None, :]
        patch = tl.load(g + source, mask=here, other=0.0)
        at = p.to(tl.int64)[:, None] * CI + c[None, :]
        part = tl.load(x + at, mask=(p < rows)[:, None], other=0.0)
        back = tl.dot(patch, taps, input_precision=PRECISION)
        tl.store(g_x + at, back.to(g_x.dtype.element_ty), mask=(p < rows)[:, None])
        total = tl.dot(tl.trans(part), patch, total, input_precision=PRECISION)
    to = (tl.program_id(0) * CI + c[:, None]) * 9 * CO + q[None, :]
    tl.store(g_weight + to, total, mask=used[None, :])


class _Upsample(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x = x.contiguous()
        b, h, w, ci = x.shape
        co = weight.shape[1]
        y = x.new_empty(b, 2 * h, 2 * w, co)
        rows = b * h * w
        _forward[(triton.cdiv(rows, ROWS),)](
            x, weight, y, rows, h, w, *weight.stride(),
            CI=ci, CO=co, ROWS=ROWS, PRECISION=precision(),
        )  # fmt: skip
        ctx.save_for_backward(x, weight)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        b, h, w, ci = x.shape
        co = weight.shape[1]
        rows = b * h * w
        programs = min(triton.cdiv(rows, ROWS), PROGRAMS)
        g_x = torch.empty_like(x)
        partial = partial_sums(x)(programs, ci, 9 * co)
        _backward[(programs,)](
            g.contiguous(), x, weight, g_x, partial, rows, h, w, *weight.stride(), programs,
            CI=ci, CO=co, TAPS=max(16, triton.next_power_of_2(9 * co)), ROWS=ROWS,
            PRECISION=precision(),
        )  # fmt: skip
        total = add_up(partial, weight.new_empty(ci, 3, 3, co))  # channels last, as the weight
        return g_x, total.movedim(-1, 1)


def upsample(x: Tensor, weight: Tensor) -> Tensor:
    """As ``convolve`` with stride 2, padding 1 and output padding 1."""
    return _Upsample.apply(x, weight)
