"""The paper's autoencoder of rotating features, its architecture table kept as data."""

from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from rotating_features._check import InputError, check_finite, check_image_values, check_shape
from rotating_features.nn import (
    Readout,
    RotatingConv2d,
    RotatingConvTranspose2d,
    RotatingLayer,
    RotatingLinear,
)
from rotating_features.nn.layer import unstack
from rotating_features.ops import Impl
from rotating_features.ops.squared_error import squared_error


class Row(NamedTuple):
    """One row of the architecture table. All kernels are 3 wide."""

    layer: Literal["conv", "up"]
    width: Literal["c", "d", "2d"]
    stride: int
    only_for: Literal["images", "features", "both"] = "both"


ENCODER = (
    Row("conv", "d", stride=2),
    Row("conv", "d", stride=1),
    Row("conv", "2d", stride=2),
    Row("conv", "2d", stride=1),
    Row("conv", "2d", stride=2),
    Row("conv", "2d", stride=1, only_for="features"),
)
DECODER = (
    Row("up", "2d", stride=2),
    Row("conv", "2d", stride=1),
    Row("up", "2d", stride=2),
    Row("conv", "d", stride=1),
    Row("up", "c", stride=2, only_for="images"),
    Row("up", "d", stride=2, only_for="features"),
    Row("conv", "c", stride=1, only_for="features"),
)
"""The rows of the paper's table; those it stars are for features alone."""


class Output(NamedTuple):
    """What an autoencoder gives back for a batch of images."""

    reconstruction: Tensor  # (b, c, h, w)
    z: Tensor  # (b, n, c, h, w), the rotating output whose orientation tells objects apart


class RotatingAutoEncoder(nn.Module):
    """Autoencoder whose features are vectors; trained on reconstruction, it separates objects.

    Args:
        channels: Channels :math:`c` of the images or feature maps.
        size: Height and width of the images or feature maps; any, since what the decoder draws
            too large is cropped to the centre.
        hidden_dim: Width :math:`d` of the architecture table.
        rotation_dim: Length :math:`n` of every feature vector.
        features: Whether the input is a feature map of a pretrained network. Then the starred
            rows of the table are built, batch normalisation and ReLU come before the lift,
            and the readout has no sigmoid.
        bias_in_magnitude, binding, impl: As in :class:`RotatingLayer`.

    Shape:
        ``(b, c, h, w) -> Output((b, c, h, w), (b, n, c, h, w))``

    Example:
        >>> model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=8, rotation_dim=4)
        >>> reconstruction, z = model(torch.rand(2, 1, 32, 32))
        >>> z.shape
        torch.Size([2, 4, 1, 32, 32])
    """

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
        super().__init__()
        if min(channels, hidden_dim, *size) < 1:
            raise InputError(
                f"channels, hidden_dim and size should be at least 1, "
                f"got {channels}, {hidden_dim} and {tuple(size)}."
            )
        self.settings = {
            "channels": channels,
            "size": [*size],
            "hidden_dim": hidden_dim,
            "rotation_dim": rotation_dim,
            "features": features,
            "bias_in_magnitude": bias_in_magnitude,
            "binding": binding,
        }
        self.channels = channels
        self.size = (size[0], size[1])
        self.rotation_dim = rotation_dim
        self.impl: Impl = "torch" if impl == "torch" else "auto"
        options = {
            "rotation_dim": rotation_dim,
            "bias_in_magnitude": bias_in_magnitude,
            "binding": binding,
            "impl": impl,
        }
        skipped = "images" if features else "features"
        width = {"c": channels, "d": hidden_dim, "2d": 2 * hidden_dim}

        def build(rows: tuple[Row, ...], c: int) -> nn.ModuleList:
            layers = nn.ModuleList()
            for row in rows:
                if row.only_for != skipped:
                    layers.append(_layer(row, c, width[row.width], **options))
                    c = width[row.width]
            return layers

        self.grid = tuple(-(-side // 8) for side in self.size)
        flat = self.grid[0] * self.grid[1] * 2 * hidden_dim
        self.prepare = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU()) if features else None
        self.encoder = build(ENCODER, channels)
        self.squeeze = RotatingLinear(flat, 2 * hidden_dim, **options)
        self.expand = RotatingLinear(2 * hidden_dim, flat, **options)
        self.decoder = build(DECODER, 2 * hidden_dim)
        self.readout = Readout(channels, sigmoid=not features)

    def forward(self, x: Tensor) -> Output:
        self._check(x)
        s = self._decode(self._encode(x), only_magnitude=False)
        return Output(self.readout(s[:, -1].movedim(-1, 1)), unstack(s))

    def loss(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Mean squared error of the reconstruction, which training makes small.

        For images known to be good: no value is read, so that a GPU need not wait, and the vectors
        of the output, which no pixel depends on, are never made.

        Args:
            x: As in ``forward``.
            dtype: In which features travel between layers; norms and the loss keep their own.
        """
        self._check_shape(x)
        m = self._decode(self._encode(x, dtype), only_magnitude=True)
        w, b, sigmoid = self.readout.weight, self.readout.bias, self.readout.sigmoid
        return squared_error(m, w, b, x, sigmoid=sigmoid, impl=self.impl)

    def encode(self, x: Tensor) -> Tensor:
        """The bottleneck's features, (b, c, h, w) -> (b, n, 2d)."""
        self._check(x)
        return unstack(self._encode(x))

    def _check_shape(self, x: Tensor) -> None:
        h, w = self.size
        check_shape("x", x, "b c h w", c=self.channels, h=h, w=w, hint="Resize images first.")

    def _check(self, x: Tensor) -> None:
        self._check_shape(x)
        if torch.compiler.is_compiling():
            return  # values cannot be read there
        if self.prepare is None:
            check_image_values("x", x)
        else:
            check_finite("x", x)

    def _encode(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        x = (x if self.prepare is None else self.prepare(x)).to(dtype or x.dtype)
        first, *others = _layers(self.encoder)
        s = first.advance_lifted(x)  # images and features after ReLU are not negative
        for layer in others:
            s = layer.advance(s)
        return self.squeeze.advance(s.flatten(2))

    def _decode(self, s: Tensor, *, only_magnitude: bool) -> Tensor:
        s = self.expand.advance(s).unflatten(2, (*self.grid, -1))
        *others, last = _layers(self.decoder)
        for layer in others:
            s = layer.advance(s)
        s = last.advance(s, only_magnitude=only_magnitude)
        axis = s.ndim - 3
        for i, side in enumerate(self.size):
            if margin := s.shape[axis + i] - side:
                s = s.narrow(axis + i, margin // 2, side)
        return s


def _layers(modules: nn.ModuleList) -> list[RotatingLayer]:
    return cast(list[RotatingLayer], list(modules))


def _layer(row: Row, c_in: int, c_out: int, **options: Any) -> RotatingLayer:
    if row.layer == "conv":
        return RotatingConv2d(c_in, c_out, 3, stride=row.stride, padding=1, **options)
    return RotatingConvTranspose2d(
        c_in, c_out, 3, stride=row.stride, padding=1, output_padding=1, **options
    )
