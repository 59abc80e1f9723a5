"""The paper's autoencoder, its architecture table kept as data, whatever its features are."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from rotating_features._check import InputError, check_finite, check_image_values, check_shape
from rotating_features.nn import Readout, StackedLayer
from rotating_features.nn.stacked import unstack
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
    z: Tensor | None  # (b, n, c, h, w), whose orientation tells objects apart; None without vectors


class Layers(NamedTuple):
    """The layers that the table is built of. Their arguments are those of PyTorch's own."""

    conv: Callable[..., StackedLayer]
    up: Callable[..., StackedLayer]
    linear: Callable[..., StackedLayer]

    def build(self, row: Row, c_in: int, c_out: int, **options: Any) -> StackedLayer:
        if row.layer == "conv":
            return self.conv(c_in, c_out, 3, stride=row.stride, padding=1, **options)
        return self.up(c_in, c_out, 3, stride=row.stride, padding=1, output_padding=1, **options)


class AutoEncoder(nn.Module):
    """What all autoencoders share. A subclass says of which layers the table is built.

    Args:
        channels: Channels :math:`c` of the images or feature maps.
        size: Height and width of the images or feature maps; any, since what the decoder draws
            too large is cropped to the centre.
        hidden_dim: Width :math:`d` of the architecture table.
        rotation_dim: Length :math:`n` of every feature vector, 0 if there are none.
        features: Whether the input is a feature map of a pretrained network. Then the starred
            rows of the table are built, batch normalisation and ReLU come before the lift,
            and the readout has no sigmoid.
        impl: Which implementation to run, ``"torch"``, ``"triton"`` or ``"auto"``.
        options: What else the layers take.

    Shape:
        ``(b, c, h, w) -> Output((b, c, h, w), (b, n, c, h, w))``
    """

    layers: ClassVar[Layers]
    settings: dict[str, Any]
    """What the model can be rebuilt from."""
    needs_labels: ClassVar[bool] = False
    """Whether ``loss`` wants to be told which classes are in each image."""
    origin: dict[str, Any] | None = None
    """Of an autoencoder of features: what makes them; see :class:`OnFeatures`."""

    def __init__(
        self,
        *,
        channels: int,
        size: tuple[int, int],
        hidden_dim: int,
        rotation_dim: int,
        features: bool,
        impl: Impl,
        options: dict[str, Any] | None = None,
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
            "features": features,
            **(options or {}),
        }
        self.channels = channels
        self.hidden_dim = hidden_dim
        self.size = (size[0], size[1])
        self.rotation_dim = rotation_dim
        self.impl: Impl = "torch" if impl == "torch" else "auto"
        options = {**(options or {}), "impl": impl}
        skipped = "images" if features else "features"
        width = {"c": channels, "d": hidden_dim, "2d": 2 * hidden_dim}

        def build(rows: tuple[Row, ...], c: int) -> nn.ModuleList:
            layers = nn.ModuleList()
            for row in rows:
                if row.only_for != skipped:
                    layers.append(self.layers.build(row, c, width[row.width], **options))
                    c = width[row.width]
            return layers

        self.grid = tuple(-(-side // 8) for side in self.size)
        flat = self.grid[0] * self.grid[1] * 2 * hidden_dim
        self.prepare = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU()) if features else None
        self.encoder = build(ENCODER, channels)
        self.squeeze = self.layers.linear(flat, 2 * hidden_dim, **options)
        self.expand = self.layers.linear(2 * hidden_dim, flat, **options)
        self.decoder = build(DECODER, 2 * hidden_dim)
        self.readout = Readout(channels, sigmoid=not features)

    def forward(self, x: Tensor) -> Output:
        self._check(x)
        s = self._decode(self._encode(x), only_magnitude=False)
        reconstruction = self.readout(s[:, -1].movedim(-1, 1))
        return Output(reconstruction, unstack(s) if self.rotation_dim else None)

    def loss(
        self, x: Tensor, dtype: torch.dtype | None = None, *, labels: Tensor | None = None
    ) -> Tensor:
        """Mean squared error of the reconstruction, which training makes small.

        For images known to be good: no value is read, so that a GPU need not wait, and the vectors
        of the output, which no pixel depends on, are never made.

        Args:
            x: As in ``forward``.
            dtype: In which features travel between layers; norms and the loss keep their own.
            labels: For models that need them, which classes are in each image.
        """
        if labels is not None:
            raise InputError(f"{type(self).__name__} learns without labels, got some. Leave them.")
        self._check_shape(x)
        return self._error(self._encode(x, dtype), x)

    def encode(self, x: Tensor) -> Tensor:
        """The bottleneck's features, (b, c, h, w) -> (b, n, 2d), or (b, 2d) if n = 0."""
        self._check(x)
        s = self._encode(x)
        return unstack(s) if self.rotation_dim else s[:, 0]

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
        """Stacked features of the bottleneck, (b, c, h, w) -> (b, n + 1, 2d)."""
        x = (x if self.prepare is None else self.prepare(x)).to(dtype or x.dtype)
        first, *others = _layers(self.encoder)
        s = first.advance_lifted(x)  # images and features after ReLU are not negative
        for layer in others:
            s = layer.advance(s)
        return self.squeeze.advance(s.flatten(2))

    def _decode(self, s: Tensor, *, only_magnitude: bool) -> Tensor:
        """Stacked features of the output, (b, n + 1, 2d) -> (b, n + 1, h, w, c)."""
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

    def _error(self, s: Tensor, x: Tensor) -> Tensor:
        """Of the reconstruction of ``x`` from the bottleneck's features."""
        m = self._decode(s, only_magnitude=True)
        w, b, sigmoid = self.readout.weight, self.readout.bias, self.readout.sigmoid
        return squared_error(m, w, b, x, sigmoid=sigmoid, impl=self.impl)


def _layers(modules: nn.ModuleList) -> list[StackedLayer]:
    return cast(list[StackedLayer], list(modules))
