"""The kernels behind ``ops/activate.py`` and ``ops/activate_complex.py``, differentiable."""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from rotating_features.ops.beside import current, run_beside
from rotating_features.ops.triton import batch, item
from rotating_features.ops.triton.add_up import PROGRAMS, add_up, partial_sums

PER_THREAD = 4
WARPS = 4
STAGES = 3
"""Tiles under way at once in a program: while one is computed, the next ones are fetched."""


def activate_triton(
    y: Tensor,
    bias: Tensor,
    norm: nn.BatchNorm1d | nn.LayerNorm,
    *,
    bias_in_magnitude: bool,
    binding: bool,
    only_magnitude: bool,
) -> Tensor:
    """As :func:`rotating_features.ops.activate.activate_reference`."""
    how = {"BINDING": binding, "COUNT_BIAS": bias_in_magnitude, "COMPLEX": False}
    return _activate(y, bias, norm, how, only_magnitude)


def activate_complex_triton(
    y: Tensor,
    magnitude_bias: Tensor,
    phase_bias: Tensor,
    norm: nn.BatchNorm1d | nn.LayerNorm,
    *,
    only_magnitude: bool,
) -> Tensor:
    """As :func:`rotating_features.ops.activate_complex.activate_complex_reference`.

    A complex number is a vector of length 2, and its biases are as many.
    """
    how = {"BINDING": True, "COUNT_BIAS": False, "COMPLEX": True}
    return _activate(y, torch.stack([magnitude_bias, phase_bias]), norm, how, only_magnitude)


def _activate(
    y: Tensor,
    bias: Tensor,
    norm: nn.BatchNorm1d | nn.LayerNorm,
    how: dict[str, bool],
    only_magnitude: bool,
) -> Tensor:
    slots, c = y.shape[1], y.shape[-1]
    flags = {"N": len(bias), "SLOTS": slots, "C": c, "LIFTED": slots == 1, **how}
    y, bias = y.contiguous(), bias.contiguous()
    if isinstance(norm, nn.LayerNorm):
        return _Item.apply(y, bias, norm.weight, norm.bias, norm.eps, flags, only_magnitude)
    return _Batch.apply(y, bias, norm.weight, norm.bias, norm, flags, only_magnitude)


class _Tiling(NamedTuple):
    """How the pixels of a batch are cut up."""

    pixels: int
    per_image: int
    tiles: int
    blocks: int
    programs: int
    shape: dict[str, int]


def _tiling(y: Tensor, *, warps: int = WARPS, alone: bool = False) -> _Tiling:
    """A model alone on the GPU takes all programs; beside others, fewer partial sums cost less."""
    b, c = y.shape[0], y.shape[-1]
    pixels = y[0, 0].numel() // c
    cols = min(triton.next_power_of_2(c), 128)
    rows = min(PER_THREAD * 32 * warps // cols, max(triton.next_power_of_2(pixels), 1))
    per_image = triton.cdiv(pixels, rows)
    shape = {"ROWS": rows, "COLS": cols}
    tiles, programs = b * per_image, PROGRAMS if alone else PROGRAMS // 2
    return _Tiling(pixels, per_image, tiles, triton.cdiv(c, cols), min(tiles, programs), shape)


def _output(y: Tensor, n: int, only_magnitude: bool) -> Tensor:
    b, _, *rest = y.shape
    return y.new_empty((b, *rest) if only_magnitude else (b, n + 1, *rest))


class _Batch(torch.autograd.Function):
    """Around batch normalisation."""

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        bias: Tensor,
        weight: Tensor,
        shift: Tensor,
        norm: nn.BatchNorm1d,
        flags: dict[str, Any],
        only_magnitude: bool,
    ) -> Tensor:
        t = _tiling(y, alone=current() is not None)
        mean, scale = _statistics(y, bias, norm, flags, t) if norm.training else _running(norm)
        out = _output(y, flags["N"], only_magnitude)
        a = _tiling(y, warps=2 * WARPS)  # it has no sums to keep, so larger tiles fit
        batch.apply[(a.blocks * a.tiles,)](
            y, bias, mean, scale, weight, shift, out, a.per_image, a.pixels, a.blocks,
            **flags, **a.shape, ONLY_M=only_magnitude, num_warps=2 * WARPS,
        )  # fmt: skip
        ctx.save_for_backward(y, bias, mean, scale, weight, shift)
        ctx.kind = flags, only_magnitude, norm.training
        ctx.beside = current() if bias.is_leaf else None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        y, bias, mean, scale, weight, shift = ctx.saved_tensors
        flags, only_magnitude, training = ctx.kind
        t = _tiling(y, alone=ctx.beside is not None)
        g = g.contiguous()
        c, n = y.shape[-1], len(bias)
        options = {**flags, **t.shape, "ONLY_M": only_magnitude, "STAGES": STAGES}
        new = partial_sums(y)
        partial = new(t.programs, 2, c)
        batch.gradient_sums[(t.blocks * t.programs,)](
            g, y, bias, mean, scale, weight, shift, partial,
            t.tiles, t.per_image, t.pixels, t.blocks, t.programs, **options, num_warps=WARPS,
        )  # fmt: skip
        sums = add_up(partial, new(2, c))
        through = sums if training else torch.zeros_like(sums)  # fixed statistics pass nothing on
        g_y, g_bias = torch.empty_like(y), new(t.programs, n, c)
        batch.gradients[(t.blocks * t.programs,)](
            g, y, bias, mean, scale, weight, shift, through, g_y, g_bias,
            t.tiles, t.per_image, t.pixels, t.blocks, t.programs, y.shape[0] * t.pixels, **options,
            num_warps=WARPS,
        )  # fmt: skip
        total = run_beside(ctx.beside, add_up, g_bias, torch.empty_like(bias))
        return g_y, total, sums[1], sums[0], None, None, None


