"""What all kernels of the activation share: responses read, lengths and strengths computed."""

import triton
import triton.language as tl

from rotating_features.ops import activate_complex, rescale

SHORTEST = tl.constexpr(rescale.SHORTEST)
"""A shorter vector counts as zero."""
LEAST = tl.constexpr(activate_complex.SHORTEST)
"""A shorter imaginary part counts as this long."""


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
def replaced(f):
    """Which real and imaginary parts are too small to be read."""
    small = tl.abs(f[1]) < LEAST
    return small & (tl.abs(f[0]) < LEAST), small


@triton.jit
def leaned(f):
    """psi of complex numbers: where they point is known of all of them."""
    re, im = replaced(f)
    return tl.where(re, 0.0, f[0]), tl.where(im, LEAST, f[1])


@triton.jit
def by_phase(v, bias, c, inside, C: tl.constexpr, FORTH: tl.constexpr):
    """Complex numbers turned by the phase bias, or back by it."""
    angle = tl.load(bias + C + c, mask=inside, other=0.0)
    cos, sin = tl.cos(angle), tl.sin(angle)
    if not FORTH:
        sin = -sin
    return v[0] * cos - v[1] * sin, v[0] * sin + v[1] * cos


@triton.jit
def turn_gradients(psi, g_z, r, stretch, f, g_x, k: tl.constexpr, ONLY_M: tl.constexpr):
    """Of complex numbers, slot k of the gradients of f by its direction, and of the biases.

    In two dimensions a direction changes along psi turned by 90 degrees and no other way; to
    subtract what lies along psi, as for longer vectors, would cost digits.
    """
    turning = tl.zeros(psi[0].shape, tl.float32)
    if not ONLY_M:
        turning = (psi[0] * g_z[1] - psi[1] * g_z[0]) * stretch
    sideways = (-psi[1] if k == 0 else psi[0]) * ratio(ratio(turning, r), r)
    return tl.where(replaced(f)[k], 0.0, sideways), g_x if k == 0 else turning


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
    COUNT_BIAS: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    """All that comes before the norm: f, psi and its length, the counted length, the strength."""
    f = slots(y, at, stride, mask, N, LIFTED)
    psi = leaned(f) if COMPLEX else turned(f, bias, c, c < C, C, N)
    r = length(psi, N)
    counted = r if COUNT_BIAS else length(f, N)
    x = strength(y, at, stride, mask, counted, N, LIFTED, BINDING)
    if COMPLEX:
        x += tl.load(bias + c, mask=c < C, other=0.0)
    return f, psi, r, counted, x


@triton.jit
def ratio(a, b):
    """a / b, correctly rounded; zero where b is zero."""
    return tl.where(b == 0, 0.0, tl.div_rn(a, tl.where(b == 0, 1.0, b)))
