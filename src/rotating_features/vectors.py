r"""Rotating tensors: all one can ask of them.

A rotating tensor has the axes ``(b, n, c, ...)``: batch, rotation dimension, channels, space.
Each feature is a vector in :math:`\mathbb{R}^n`, laid out along axis 1. Its length, the
*magnitude*, says how present the feature is; its direction, the *orientation*, says to which
object it belongs.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError

ROTATION = 1
"""The axis along which feature vectors lie."""


def lift(x: Tensor, n: int) -> Tensor:
    """Rotating tensor whose vectors all point along the first axis, (b, c, ...) -> (b, n, c, ...).

    Slot 0 holds ``x`` and the other ``n - 1`` slots are zero: before the network has looked,
    nothing tells the objects apart.

    Example:
        >>> lift(torch.ones(2, 3, 8, 8), n=4).shape
        torch.Size([2, 4, 3, 8, 8])
    """
    check_rotation_dim(n)
    if x.ndim < 2:
        raise InputError(f"x should have the axes (b, c, ...), got shape {tuple(x.shape)}.")
    empty = x.new_zeros(x.shape[0], n - 1, *x.shape[1:])
    return torch.cat([x.unsqueeze(ROTATION), empty], dim=ROTATION)


def magnitude(z: Tensor) -> Tensor:
    """Length of every feature vector, (b, n, ...) -> (b, ...); its slope at zero is zero.

    Example:
        >>> magnitude(torch.tensor([[3.0, 4.0]]))
        tensor([5.])
    """
    squares = z.square().sum(ROTATION)  # linalg.vector_norm takes four times as long on the CPU
    somewhere = squares != 0
    length = torch.where(somewhere, squares, 1).sqrt()  # the root of 0 has an infinite slope
    return torch.where(somewhere, length, 0)


def orientation(z: Tensor) -> Tensor:
    """Unit vectors that point where ``z`` does, (b, n, ...) -> (b, n, ...); zero where ``z`` is.

    Example:
        >>> orientation(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    largest = z.abs().amax(ROTATION, keepdim=True)
    z = z / torch.where(largest == 0, 1, largest)  # or squares of tiny numbers would vanish
    return F.normalize(z, dim=ROTATION)


def check_rotation_dim(n: int) -> None:
    """Raise ``InputError`` for a rotation dimension in which nothing can turn."""
    if n < 2:
        raise InputError(f"The rotation dimension n should be at least 2, got {n}.")
