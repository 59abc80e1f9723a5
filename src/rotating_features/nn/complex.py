r"""Layers of complex features, those of the Complex AutoEncoder (Löwe et al., 2022).

.. math::
    \psi &= f_w(z)                        && \text{phase-aware response} \\
    \chi &= f_w(|z|)                      && \text{phase-blind response} \\
    m    &= \mathrm{ReLU}(\mathrm{Norm}(\tfrac12(|\psi| + b) + \tfrac12(\chi + b))) \\
    z'   &= m \, e^{i (\arg\psi + \beta)}

The weights :math:`w` are real and act on real and imaginary part alike. A complex number is a
vector of length 2 along axis 1. Unlike rotating layers, whose bias prefers a direction, these turn
their output by an angle when their input is turned by it.
"""

import torch
from torch import Tensor, nn

from rotating_features.nn.stacked import LinearMap, StackedLayer
from rotating_features.ops import Impl
from rotating_features.ops.activate_complex import activate_complex


class ComplexLayer(StackedLayer):
    """Base of the complex layers. A subclass says what its linear map is.

    Args:
        impl: Which implementation to run, as in :func:`activate_complex`.
    """

    def __init__(self, linear_map: LinearMap, *, impl: Impl = "auto") -> None:
        super().__init__(linear_map, rotation_dim=2, impl=impl)
        self.magnitude_bias = self._new_bias()
        self.phase_bias = nn.Parameter(torch.zeros(self.out_channels))

    def _activate(self, y: Tensor, only_magnitude: bool) -> Tensor:
        biases = self.magnitude_bias, self.phase_bias
        return activate_complex(
            y, *biases, self.norm, only_magnitude=only_magnitude, impl=self.impl
        )


class ComplexLinear(ComplexLayer):
    """Fully connected layer on complex features, with layer normalisation.

    Args:
        in_features, out_features: As in ``nn.Linear``.
        impl: As in :class:`ComplexLayer`.

    Shape:
        ``(b, 2, in_features) -> (b, 2, out_features)``

    Example:
        >>> ComplexLinear(16, 4)(torch.randn(3, 2, 16)).shape
        torch.Size([3, 2, 4])
    """

    def __init__(self, in_features: int, out_features: int, *, impl: Impl = "auto") -> None:
        super().__init__(nn.Linear(in_features, out_features, bias=False), impl=impl)


class ComplexConv2d(ComplexLayer):
    """Convolution on complex features, with batch normalisation.

    Args:
        in_channels, out_channels, kernel_size, stride, padding: As in ``nn.Conv2d``.
        impl: As in :class:`ComplexLayer`.

    Shape:
        ``(b, 2, in_channels, h, w) -> (b, 2, out_channels, h', w')``

    Example:
        >>> ComplexConv2d(3, 16, kernel_size=3, padding=1)(torch.randn(5, 2, 3, 32, 32)).shape
        torch.Size([5, 2, 16, 32, 32])
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


class ComplexConvTranspose2d(ComplexLayer):
    """Transposed convolution on complex features, with batch normalisation.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, output_padding: As in
            ``nn.ConvTranspose2d``.
        impl: As in :class:`ComplexLayer`.

    Shape:
        ``(b, 2, in_channels, h, w) -> (b, 2, out_channels, h', w')``

    Example:
        >>> layer = ComplexConvTranspose2d(16, 3, 3, stride=2, padding=1, output_padding=1)
        >>> layer(torch.randn(5, 2, 16, 4, 4)).shape
        torch.Size([5, 2, 3, 8, 8])
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
