"""Convolutions of rotating features."""

from torch import Tensor, nn

from rotating_features.nn.layer import RotatingLayer


class _Convolution(RotatingLayer):
    axes = "b n c h w"

    def _map(self, s: Tensor) -> Tensor:
        folded = s.flatten(0, 1).movedim(-1, 1)  # slots join the batch; a channels-last view
        return self.linear_map(folded).movedim(1, -1).unflatten(0, s.shape[:2])

    def _normalise(self, m: Tensor) -> Tensor:
        return self.norm(m.flatten(0, -2)).view_as(m)  # every pixel is one more item of the batch


class RotatingConv2d(_Convolution):
    r"""Convolution on rotating features, with batch normalisation.

    The equations are those of :mod:`rotating_features.nn.layer`, with :math:`f_w(z) = w * z`.

    Args:
        in_channels, out_channels, kernel_size, stride, padding: As in ``nn.Conv2d``.
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude, binding: As in :class:`RotatingLayer`.

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
    ) -> None:
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, bias=False),
            nn.BatchNorm1d(out_channels),
            channels=(in_channels, out_channels),
            fan_in=in_channels * kernel_size**2,
            rotation_dim=rotation_dim,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
        )


class RotatingConvTranspose2d(_Convolution):
    r"""Transposed convolution on rotating features, with batch normalisation.

    The equations are those of :mod:`rotating_features.nn.layer`, with :math:`f_w` the adjoint
    of a convolution.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, output_padding: As in
            ``nn.ConvTranspose2d``.
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude, binding: As in :class:`RotatingLayer`.

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
    ) -> None:
        super().__init__(
            nn.ConvTranspose2d(
                in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=False
            ),
            nn.BatchNorm1d(out_channels),
            channels=(in_channels, out_channels),
            # PyTorch reads fan_in off axis 1 of the weight, which here holds the output channels.
            fan_in=out_channels * kernel_size**2,
            rotation_dim=rotation_dim,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
        )
