"""A fully connected layer of rotating features."""

from torch import nn

from rotating_features.nn.layer import RotatingLayer
from rotating_features.ops import Impl


class RotatingLinear(RotatingLayer):
    r"""Fully connected layer on rotating features, with layer normalisation.

    The equations are those of :mod:`rotating_features.nn.layer`, with :math:`f_w(z) = w z`.

    Args:
        in_features, out_features: As in ``nn.Linear``.
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude, binding, impl: As in :class:`RotatingLayer`.

    Shape:
        ``(b, n, in_features) -> (b, n, out_features)``

    Example:
        >>> import torch
        >>> RotatingLinear(16, 4, rotation_dim=8)(torch.randn(2, 8, 16)).shape
        torch.Size([2, 8, 4])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        rotation_dim: int,
        bias_in_magnitude: bool = True,
        binding: bool = True,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            nn.Linear(in_features, out_features, bias=False),
            rotation_dim=rotation_dim,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
            impl=impl,
        )
