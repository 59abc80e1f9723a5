r"""Activation: all that a rotating layer does after its linear map.

.. math::
    \psi &= f + b \\
    m    &= \mathrm{ReLU}(\mathrm{Norm}(\tfrac12\lVert\psi\rVert + \tfrac12\chi)) \\
    z    &= m \, \psi \,/\, \lVert\psi\rVert

A response ``y`` is stacked, channels last: :math:`f` in slots 1 to n and :math:`\chi` in slot
n + 1. So is the result: :math:`z`, and the lengths :math:`m`, which the next layer needs.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.ops import Impl, use_triton
from rotating_features.ops.activate_cpu import activate_cpu
from rotating_features.ops.bind import bind
from rotating_features.ops.rescale import rescale
from rotating_features.vectors import ROTATION, magnitude

Norm = nn.BatchNorm1d | nn.LayerNorm


def activate(
    y: Tensor,
    bias: Tensor,
    norm: Norm,
    *,
    bias_in_magnitude: bool = True,
    binding: bool = True,
    only_magnitude: bool = False,
    impl: Impl | Literal["cpp"] = "auto",
) -> Tensor:
    """Stacked features from a linear map's response, (b, n + 1, *space, c) -> the same.

    Args:
        y: The response. Without ``binding`` it has no slot n + 1. If it has one slot alone, the
            map saw a lifted image: that slot is both :math:`f_1` and :math:`\\chi`, and the other
            :math:`f_k` are zero.
        bias: The rotation bias, (n, c).
        norm: Over all that is not a channel, or over the channels of an item.
        bias_in_magnitude, binding: As in :class:`rotating_features.nn.RotatingLayer`.
        only_magnitude: Return the magnitudes alone, (b, *space, c).
        impl: ``"torch"`` for the definition, ``"triton"`` or ``"cpp"`` for the kernel of GPUs or of
            CPUs, ``"auto"`` to choose.
    """
    switches = {
        "bias_in_magnitude": bias_in_magnitude,
        "binding": binding,
        "only_magnitude": only_magnitude,
    }
    if impl == "cpp" or (impl == "auto" and y.device.type == "cpu"):
        from rotating_features.ops.cpp.activate import activate_cpp, use_cpp

        if use_cpp(y, bias, norm, impl, **switches):
            assert isinstance(norm, nn.BatchNorm1d)
            return activate_cpp(y, bias, norm)
    elif use_kernel(y, norm, impl):
        from rotating_features.ops.triton.activate import activate_triton

        with torch.cuda.device(y.device):
            return activate_triton(y, bias, norm, **switches)
    if impl == "auto" and y.device.type == "cpu" and binding and bias_in_magnitude:
        return activate_cpu(y, bias, norm, only_magnitude=only_magnitude)
    return activate_reference(y, bias, norm, **switches)


def use_kernel(y: Tensor, norm: Norm, impl: Impl) -> bool:
    """Decide which implementation of an activation a call gets."""
    usable = use_triton(y, impl)
    if usable and impl == "triton" and not _suits(y, norm):
        raise InputError(
            "impl='triton' should get a batch norm, or a layer norm of items without space, "
            f"with weights, bias and momentum; got {norm} for shape {tuple(y.shape)}.\n"
            "  Use impl='auto' to fall back to PyTorch."
        )
    return usable and _suits(y, norm)


def _suits(y: Tensor, norm: Norm) -> bool:
    """Whether the kernel knows such a norm; it holds all channels of an item at once."""
    if norm.weight is None or norm.bias is None:
        return False
    if isinstance(norm, nn.LayerNorm):
        return y.ndim == 3 and norm.normalized_shape == y.shape[2:] and y.shape[2] <= 2**14
    return norm.momentum is not None and norm.track_running_stats


def activate_reference(
    y: Tensor,
    bias: Tensor,
    norm: Norm,
    *,
    bias_in_magnitude: bool,
    binding: bool,
    only_magnitude: bool,
) -> Tensor:
    """The definition. Kernels are correct when they agree with this function."""
    n = len(bias)
    r = y.to(bias.dtype)  # norms want full precision
    f, chi = (_lift(r, n), r[:, 0]) if y.shape[1] == 1 else (r[:, :n], r[:, -1])
    psi = f + bias.view(n, *[1] * (f.ndim - 3), -1)
    counted = psi if bias_in_magnitude else f
    strength = bind(counted, chi) if binding else magnitude(counted)
    m = F.relu(norm(strength.flatten(0, -2)).view_as(strength))
    z, m = rescale(psi, m)
    if only_magnitude:
        return m.to(y.dtype)
    return torch.cat([z, m.unsqueeze(ROTATION)], dim=ROTATION).to(y.dtype)


def _lift(f: Tensor, n: int) -> Tensor:
    return torch.cat([f, f.new_zeros(f.shape[0], n - 1, *f.shape[2:])], dim=ROTATION)
