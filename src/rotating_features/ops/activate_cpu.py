"""The activation as ``torch.compile`` makes the best of it on a CPU: few passes, no divisions.

What it does otherwise than the definition: lengths come with their inverse, since gradients of
roots and quotients divide once for every entry; what is split and joined has three axes, since in
one of five the compiler takes the slots for channels and lays them innermost; and it is joined in
its final precision.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rotating_features.ops.rescale import SHORTEST
from rotating_features.vectors import ROTATION


def activate_cpu(
    y: Tensor, bias: Tensor, norm: nn.Module, *, only_magnitude: bool = False
) -> Tensor:
    """As :func:`rotating_features.ops.activate.activate_reference`, for the paper's layers."""
    psi, chi = (_respond_to_image if y.shape[1] == 1 else _respond)(y, bias)
    squares = psi.square().sum(ROTATION)
    nowhere = squares < SHORTEST**2
    inverse = torch.where(nowhere, 0, torch.where(nowhere, 1, squares).rsqrt())
    strength = 0.5 * (squares * inverse) + 0.5 * chi
    m = F.relu(norm(strength.flatten(0, -2)).view_as(strength))
    m = torch.where(nowhere, 0, m)
    if only_magnitude:
        return m.to(y.dtype)
    z = psi * (m * inverse).unsqueeze(ROTATION)
    slots = z.to(y.dtype).flatten(2), m.to(y.dtype).flatten(1).unsqueeze(ROTATION)
    return torch.cat(slots, dim=ROTATION).unflatten(2, y.shape[2:])


def _respond(y: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\psi` and :math:`\chi`, in the bias's precision."""
    f, chi = y.flatten(2).split((len(bias), 1), dim=ROTATION)
    f, chi = f.unflatten(2, y.shape[2:]), chi.squeeze(ROTATION).unflatten(1, y.shape[2:])
    return f.to(bias.dtype) + _spread(bias, y), chi.to(bias.dtype)


def _respond_to_image(y: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The same of the one slot that a lifted image leaves to be computed."""
    f = y.to(bias.dtype)
    first = torch.eye(len(bias), 1, dtype=bias.dtype, device=bias.device)
    return f * _spread(first, y) + _spread(bias, y), f.squeeze(ROTATION)


def _spread(bias: Tensor, y: Tensor) -> Tensor:
    """Over the space that y has."""
    return bias.view(len(bias), *[1] * (y.ndim - 3), -1)