def _statistics(
    y: Tensor, bias: Tensor, norm: nn.BatchNorm1d, flags: dict[str, Any], t: _Tiling
) -> tuple[Tensor, Tensor]:
    """Mean and 1/std of this batch; the running statistics move towards them."""
    c = y.shape[-1]
    if y.shape[0] * t.pixels < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got {y.shape}")
    new = partial_sums(bias)
    partial = *new(2, t.programs, c), new(t.programs)
    batch.statistics[(t.blocks * t.programs,)](
        y, bias, *partial, t.tiles, t.per_image, t.pixels, t.blocks, t.programs,
        **flags, **t.shape, STAGES=STAGES, num_warps=WARPS,
    )  # fmt: skip
    mean, scale = new(2, c)
    cols = min(triton.next_power_of_2(c), 8)
    batch.combine[(triton.cdiv(c, cols),)](
        *partial, mean, scale, norm.running_mean, norm.running_var, norm.num_batches_tracked,
        norm.momentum, norm.eps, t.programs,
        C=c, PARTS=triton.next_power_of_2(t.programs), COLS=cols, num_warps=8,
    )  # fmt: skip
    return mean, scale


def _running(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean, (norm.running_var + norm.eps).rsqrt()


class _Item(torch.autograd.Function):
    """Around layer normalisation."""

    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        bias: Tensor,
        weight: Tensor,
        shift: Tensor,
        eps: float,
        flags: dict[str, Any],
        only_magnitude: bool,
    ) -> Tensor:
        options = _item_options(flags, only_magnitude)
        out = _output(y, len(bias), only_magnitude)
        item.item_forward[(y.shape[0],)](y, bias, weight, shift, out, eps, **options)
        ctx.save_for_backward(y, bias, weight, shift)
        ctx.kind = eps, options
        ctx.beside = current() if bias.is_leaf and weight.is_leaf and shift.is_leaf else None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        y, bias, weight, shift = ctx.saved_tensors
        eps, options = ctx.kind
        g_y = torch.empty_like(y)
        rest = partial_sums(bias)(y.shape[0], len(bias) + 2, y.shape[-1])
        item.item_backward[(y.shape[0],)](
            g.contiguous(), y, bias, weight, shift, g_y, rest, eps, **options
        )
        total = run_beside(ctx.beside, add_up, rest, torch.empty_like(rest[0]))
        return g_y, total[:-2], total[-2], total[-1], None, None, None


def _item_options(flags: dict[str, Any], only_magnitude: bool) -> dict[str, Any]:
    cols = triton.next_power_of_2(flags["C"])
    return {
        **flags,
        "COLS": cols,
        "ONLY_M": only_magnitude,
        "num_warps": min(16, max(4, cols // 128)),
    }
