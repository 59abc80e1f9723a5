"""The activation around batch normalisation: kernels of both halves, forward and backward.

A tile is a few pixels of one image by a block of channels. Programs walk over tiles in strides and
leave one partial result each, so that sums come out the same every time. Blocks of channels come
first in the grid: memory then sees whole pixels, not slivers of them. The first kernel of each half
walks backwards: what was written last is still in the cache, and what it reads last is there for
the second.
"""

import triton
import triton.language as tl

from rotating_features.ops.triton.respond import (
    SHORTEST,
    by_phase,
    ratio,
    respond,
    slots,
    turn_gradients,
)


@triton.jit
def _place(
    tile, block, per_image, pixels, C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    """Image and pixels of a tile, its channels, and which of its entries exist."""
    image = (tile // per_image).to(tl.int64)
    pixel = (tile % per_image) * ROWS + tl.arange(0, ROWS)[:, None]
    c = block * COLS + tl.arange(0, COLS)[None, :]
    return image, pixel * C + c, c, (pixel < pixels) & (c < C)


@triton.jit
def statistics(
    y, bias, mean_out, m2_out, count_out, tiles, per_image, pixels, blocks, programs,
    N: tl.constexpr, SLOTS: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    LIFTED: tl.constexpr, BINDING: tl.constexpr, COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Mean and sum of squared deviations (Welford) of the strengths, per program and channel."""
    block, part = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    stride = pixels * C
    mean = tl.zeros([ROWS, COLS], tl.float32)
    m2 = tl.zeros([ROWS, COLS], tl.float32)
    count = tl.zeros([ROWS, COLS], tl.float32)
    for turn in tl.range(part, tiles, programs, num_stages=STAGES):
        image, at, c, mask = _place(tiles - 1 - turn, block, per_image, pixels, C, ROWS, COLS)
        at = image * SLOTS * stride + at
        _, _, _, _, x = respond(
            y, bias, at, stride, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
        )  # fmt: skip
        count += mask.to(tl.float32)
        off = tl.where(mask, x - mean, 0.0)
        mean += off / tl.maximum(count, 1.0)
        m2 += off * tl.where(mask, x - mean, 0.0)
    total = tl.sum(count, 0)  # the same in all channels
    middle = tl.sum(count * mean, 0) / tl.maximum(total, 1.0)
    apart = mean - middle[None, :]
    spread = tl.sum(m2 + count * apart * apart, 0)
    c = block * COLS + tl.arange(0, COLS)
    out = part * C + c
    tl.store(mean_out + out, middle, mask=c < C)
    tl.store(m2_out + out, spread, mask=c < C)
    tl.store(count_out + part, tl.max(total, 0))


@triton.jit
def combine(
    mean_in, m2_in, count_in, mean_out, scale_out, running_mean, running_var, tracked,
    momentum, eps, programs,
    C: tl.constexpr, PARTS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """One mean and one 1/std from the programs' partial ones (Chan), and the running statistics."""
    p = tl.arange(0, PARTS)[:, None]
    c = tl.program_id(0) * COLS + tl.arange(0, COLS)
    mask = (p < programs) & (c[None, :] < C)
    at = p * C + c[None, :]
    count = tl.load(count_in + p, mask=p < programs, other=0.0)
    mean = tl.load(mean_in + at, mask=mask, other=0.0)
    m2 = tl.load(m2_in + at, mask=mask, other=0.0)
    total = tl.maximum(tl.sum(count, 0), 1.0)
    middle = tl.sum(count * mean, 0) / total
    apart = mean - middle[None, :]
    spread = tl.sum(m2 + count * apart * apart, 0)
    tl.store(mean_out + c, middle, mask=c < C)
    tl.store(scale_out + c, 1.0 / tl.sqrt_rn(spread / total + eps), mask=c < C)
    old = tl.load(running_mean + c, mask=c < C)
    tl.store(running_mean + c, old + momentum * (middle - old), mask=c < C)
    old = tl.load(running_var + c, mask=c < C)
    tl.store(running_var + c, old + momentum * (spread / (total - 1.0) - old), mask=c < C)
    if tl.program_id(0) == 0:
        tl.store(tracked, tl.load(tracked) + 1)


@triton.jit
def _normal(c, x, mean, scale, weight, shift, C: tl.constexpr):
    """Normalised strengths, with and without the affine map after it."""
    inside = c < C
    hat = (x - tl.load(mean + c, mask=inside)) * tl.load(scale + c, mask=inside)
    return hat, hat * tl.load(weight + c, mask=inside) + tl.load(shift + c, mask=inside)


@triton.jit
def apply(
    y, bias, mean, scale, weight, shift, out, per_image, pixels, blocks,
    N: tl.constexpr, SLOTS: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    LIFTED: tl.constexpr, BINDING: tl.constexpr, COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
    ONLY_M: tl.constexpr,
):  # fmt: skip
    """Stacked features from responses and statistics."""
    block, tile = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    stride = pixels * C
    image, at, c, mask = _place(tile, block, per_image, pixels, C, ROWS, COLS)
    here = image * SLOTS * stride + at
    _, psi, r, _, x = respond(
        y, bias, here, stride, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
    )  # fmt: skip
    _, pre = _normal(c, x, mean, scale, weight, shift, C)
    m = tl.where(r < SHORTEST, 0.0, tl.maximum(pre, 0.0, propagate_nan=tl.PropagateNan.ALL))
    kind = out.dtype.element_ty
    if ONLY_M:
        tl.store(out + image * stride + at, m.to(kind), mask=mask)
    else:
        stretch = ratio(m, r)
        if COMPLEX:
            psi = by_phase(psi, bias, c, c < C, C, True)
        to = out + image * (N + 1) * stride + at
        for k in tl.static_range(N):
            tl.store(to + k * stride, (psi[k] * stretch).to(kind), mask=mask)
        tl.store(to + N * stride, m.to(kind), mask=mask)


@triton.jit
def _arriving(
    g, bias, at, stride, c, mask, psi, r, pre,
    N: tl.constexpr, C: tl.constexpr, COMPLEX: tl.constexpr, ONLY_M: tl.constexpr,
):  # fmt: skip
    """The gradient g of the vectors, its part along psi, and what reaches the norm's output."""
    along = tl.zeros(mask.shape, tl.float32)
    g_z = ()
    if not ONLY_M:
        g_z = slots(g, at, stride, mask, N, False)
        if COMPLEX:
            g_z = by_phase(g_z, bias, c, c < C, C, False)
        for k in tl.static_range(N):
            along += g_z[k] * psi[k]
        along = tl.where(r < SHORTEST, 0.0, ratio(along, r))
    slot: tl.constexpr = 0 if ONLY_M else N
    back = along + tl.load(g + at + slot * stride, mask=mask, other=0.0).to(tl.float32)
    return g_z, along, tl.where((r < SHORTEST) | (pre <= 0) | (mask == 0), 0.0, back)


@triton.jit
def gradient_sums(
    g, y, bias, mean, scale, weight, shift, sums, tiles, per_image, pixels, blocks, programs,
    N: tl.constexpr, SLOTS: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    LIFTED: tl.constexpr, BINDING: tl.constexpr, COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
    ONLY_M: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Gradients of the norm's shift and weight, which its input's gradient needs; per program."""
    block, part = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    stride = pixels * C
    total = tl.zeros([ROWS, COLS], tl.float32)
    weighted = tl.zeros([ROWS, COLS], tl.float32)
    g_slots: tl.constexpr = 1 if ONLY_M else N + 1
    for turn in tl.range(part, tiles, programs, num_stages=STAGES):
        image, at, c, mask = _place(tiles - 1 - turn, block, per_image, pixels, C, ROWS, COLS)
        here = image * SLOTS * stride + at
        _, psi, r, _, x = respond(
            y, bias, here, stride, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
        )  # fmt: skip
        hat, pre = _normal(c, x, mean, scale, weight, shift, C)
        there = image * g_slots * stride + at
        _, _, back = _arriving(
            g, bias, there, stride, c, mask, psi, r, pre, N, C, COMPLEX, ONLY_M
        )  # fmt: skip
        total += back
        weighted += back * hat
    c = block * COLS + tl.arange(0, COLS)
    out = sums + part * 2 * C + c
    tl.store(out, tl.sum(total, 0), mask=c < C)
    tl.store(out + C, tl.sum(weighted, 0), mask=c < C)


@triton.jit
def gradients(
    g, y, bias, mean, scale, weight, shift, sums, g_y, g_bias,
    tiles, per_image, pixels, blocks, programs, items,
    N: tl.constexpr, SLOTS: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
    LIFTED: tl.constexpr, BINDING: tl.constexpr, COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
    ONLY_M: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Gradients of the responses, and per program those of the rotation bias.

    Or of the two biases of complex features, which are for magnitudes and phases.
    """
    block, part = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    stride = pixels * C
    kind = g_y.dtype.element_ty
    g_slots: tl.constexpr = 1 if ONLY_M else N + 1
    summed = (tl.zeros([ROWS, COLS], tl.float32),) * N
    for tile in tl.range(part, tiles, programs, num_stages=STAGES):
        image, at, c, mask = _place(tile, block, per_image, pixels, C, ROWS, COLS)
        here = image * SLOTS * stride + at
        there = image * g_slots * stride + at
        f, psi, r, counted, x = respond(
            y, bias, here, stride, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
        )  # fmt: skip
        hat, pre = _normal(c, x, mean, scale, weight, shift, C)
        g_z, along, back = _arriving(
            g, bias, there, stride, c, mask, psi, r, pre, N, C, COMPLEX, ONLY_M
        )  # fmt: skip
        inside = c < C
        level = tl.load(sums + c, mask=inside) / items
        slope = tl.load(sums + C + c, mask=inside) / items
        factor = tl.load(scale + c, mask=inside) * tl.load(weight + c, mask=inside)
        g_x = tl.where(mask, (back - level - hat * slope) * factor, 0.0)
        g_counted = 0.5 * g_x if BINDING else g_x
        m = tl.where(r < SHORTEST, 0.0, tl.maximum(pre, 0.0))
        stretch = ratio(m, r)
        pull = -along * stretch  # the part of the gradient along psi changes no direction
        if COUNT_BIAS:
            pull += g_counted
        pull = ratio(pull, r)
        push = ratio(g_counted, counted)
        to = g_y + here
        new = ()
        for k in tl.static_range(N):
            g_psi = psi[k] * pull
            if not ONLY_M:
                g_psi += g_z[k] * stretch
            g_of_bias = g_psi
            if COMPLEX:
                g_psi, g_of_bias = turn_gradients(psi, g_z, r, stretch, f, g_x, k, ONLY_M)
            new = new + (summed[k] + tl.where(mask, g_of_bias, 0.0),)
            g_f = g_psi if COUNT_BIAS else g_psi + f[k] * push
            if LIFTED:
                if k == 0:
                    tl.store(to, (g_f + g_counted if BINDING else g_f).to(kind), mask=mask)
            else:
                tl.store(to + k * stride, g_f.to(kind), mask=mask)
        summed = new
        if BINDING and not LIFTED:
            tl.store(to + N * stride, g_counted.to(kind), mask=mask)
    c = block * COLS + tl.arange(0, COLS)
    for k in tl.static_range(N):
        total = tl.sum(summed[k], 0)
        tl.store(g_bias + (part * N + k) * C + c, total, mask=c < C)
