"""The kernels behind ``ops/adam.py``: one pass for the gradient's norm, one for all the rest."""

import math

import triton
import triton.language as tl
from torch import Tensor

from rotating_features.ops.adam import BETA1, BETA2, EPS
from rotating_features.ops.triton.add_up import partial_sums

BLOCK = 1024
SUM_BLOCK = 4096
"""Larger, since every program of the second pass adds up all sums of the first."""


@triton.jit
def _square_sums(g, sums, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(g + at, mask=at < size, other=0.0)
    tl.store(sums + tl.program_id(0), tl.sum(x * x))


@triton.jit
def _update(
    p, g, m, v, t, rate, sums, parts, clip, decay, size,
    BETA1: tl.constexpr, BETA2: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr,
    EPS: tl.constexpr, CLIP: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < size
    x = tl.load(g + at, mask=here, other=0.0)
    old = tl.load(p + at, mask=here, other=0.0)
    mean = tl.load(m + at, mask=here, other=0.0)
    square = tl.load(v + at, mask=here, other=0.0)
    steps, size_of_step = tl.load(t), tl.load(rate)
    if CLIP:
        i = tl.arange(0, PARTS)
        norm = tl.sqrt_rn(tl.sum(tl.load(sums + i, mask=i < parts, other=0.0)))
        x *= tl.minimum(clip / (norm + 1e-6), 1.0, propagate_nan=tl.PropagateNan.ALL)
    x += decay * old
    mean += (1 - BETA1) * (x - mean)
    square += (1 - BETA2) * (x * x - square)
    left1 = 1 - tl.exp2(steps * LOG1)
    left2 = 1 - tl.exp2(steps * LOG2)
    root = tl.sqrt_rn(square / left2) + EPS
    tl.store(p + at, old - size_of_step / left1 * mean / root, mask=here)
    tl.store(m + at, mean, mask=here)
    tl.store(v + at, square, mask=here)


def adam_triton_(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    t: Tensor,
    rate: Tensor,
    *,
    clip: float | None,
    decay: float,
) -> None:
    """As :func:`rotating_features.ops.adam.adam_reference_`."""
    size = p.numel()
    parts = triton.cdiv(size, SUM_BLOCK)
    sums = partial_sums(p)(parts)
    if clip is not None:
        _square_sums[(parts,)](g, sums, size, BLOCK=SUM_BLOCK, num_warps=8)
    _update[(triton.cdiv(size, BLOCK),)](
        p, g, m, v, t, rate, sums, parts, clip or 0.0, decay, size,
        BETA1=BETA1, BETA2=BETA2, LOG1=math.log2(BETA1), LOG2=math.log2(BETA2), EPS=EPS,
        CLIP=clip is not None, PARTS=triton.next_power_of_2(parts), BLOCK=BLOCK,
    )  # fmt: skip
