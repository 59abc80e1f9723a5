"""One orientation for every pixel, from all of its channels."""

import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.vectors import magnitude, orientation

THRESHOLD = 0.1
"""Magnitudes up to this one say nothing, in all of the paper's experiments."""


def orientation_map(z: Tensor, *, threshold: float = THRESHOLD) -> Tensor:
    r"""Mean orientation over the channels that respond, (b, n, c, h, w) -> (b, n, h, w).

    Directions of short vectors are noise, so they are left out; what remains is averaged with
    equal weights, lest the colour of an object decide where it points:

    .. math::
        z_\text{eval} = \frac{\sum_i w^i z_\text{norm}^i}{\sum_i w^i + \varepsilon}, \qquad
        w^i = \begin{cases} 1 & \lVert z^i\rVert > t \\ 0 & \text{otherwise} \end{cases}

    Args:
        z: Rotating output of a model.
        threshold: The :math:`t` of the equation.

    Returns:
        Vectors of length at most 1; zero where no channel responds.

    Example:
        >>> z = torch.tensor([[[3.0, 0.01], [4.0, 0.0]]]).view(1, 2, 2, 1, 1)  # strong, weak
        >>> orientation_map(z).flatten()
        tensor([0.6000, 0.8000])
    """
    check_shape("z", z, "b n c h w", hint="Pass the rotating output, z, of a model.")
    if threshold < 0:
        raise InputError(f"threshold should be at least 0, got {threshold}.")
    z = z.float() if z.dtype in (torch.bfloat16, torch.float16) else z
    weight = (magnitude(z) > threshold).to(z.dtype).unsqueeze(1)
    return (orientation(z) * weight).sum(2) / (weight.sum(2) + 1e-8)
