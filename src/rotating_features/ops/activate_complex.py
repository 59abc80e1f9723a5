r"""Activation of complex features: all that a complex layer does after its linear map.

.. math::
    m &= \mathrm{ReLU}(\mathrm{Norm}(\tfrac12(|\psi| + b) + \tfrac12(\chi + b))) \\
    z &= m \, e^{i (\arg\psi + \beta)}

A response ``y`` is stacked, channels last: :math:`\psi` in two slots, real and imaginary, and
:math:`\chi` in the third. So is the result: :math:`z`, and the lengths :math:`m`.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features.ops import Impl
from rotating_features.ops.activate import Norm, use_kernel
from rotating_features.ops.bind import bind
from rotating_features.vectors import ROTATION, magnitude

SHORTEST = 1e-8
"""A shorter imaginary part counts as this long, upwards, when a phase is read."""


def activate_complex(
    y: Tensor,
    magnitude_bias: Tensor,
    phase_bias: Tensor,
    norm: Norm,
    *,
    only_magnitude: bool = False,
    impl: Impl = "auto",
) -> Tensor:
    r"""Stacked features from a linear map's response, (b, 3, *space, c) -> the same.

    Args:
        y: The response. If it has one slot alone, the map saw an image, whose phases are all 0:
            that slot is both the real part of :math:`\psi` and :math:`\chi`.
        magnitude_bias: :math:`b`, (c,).
        phase_bias: :math:`\beta`, (c,).
        norm: Over all that is not a channel, or over the channels of an item.
        only_magnitude: Return the magnitudes alone, (b, *space, c).
        impl: ``"torch"`` for the definition, ``"triton"`` for the kernel, ``"auto"`` to choose.
    """
    biases = magnitude_bias, phase_bias
    if use_kernel(y, norm, impl):
        from rotating_features.ops.triton.activate import activate_complex_triton

        with torch.cuda.device(y.device):
            return activate_complex_triton(y, *biases, norm, only_magnitude=only_magnitude)
    return activate_complex_reference(y, *biases, norm, only_magnitude=only_magnitude)


def activate_complex_reference(
    y: Tensor, magnitude_bias: Tensor, phase_bias: Tensor, norm: Norm, *, only_magnitude: bool
) -> Tensor:
    """The definition. Kernels are correct when they agree with this function."""
    r = y.to(magnitude_bias.dtype)  # norms want full precision
    chi = r[:, -1]
    psi = torch.stack([chi, torch.zeros_like(chi)], ROTATION) if y.shape[1] == 1 else r[:, :2]
    strength = bind(psi, chi) + magnitude_bias
    m = F.relu(norm(strength.flatten(0, -2)).view_as(strength))
    if only_magnitude:
        return m.to(y.dtype)
    re, im = direction(psi).unbind(ROTATION)
    cos, sin = phase_bias.cos(), phase_bias.sin()
    return torch.stack([m * (re * cos - im * sin), m * (re * sin + im * cos), m], ROTATION).to(
        y.dtype
    )


def direction(psi: Tensor) -> Tensor:
    r"""Where complex numbers point, :math:`e^{i \arg\psi}`; (b, 2, ...) -> the same.

    Zero points upwards, to :math:`i`, and a real number ever so little upwards, as in the released
    code. It matters: phase biases start at 0, and a network of real numbers alone is a mirror image
    of itself, whose phases would get no gradient. Gradients are finite everywhere, and zero at 0.

    Example:
        >>> direction(torch.tensor([[3.0, 4.0], [-2.0, 0.0], [0.0, 0.0]]))
        tensor([[ 6.0000e-01,  8.0000e-01],
                [-1.0000e+00,  5.0000e-09],
                [ 0.0000e+00,  1.0000e+00]])
    """
    nowhere = (psi.abs() < SHORTEST).all(ROTATION)
    re, im = psi.unbind(ROTATION)
    re = torch.where(nowhere, 0, re)
    im = torch.where(im.abs() < SHORTEST, SHORTEST, im)
    psi = torch.stack([re, im], ROTATION)
    return psi / magnitude(psi).unsqueeze(ROTATION)
