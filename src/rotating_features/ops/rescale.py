r"""Rescaling: give feature vectors new lengths and leave their directions alone.

.. math:: z = \frac{\psi}{\lVert\psi\rVert} \, m
"""

import torch
from torch import Tensor

from rotating_features.vectors import ROTATION, magnitude

SHORTEST = 1e-12
"""A shorter vector counts as zero."""


def rescale(psi: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors along ``psi`` of length ``m``, and that length; (b, n, ...), (b, ...) -> the same.

    A zero vector has no direction and stays zero, whatever its ``m``; hence the length is
    returned too. Gradients are finite everywhere.

    Example:
        >>> z, length = rescale(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([10.0, 10.0]))
        >>> z, length
        (tensor([[6., 8.],
                [0., 0.]]), tensor([10.,  0.]))
    """
    norm = magnitude(psi)
    nowhere = norm < SHORTEST  # false of nan, which must not be hidden
    m = torch.where(nowhere, 0, m)
    stretch = m / torch.where(nowhere, 1, norm)  # one division a vector, not one an entry
    return psi * stretch.unsqueeze(ROTATION), m
