"""From pixels, a few channels, to features on a grid half as fine, and back.

Both ways the weights are (c, few, 3, 3), the stride is 2 and the padding 1, as in ``convolve``. Up,
output pixel (2i + a, 2j + b) sees inputs (i + u, j + v) with u <= a and v <= b, through the tap
(a + 1 - 2u, b + 1 - 2v). So each input pixel and its three neighbours below and to the right make
four output pixels, which is one small matrix product for each neighbour. Down, features are the
pixels' 3 x 3 patches times the taps; and so is the gradient of what went up.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotating_features.ops.beside import current, run_beside
from rotating_features.ops.triton.add_up import add_up, partial_sums, precision

ROWS = 64
PROGRAMS = 528


@triton.jit
def _up(
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
def _patches(
    pixels, features, weight, out, sums, rows, h, w, lines, columns, si, so, sh, sw, programs,
    CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, ROWS: tl.constexpr,
    MULTIPLY: tl.constexpr, SUM: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``out`` = patches times taps; ``sums`` = features times patches, per program."""
    c = tl.arange(0, CI)
    q = tl.arange(0, TAPS)
    kh, kw, o = q // CO // 3, q // CO % 3, q % CO
    used = q < 9 * CO
    tap = o * so + kh * sh + kw * sw
    if MULTIPLY:
        taps = tl.load(weight + tap[:, None] + c[None, :] * si, mask=used[:, None], other=0.0)
    total = tl.zeros([CI, TAPS], tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, ROWS), programs):
        p = tile * ROWS + tl.arange(0, ROWS)
        i, j = (p // w) % h, p % w
        image = (p // (h * w)).to(tl.int64)
        line = (2 * i - 1)[:, None] + kh[None, :]
        column = (2 * j - 1)[:, None] + kw[None, :]
        here = (p < rows)[:, None] & used[None, :]
        here &= (line >= 0) & (line < lines) & (column >= 0) & (column < columns)
        source = ((image[:, None] * lines + line) * columns + column) * CO + o[None, :]
        patch = tl.load(pixels + source, mask=here, other=0.0)
        at = p.to(tl.int64)[:, None] * CI + c[None, :]
        if MULTIPLY:
            product = tl.dot(patch, taps, input_precision=PRECISION)
            tl.store(out + at, product.to(out.dtype.element_ty), mask=(p < rows)[:, None])
        if SUM:
            part = tl.load(features + at, mask=(p < rows)[:, None], other=0.0)
            total = tl.dot(tl.trans(part), patch, total, input_precision=PRECISION)
    if SUM:
        to = (tl.program_id(0) * CI + c[:, None]) * 9 * CO + q[None, :]
        tl.store(sums + to, total, mask=used[None, :])


def _run_patches(
    pixels: Tensor, features: Tensor, weight: Tensor, *, multiply: bool, add: bool
) -> tuple[Tensor, Tensor]:
    """What the kernel makes of (b, H, W, few) and, if sums are wanted, (b, h, w, c)."""
    b, h, w, ci = features.shape
    co = weight.shape[1]
    rows = b * h * w
    programs = min(triton.cdiv(rows, ROWS), PROGRAMS)
    out = torch.empty_like(features) if multiply else features
    sums = partial_sums(features)(programs if add else 0, ci, 9 * co)
    _patches[(programs,)](
        pixels, features, weight, out, sums, rows, h, w, *pixels.shape[1:3], *weight.stride(),
        programs, CI=ci, CO=co, TAPS=max(16, triton.next_power_of_2(9 * co)), ROWS=ROWS,
        MULTIPLY=multiply, SUM=add, PRECISION=precision(),
    )  # fmt: skip
    return out, sums


def _summed(partial: Tensor, weight: Tensor) -> Tensor:
    """The weight's gradient; channels last in memory, as the weight."""
    ci, co = weight.shape[:2]
    return add_up(partial, weight.new_empty(ci, 3, 3, co)).movedim(-1, 1)


class _Upsample(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x = x.contiguous()
        b, h, w, ci = x.shape
        co = weight.shape[1]
        y = x.new_empty(b, 2 * h, 2 * w, co)
        rows = b * h * w
        _up[(triton.cdiv(rows, ROWS),)](
            x, weight, y, rows, h, w, *weight.stride(),
            CI=ci, CO=co, ROWS=ROWS, PRECISION=precision(),
        )  # fmt: skip
        ctx.save_for_backward(x, weight)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        g_x, partial = _run_patches(g.contiguous(), x, weight, multiply=True, add=True)
        return g_x, _summed(partial, weight)


class _Downsample(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x = x.contiguous()
        b, h, w, _ = x.shape
        y = x.new_empty(b, (h + 1) // 2, (w + 1) // 2, len(weight))
        ctx.save_for_backward(x, weight)
        ctx.beside = current() if weight.is_leaf else None
        return _run_patches(x, y, weight, multiply=True, add=False)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor]:
        x, weight = ctx.saved_tensors

        def of_weight(g: Tensor, x: Tensor) -> Tensor:
            return _summed(_run_patches(x, g, weight, multiply=False, add=True)[1], weight)

        return None, run_beside(ctx.beside, of_weight, g.contiguous(), x)


def upsample(x: Tensor, weight: Tensor) -> Tensor:
    """As ``convolve`` with stride 2, padding 1 and output padding 1."""
    return _Upsample.apply(x, weight)


def downsample(x: Tensor, weight: Tensor) -> Tensor:
    """As ``convolve`` with stride 2 and padding 1, for ``x`` that need no gradient."""
    return _Downsample.apply(x, weight)
