"""The activation around layer normalisation: a program for each item, forward and backward."""

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
def _item(
    y, bias, weight, shift, eps, at, c, mask,
    N: tl.constexpr, C: tl.constexpr, LIFTED: tl.constexpr, BINDING: tl.constexpr,
    COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    """All that both directions need of an item."""
    f, psi, r, counted, x = respond(
        y, bias, at, C, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
    )  # fmt: skip
    x = tl.where(mask, x, 0.0)
    off = tl.where(mask, x - tl.sum(x) / C, 0.0)
    scale = 1.0 / tl.sqrt_rn(tl.sum(off * off) / C + eps)
    hat = off * scale
    pre = hat * tl.load(weight + c, mask=mask, other=0.0) + tl.load(shift + c, mask=mask, other=0.0)
    m = tl.where(r < SHORTEST, 0.0, tl.maximum(pre, 0.0, propagate_nan=tl.PropagateNan.ALL))
    return f, psi, r, counted, hat, scale, pre, m


@triton.jit
def item_forward(
    y, bias, weight, shift, out, eps,
    N: tl.constexpr, SLOTS: tl.constexpr, C: tl.constexpr, COLS: tl.constexpr,
    LIFTED: tl.constexpr, BINDING: tl.constexpr, COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
    ONLY_M: tl.constexpr,
):  # fmt: skip
    """Stacked features of one item."""
    item = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, COLS)
    mask = c < C
    at = item * SLOTS * C + c
    _, psi, r, _, _, _, _, m = _item(
        y, bias, weight, shift, eps, at, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
    )
    kind = out.dtype.element_ty
    if ONLY_M:
        tl.store(out + item * C + c, m.to(kind), mask=mask)
    else:
        stretch = ratio(m, r)
        if COMPLEX:
            psi = by_phase(psi, bias, c, mask, C, True)
        to = out + item * (N + 1) * C + c
        for k in tl.static_range(N):
            tl.store(to + k * C, (psi[k] * stretch).to(kind), mask=mask)
        tl.store(to + N * C, m.to(kind), mask=mask)


@triton.jit
def _slot(g, g_z, k: tl.constexpr, mask, C: tl.constexpr, COMPLEX: tl.constexpr):
    """Slot k of a gradient, read again unless there are only two: all n would fill registers."""
    if COMPLEX:
        return g_z[k]
    return tl.load(g + k * C, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def item_backward(
    g, y, bias, weight, shift, g_y, g_rest, eps,
    N: tl.constexpr, SLOTS: tl.constexpr, C: tl.constexpr, COLS: tl.constexpr,
    LIFTED: tl.constexpr, BINDING: tl.constexpr, COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
    ONLY_M: tl.constexpr,
):  # fmt: skip
    """Gradients of one item's responses, and its share in those of bias, weight and shift."""
    item = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, COLS)
    mask = c < C
    at = item * SLOTS * C + c
    f, psi, r, counted, hat, scale, pre, m = _item(
        y, bias, weight, shift, eps, at, c, mask, N, C, LIFTED, BINDING, COUNT_BIAS, COMPLEX
    )
    g_slots: tl.constexpr = 1 if ONLY_M else N + 1
    there = g + item * g_slots * C + c
    along = tl.zeros([COLS], tl.float32)
    g_z = ()
    if not ONLY_M:
        if COMPLEX:
            g_z = by_phase(slots(there, 0, C, mask, N, False), bias, c, mask, C, False)
        for k in tl.static_range(N):
            along += _slot(there, g_z, k, mask, C, COMPLEX) * psi[k]
        along = tl.where(r < SHORTEST, 0.0, ratio(along, r))
    last: tl.constexpr = (g_slots - 1) * C
    back = along + tl.load(there + last, mask=mask, other=0.0).to(tl.float32)
    back = tl.where((r < SHORTEST) | (pre <= 0) | (mask == 0), 0.0, back)

    g_hat = back * tl.load(weight + c, mask=mask, other=0.0)
    g_x = (g_hat - tl.sum(g_hat) / C - hat * (tl.sum(g_hat * hat) / C)) * scale
    g_counted = 0.5 * g_x if BINDING else g_x
    stretch = ratio(m, r)
    pull = -along * stretch
    if COUNT_BIAS:
        pull += g_counted
    pull = ratio(pull, r)
    push = ratio(g_counted, counted)
    kind = g_y.dtype.element_ty
    rest = g_rest + item * (N + 2) * C + c
    for k in tl.static_range(N):
        g_psi = psi[k] * pull
        if not ONLY_M:
            g_psi += _slot(there, g_z, k, mask, C, COMPLEX) * stretch
        g_of_bias = g_psi
        if COMPLEX:
            g_psi, g_of_bias = turn_gradients(psi, g_z, r, stretch, f, g_x, k, ONLY_M)
        tl.store(rest + k * C, g_of_bias, mask=mask)
        g_f = g_psi if COUNT_BIAS else g_psi + f[k] * push
        if LIFTED:
            if k == 0:
                tl.store(g_y + at, (g_f + g_counted if BINDING else g_f).to(kind), mask=mask)
        else:
            tl.store(g_y + at + k * C, g_f.to(kind), mask=mask)
    if BINDING and not LIFTED:
        tl.store(g_y + at + N * C, g_counted.to(kind), mask=mask)
    tl.store(rest + N * C, back * hat, mask=mask)
    tl.store(rest + (N + 1) * C, back, mask=mask)
