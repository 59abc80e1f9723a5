"""What the binding mechanism does to inputs that disagree."""

from dataclasses import dataclass

import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.ops.bind import bind
from rotating_features.ops.linear import linear
from rotating_features.vectors import check_rotation_dim, magnitude


@dataclass(frozen=True)
class BindingEffect:
    """Magnitudes before the activation function, float64, shape ``(points,)``."""

    cosines: Tensor
    with_binding: Tensor
    without_binding: Tensor


def binding_effect(cosines: Tensor, *, n: int = 8, seed: int = 0) -> BindingEffect:
    r"""How a unit answers to inputs :math:`[a, a, b]`, by the cosine between a and b.

    All have length 1, the weights are 1/3 and there is no bias. With binding the answer is
    :math:`\tfrac12\lVert\psi\rVert + \tfrac12\chi`, without it is :math:`\lVert\psi\rVert`. At
    cosine -1 binding masks b out: the answer, 2/3, is that to :math:`[a, a, 0]`.

    Args:
        cosines: Cosine similarities between a and b, shape ``(points,)``.
        n: Length of the vectors. The answer does not depend on it.
        seed: Decides where a and b point, apart from their cosine. Nor does it depend on that.

    Example:
        >>> binding_effect(torch.tensor([-1.0, 1.0])).with_binding
        tensor([0.6667, 1.0000], dtype=torch.float64)
    """
    check_shape("cosines", cosines, "points")
    check_rotation_dim(n)
    if not (cosines.abs() <= 1).all():
        raise InputError(f"cosines should lie between -1 and 1, got {cosines.tolist()}.")
    c = cosines.cpu().double().unsqueeze(1)
    rng = torch.Generator().manual_seed(seed)
    frame = torch.linalg.qr(torch.randn(n, 2, generator=rng, dtype=c.dtype)).Q
    a = frame[:, 0].expand(len(c), n)
    b = c * a + (1 - c.square()).sqrt() * frame[:, 1]
    z = torch.stack([a, a, b], dim=2)
    weight = torch.full((1, 3), 1 / 3, dtype=z.dtype)
    psi, chi = linear(z, weight), linear(magnitude(z), weight)
    return BindingEffect(c.squeeze(1), bind(psi, chi).squeeze(1), magnitude(psi).squeeze(1))
