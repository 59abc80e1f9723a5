"""The kernel behind ``ops/convolve.py``: the gradient of a 3 x 3 convolution's weights.

.. math:: g_w[a, k, c] = \\sum_p A[p, a] \\, B[s p + k - 1, c]

over all pixels p of all images. A program takes a share of the pixels and one row of three taps.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from rotating_features.ops.triton.add_up import add_up, partial_sums, precision

SPLITS = 88
CHUNK = 64


@triton.jit
def _weight_gradient(
    a_map, b_map, out, pixels, h, w, bh, bw, splits,
    CA: tl.constexpr, CB: tl.constexpr, BLOCK: tl.constexpr, STRIDE: tl.constexpr,
    CHUNK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    split, kh = tl.program_id(0), tl.program_id(1)
    ca, cb = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, CB)
    left = tl.zeros([BLOCK, CB], tl.float32)
    middle = tl.zeros([BLOCK, CB], tl.float32)
    right = tl.zeros([BLOCK, CB], tl.float32)
    for chunk in range(split, tl.cdiv(pixels, CHUNK), splits):
        p = chunk * CHUNK + tl.arange(0, CHUNK)
        i, j, image = (p // w) % h, p % w, (p // (h * w)).to(tl.int64)
        here = p < pixels
        at = p.to(tl.int64)[:, None] * CA + ca[None, :]
        a = tl.load(a_map + at, mask=here[:, None], other=0.0)
        line, column = i * STRIDE + kh - 1, j * STRIDE - 1
        fits = here & (line >= 0) & (line < bh)
        at = (((image * bh + line) * bw + column) * CB)[:, None] + cb[None, :]
        b0 = tl.load(b_map + at, mask=(fits & (column >= 0))[:, None], other=0.0)
        b1 = tl.load(b_map + at + CB, mask=fits[:, None], other=0.0)
        b2 = tl.load(b_map + at + 2 * CB, mask=(fits & (column + 2 < bw))[:, None], other=0.0)
        at_t = tl.trans(a)
        left = tl.dot(at_t, b0, left, input_precision=PRECISION)
        middle = tl.dot(at_t, b1, middle, input_precision=PRECISION)
        right = tl.dot(at_t, b2, right, input_precision=PRECISION)
    to = out + ((split * CA + ca[:, None]) * 9 + kh * 3) * CB + cb[None, :]
    tl.store(to, left)
    tl.store(to + CB, middle)
    tl.store(to + 2 * CB, right)


def weight_gradient(a_map: Tensor, b_map: Tensor, stride: int) -> Tensor:
    """Channels-last maps (b, h, w, ca) and (b, bh, bw, cb) -> (ca, 3, 3, cb)."""
    b, h, w, ca = a_map.shape
    _, bh, bw, cb = b_map.shape
    pixels = b * h * w
    half = a_map.dtype == torch.bfloat16
    block = ca if half else min(ca, 32)
    splits = min(SPLITS, triton.cdiv(pixels, CHUNK))
    partial = partial_sums(a_map)(splits, ca, 3, 3, cb)
    _weight_gradient[splits, 3, ca // block](
        a_map, b_map, partial, pixels, h, w, bh, bw, splits,
        CA=ca, CB=cb, BLOCK=block, STRIDE=stride, CHUNK=CHUNK, PRECISION=precision(),
        num_stages=3,
    )  # fmt: skip
    return add_up(partial, a_map.new_empty(ca, 3, 3, cb))
