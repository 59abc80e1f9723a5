"""Assertions for people who write layers, here or downstream."""

from collections.abc import Callable

import torch
from torch import Tensor

from rotating_features.vectors import ROTATION


def assert_equivariant(layer: Callable[[Tensor], Tensor], z: Tensor) -> None:
    """Assert that turning the input of ``layer`` turns its output alike, (b, n, ...) both.

    One random orthogonal matrix of R^n is tried, a rotation or a reflection. Layers with a
    rotation bias prefer some directions and fail: set their bias to zero first.

    Example:
        >>> from rotating_features.nn import RotatingLinear
        >>> layer = RotatingLinear(3, 5, rotation_dim=8).double()
        >>> _ = torch.nn.init.zeros_(layer.bias)
        >>> assert_equivariant(layer, torch.randn(2, 8, 3).double())
    """
    n = z.shape[ROTATION]
    q, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.double))
    q = q.to(z)
    torch.testing.assert_close(
        layer(_turn(q, z)),
        _turn(q, layer(z)),
        msg=lambda difference: f"The layer does not commute with a rotation of R^{n}. {difference}",
    )


def _turn(q: Tensor, z: Tensor) -> Tensor:
    return torch.einsum("ij,bj...->bi...", q, z)
