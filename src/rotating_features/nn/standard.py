r"""Layers of standard features: no vectors, the baseline that the others are compared with.

.. math:: x' = \mathrm{ReLU}(\mathrm{Norm}(f_w(x) + b))
"""

from torch import Tensor, nn
from torch.nn import functional as F

from rotating_features._check import check_shape
from rotating_features.nn.stacked import LinearMap, StackedLayer
from rotating_features.ops import Impl
from rotating_features.vectors import ROTATION


class StandardLayer(StackedLayer):
    """Base of the standard layers. A subclass says what its linear map is.

    Stacked, its features have one slot, in which a rotating feature's magnitude would be.

    Args:
        impl: Which implementation of the linear map to run, as in :func:`convolve`.
    """

    def __init__(self, linear_map: LinearMap, *, impl: Impl = "auto") -> None:
        super().__init__(linear_map, rotation_dim=0, impl=impl)
        self.bias = self._new_bias()

    def forward(self, z: Tensor) -> Tensor:
        check_shape("z", z, "b c" + self.space, c=self.in_channels)
        return self.advance_lifted(z).squeeze(ROTATION).movedim(-1, 1)

    def _activate(self, y: Tensor, only_magnitude: bool) -> Tensor:
        r = y.squeeze(ROTATION).to(self.bias.dtype) + self.bias  # norms want full precision
        m = F.relu(self.norm(r.flatten(0, -2)).view_as(r)).to(y.dtype)
        return m if only_magnitude else m.unsqueeze(ROTATION)


class StandardLinear(StandardLayer):
    """Fully connected layer with layer normalisation and ReLU.

    Args:
        in_features, out_features: As in ``nn.Linear``.
        impl: As in :class:`StandardLayer`.

    Shape:
        ``(b, in_features) -> (b, out_features)``

    Example:
        >>> import torch
        >>> StandardLinear(16, 4)(torch.randn(3, 16)).shape
        torch.Size([3, 4])
    """

    def __init__(self, in_features: int, out_features: int, *, impl: Impl = "auto") -> None:
        super().__init__(nn.Linear(in_features, out_features, bias=False), impl=impl)


class StandardConv2d(StandardLayer):
    """Convolution with batch normalisation and ReLU.

    Args:
        in_channels, out_channels, kernel_size, stride, padding: As in ``nn.Conv2d``.
        impl: As in :class:`StandardLayer`.

    Shape:
        ``(b, in_channels, h, w) -> (b, out_channels, h', w')``

    Example:
        >>> import torch
        >>> StandardConv2d(3, 16, kernel_size=3, padding=1)(torch.randn(5, 3, 32, 32)).shape
        torch.Size([5, 16, 32, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: int = 0,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, bias=False),
            impl=impl,
        )


class StandardConvTranspose2d(StandardLayer):
    """Transposed convolution with batch normalisation and ReLU.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, output_padding: As in
            ``nn.ConvTranspose2d``.
        impl: As in :class:`StandardLayer`.

    Shape:
        ``(b, in_channels, h, w) -> (b, out_channels, h', w')``

    Example:
        >>> import torch
        >>> layer = StandardConvTranspose2d(16, 3, 3, stride=2, padding=1, output_padding=1)
        >>> layer(torch.randn(5, 16, 4, 4)).shape
        torch.Size([5, 3, 8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            nn.ConvTranspose2d(
                in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=False
            ),
            impl=impl,
        )
