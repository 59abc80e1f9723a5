"""What all layers share: stacked features, and one linear map for all their slots.

A feature is a vector of length n and its magnitude. The same weights act on every entry of the
vector and on the magnitude. So the magnitude travels as slot n + 1 beside the vectors it belongs
to, and one call of the linear map serves them all. This *stacked* form keeps the channels last,
``(b, n + 1, *space, c)``, which is how convolutions like them in memory; only layers and models see
it. Standard features are the case n = 0: a magnitude and nothing else.
"""

from typing import cast

import torch
from torch import Tensor, nn

from rotating_features._check import check_shape
from rotating_features.ops import Impl
from rotating_features.ops.activate import Norm
from rotating_features.ops.convolve import Pair, convolve
from rotating_features.ops.linear import linear
from rotating_features.vectors import ROTATION, magnitude

LinearMap = nn.Linear | nn.Conv2d | nn.ConvTranspose2d


class StackedLayer(nn.Module):
    """Base of all layers. A subclass says what comes after the linear map.

    Args:
        linear_map: Its weights are used, and how it strides and pads; it has no bias of its own.
            After a fully connected one comes layer normalisation, after others batch normalisation.
        rotation_dim: Length n of every feature vector.
        impl: Which implementation to run, as in :func:`convolve`.
    """

    def __init__(self, linear_map: LinearMap, *, rotation_dim: int, impl: Impl) -> None:
        super().__init__()
        if isinstance(linear_map, nn.Linear):
            self.in_channels, self.out_channels = linear_map.in_features, linear_map.out_features
        else:
            self.in_channels, self.out_channels = linear_map.in_channels, linear_map.out_channels
        self.rotation_dim = rotation_dim
        self.impl: Impl = impl
        self.linear_map = linear_map
        is_linear = isinstance(linear_map, nn.Linear)
        self.norm: Norm = (nn.LayerNorm if is_linear else nn.BatchNorm1d)(self.out_channels)
        self.space = "" if is_linear else " h w"

    def forward(self, z: Tensor) -> Tensor:
        n, c = self.rotation_dim, self.in_channels
        hint = f"Lift images with rf.lift(x, n={n})."
        check_shape("z", z, "b n c" + self.space, n=n, c=c, hint=hint)
        return unstack(self.advance(stack(z)))

    def advance(self, s: Tensor, *, only_magnitude: bool = False) -> Tensor:
        """The layer on stacked features, (b, n + 1, *space, c) -> (b, n + 1, *space', c').

        Or -> (b, *space', c') if only magnitudes are wanted.
        """
        return self._activate(self._map(s), only_magnitude)

    def advance_lifted(self, x: Tensor) -> Tensor:
        """``advance`` on a lifted image x >= 0, (b, c, *space) -> (b, n + 1, *space', c').

        Slot 0 and the magnitudes are the image and all other slots are zero, so one call of the
        linear map on the image alone gives every response.
        """
        return self._activate(self._map(x.movedim(1, -1).unsqueeze(ROTATION)), False)

    @property
    def weight(self) -> Tensor:
        """The weights of the linear map."""
        return self.linear_map.weight

    def _map(self, s: Tensor) -> Tensor:
        """The linear map alone, on every slot: (b, slots, *space, c) -> (b, slots, *space', c')."""
        f, weight = self.linear_map, self.weight.to(s.dtype)
        if isinstance(f, nn.Linear):
            return linear(s, weight)
        y = convolve(
            s.flatten(0, 1),  # slots join the batch
            weight,
            stride=cast(Pair, f.stride),
            padding=cast(Pair, f.padding),
            output_padding=cast(Pair, f.output_padding)
            if isinstance(f, nn.ConvTranspose2d)
            else None,
            impl="torch" if self.impl == "torch" else "auto",
        )
        return y.unflatten(0, s.shape[:2])

    def _activate(self, y: Tensor, only_magnitude: bool) -> Tensor:
        """Stacked features from the map's response, or from its one slot for a lifted image."""
        raise NotImplementedError

    def _new_bias(self, *slots: int) -> nn.Parameter:
        """A bias for every channel, uniform up to 1 / sqrt(fan_in), as PyTorch's own start."""
        bias = nn.Parameter(torch.empty(*slots, self.out_channels))
        # PyTorch reads fan_in off axis 1, which in a transposed convolution is the output's.
        bound = self.weight[0].numel() ** -0.5
        return cast(nn.Parameter, nn.init.uniform_(bias, -bound, bound))


def stack(z: Tensor) -> Tensor:
    """Vectors and magnitudes side by side, (b, n, c, *space) -> (b, n + 1, *space, c)."""
    z = z.movedim(2, -1)
    return torch.cat([z, magnitude(z).unsqueeze(ROTATION)], dim=ROTATION)


def unstack(s: Tensor) -> Tensor:
    """The vectors of stacked features, (b, n + 1, *space, c) -> (b, n, c, *space)."""
    return s[:, :-1].movedim(-1, 2)
