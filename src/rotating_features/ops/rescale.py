r"""Rescaling: give feature vectors new lengths and leave their directions alone.

.. math:: z = \frac{\psi}{\lVert\psi\rVert} \, m
"""

import torch
from torch import Tensor

from rotating_features.vectors import ROTATION, magnitude


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
    somewhere = norm != 0  # true of nan, which must not be hidden
    m = torch.where(somewhere, m, 0)
    unit = psi / torch.where(somewhere, norm, 1).unsqueeze(ROTATION)  # m / norm could overflow
    return unit * m.unsqueeze(ROTATION), m
