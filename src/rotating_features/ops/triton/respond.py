"""What all kernels of the activation share: responses read, lengths and strengths computed."""

import triton
import triton.language as tl

from rotating_features.ops import rescale

SHORTEST = tl.constexpr(rescale.SHORTEST)
"""A shorter vector counts as zero."""


@triton.jit
def slots(y, at, stride, mask, N: tl.constexpr, LIFTED: tl.constexpr):
    """The responses f of all n slots, as a tuple."""
    f = ()
    for k in tl.static_range(N):
        if LIFTED and k > 0:
            f = f + (tl.zeros(mask.shape, tl.float32),)
        else:
            f = f + (tl.load(y + at + k * stride, mask=mask, other=0.0).to(tl.float32),)
    return f


@triton.jit
def turned(f, bias, c, inside, C: tl.constexpr, N: tl.constexpr):
    """psi, the responses with the rotation bias added."""
    psi = ()
    for k in tl.static_range(N):
        psi = psi + (f[k] + tl.load(bias + k * C + c, mask=inside, other=0.0),)
    return psi


@triton.jit
def length(v, N: tl.constexpr):
    """Norms of vectors given as tuples."""
    squares = v[0] * v[0]
    for k in tl.static_range(1, N):
        squares += v[k] * v[k]
    return tl.sqrt_rn(squares)


@triton.jit
def strength(
    y, at, stride, mask, counted,
    N: tl.constexpr, LIFTED: tl.constexpr, BINDING: tl.constexpr,
):  # fmt: skip
    """What the norm is applied to: half the counted length and half chi."""
    if not BINDING:
        return counted
    slot: tl.constexpr = 0 if LIFTED else N
    chi = tl.load(y + at + slot * stride, mask=mask, other=0.0).to(tl.float32)
    return 0.5 * counted + 0.5 * chi


@triton.jit
def respond(
    y, bias, at, stride, c, mask,
    N: tl.constexpr, C: tl.constexpr, LIFTED: tl.constexpr, BINDING: tl.constexpr,
    COUNT_BIAS: tl.constexpr,
):  # fmt: skip
    """All that comes before the norm: f, psi and its length, the counted length, the strength."""
    f = slots(y, at, stride, mask, N, LIFTED)
    psi = turned(f, bias, c, c < C, C, N)
    r = length(psi, N)
    counted = r if COUNT_BIAS else length(f, N)
    x = strength(y, at, stride, mask, counted, N, LIFTED, BINDING)
    return f, psi, r, counted, x


@triton.jit
def ratio(a, b):
    """a / b, correctly rounded; zero where b is zero."""
    return tl.where(b == 0, 0.0, tl.div_rn(a, tl.where(b == 0, 1.0, b)))
