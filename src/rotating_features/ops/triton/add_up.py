"""Sums over partial results, each in the same order every time."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS = 264
"""Partial sums there are at most: two programs for each multiprocessor of the largest GPUs."""


def partial_sums(like: Tensor) -> Callable[..., Tensor]:
    """Makes room for sums on the device of ``like``; in float32, whatever passes there."""
    return lambda *shape: torch.empty(shape, dtype=torch.float32, device=like.device)


@triton.jit
def _add_up(parts, out, count, size, ROWS: tl.constexpr, COLS: tl.constexpr):
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)[None, :]
    row = tl.arange(0, ROWS)[:, None]
    total = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, count, ROWS):
        mask = (start + row < count) & (at < size)
        total += tl.load(parts + (start + row).to(tl.int64) * size + at, mask=mask, other=0.0)
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    tl.store(out + at, tl.sum(total, 0).to(out.dtype.element_ty), mask=at < size)


def add_up(parts: Tensor, out: Tensor) -> Tensor:
    """``parts.sum(0)`` into ``out``; few rows or many, few columns or many."""
    size = out.numel()
    rows, cols = (256, 16) if size < 8192 else (16, 128)
    _add_up[(triton.cdiv(size, cols),)](parts, out, len(parts), size, ROWS=rows, COLS=cols)
    return out


def precision() -> str:
    """Of products of float32 matrices: what PyTorch's convolutions are allowed."""
    return "tf32" if torch.backends.cudnn.conv.fp32_precision == "tf32" else "ieee"
