"""The autoencoder in its flavours: of rotating features, of complex ones, of standard ones."""

from rotating_features.models.autoencoder import AutoEncoder, Layers
from rotating_features.nn import (
    ComplexConv2d,
    ComplexConvTranspose2d,
    ComplexLinear,
    RotatingConv2d,
    RotatingConvTranspose2d,
    RotatingLinear,
    StandardConv2d,
    StandardConvTranspose2d,
    StandardLinear,
)
from rotating_features.ops import Impl


class RotatingAutoEncoder(AutoEncoder):
    """Autoencoder whose features are vectors; trained on reconstruction, it separates objects.

    Args:
        channels, size, hidden_dim, features: As in :class:`AutoEncoder`.
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude, binding, impl: As in :class:`RotatingLayer`.

    Shape:
        ``(b, c, h, w) -> Output((b, c, h, w), (b, n, c, h, w))``

    Example:
        >>> import torch
        >>> model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=8, rotation_dim=4)
        >>> reconstruction, z = model(torch.rand(2, 1, 32, 32))
        >>> z.shape
        torch.Size([2, 4, 1, 32, 32])
    """

    layers = Layers(RotatingConv2d, RotatingConvTranspose2d, RotatingLinear)

    def __init__(
        self,
        *,
        channels: int,
        size: tuple[int, int],
        hidden_dim: int = 32,
        rotation_dim: int = 8,
        features: bool = False,
        bias_in_magnitude: bool = True,
        binding: bool = True,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            channels=channels,
            size=size,
            hidden_dim=hidden_dim,
            rotation_dim=rotation_dim,
            features=features,
            impl=impl,
            options={
                "rotation_dim": rotation_dim,
                "bias_in_magnitude": bias_in_magnitude,
                "binding": binding,
            },
        )


class ComplexAutoEncoder(AutoEncoder):
    """The Complex AutoEncoder (Löwe et al., 2022), which tells objects apart by phases.

    Args:
        channels, size, hidden_dim, features, impl: As in :class:`AutoEncoder`.

    Shape:
        ``(b, c, h, w) -> Output((b, c, h, w), (b, 2, c, h, w))``

    Example:
        >>> import torch
        >>> model = ComplexAutoEncoder(channels=1, size=(32, 32), hidden_dim=8)
        >>> model(torch.rand(3, 1, 32, 32)).z.shape
        torch.Size([3, 2, 1, 32, 32])
    """

    layers = Layers(ComplexConv2d, ComplexConvTranspose2d, ComplexLinear)

    def __init__(
        self,
        *,
        channels: int,
        size: tuple[int, int],
        hidden_dim: int = 32,
        features: bool = False,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            channels=channels,
            size=size,
            hidden_dim=hidden_dim,
            rotation_dim=2,
            features=features,
            impl=impl,
        )


class StandardAutoEncoder(AutoEncoder):
    """Autoencoder of standard features, which has nothing to tell objects apart by.

    Args:
        channels, size, hidden_dim, features, impl: As in :class:`AutoEncoder`.

    Shape:
        ``(b, c, h, w) -> Output((b, c, h, w), None)``

    Example:
        >>> import torch
        >>> model = StandardAutoEncoder(channels=1, size=(32, 32), hidden_dim=8)
        >>> model(torch.rand(3, 1, 32, 32)).reconstruction.shape
        torch.Size([3, 1, 32, 32])
    """

    layers = Layers(StandardConv2d, StandardConvTranspose2d, StandardLinear)

    def __init__(
        self,
        *,
        channels: int,
        size: tuple[int, int],
        hidden_dim: int = 32,
        features: bool = False,
        impl: Impl = "auto",
    ) -> None:
        super().__init__(
            channels=channels,
            size=size,
            hidden_dim=hidden_dim,
            rotation_dim=0,
            features=features,
            impl=impl,
        )
