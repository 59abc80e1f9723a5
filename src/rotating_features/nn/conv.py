"""Convolutions of rotating features."""

from torch import nn

from rotating_features.nn.layer import RotatingLayer
from rotating_features.ops import Impl


class RotatingConv2d(RotatingLayer):
    r"""Convolution on rotating features, with batch normalisation.

    The equations are those of :mod:`rotating_features.nn.layer`, with :math:`f_w(z) = w * z`.

    Args:
        in_channels, out_channels, kernel_size, stride, padding: As in ``nn.Conv2d``.
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude, binding, impl: As in :class:`RotatingLayer`.

    Shape:
        ``(b, n, in_channels, h, w) -> (b, n, out_channels, h', w')``

    Example:
        >>> import torch
        >>> layer = RotatingConv2d(3, 16, kernel_size=3, rotation_dim=8, padding=1)
        >>> layer(torch.randn(2, 8, 3, 32, 32)).shape
        torch.Size([2, 8, 16, 32, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        rotation_dim: int,
        stride: int = 1,
        padding: int = 0,
        bias_in_magnitude: bool = True,
        binding: bool = True,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, bias=False),
            rotation_dim=rotation_dim,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
            impl=impl,
        )


class RotatingConvTranspose2d(RotatingLayer):
    r"""Transposed convolution on rotating features, with batch normalisation.

    The equations are those of :mod:`rotating_features.nn.layer`, with :math:`f_w` the adjoint
    of a convolution.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, output_padding: As in
            ``nn.ConvTranspose2d``.
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude, binding, impl: As in :class:`RotatingLayer`.

    Shape:
        ``(b, n, in_channels, h, w) -> (b, n, out_channels, h', w')``

    Example:
        >>> import torch
        >>> layer = RotatingConvTranspose2d(
        ...     16, 3, kernel_size=3, rotation_dim=8, stride=2, padding=1, output_padding=1
        ... )
        >>> layer(torch.randn(2, 8, 16, 4, 4)).shape
        torch.Size([2, 8, 3, 8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        rotation_dim: int,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        bias_in_magnitude: bool = True,
        binding: bool = True,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            nn.ConvTranspose2d(
                in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=False
            ),
            rotation_dim=rotation_dim,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
            impl=impl,
        )
