r"""What every rotating layer does, whatever its linear map.

.. math::
    \psi &= f_w(z) + b                    && \text{orientation-aware response} \\
    \chi &= f_w(\lVert z\rVert)           && \text{orientation-blind response} \\
    m    &= \mathrm{ReLU}(\mathrm{Norm}(\tfrac12\lVert\psi\rVert + \tfrac12\chi)) \\
    z'   &= m \, \psi \,/\, \lVert\psi\rVert

One set of weights :math:`w` acts on every rotation dimension and on the magnitudes alike. So
the magnitude travels as slot :math:`n+1` beside the vectors it belongs to, and :math:`\psi` and
:math:`\chi` come out of one call of :math:`f_w`. This *stacked* form keeps the channels last,
``(b, n + 1, *space, c)``, which is how convolutions like them in memory; only layers and models
see it.
"""

from typing import cast

import torch
from torch import Tensor, nn

from rotating_features._check import check_shape
from rotating_features.ops import Impl
from rotating_features.ops.activate import Norm, activate
from rotating_features.vectors import ROTATION, check_rotation_dim, magnitude


class RotatingLayer(nn.Module):
    r"""Base of the rotating layers. A subclass says what its linear map is and what it maps.

    Args:
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude: Whether the rotation bias counts in :math:`\lVert\psi\rVert`, as in
            the paper, or only turns the vector, as in the paper's released code.
        binding: ``False`` leaves :math:`\chi` out, the paper's ablation: the magnitude is then
            :math:`\lVert\psi\rVert` alone.
        impl: Which implementation to run, as in :func:`activate`; ``"triton"`` is about what comes
            after the linear map, for which there may be no kernel.
    """

    axes: str
    """Names of the input's axes, for the error message of a wrong shape."""

    def __init__(
        self,
        linear_map: nn.Module,
        norm: Norm,
        *,
        channels: tuple[int, int],
        fan_in: int,
        rotation_dim: int,
        bias_in_magnitude: bool,
        binding: bool,
        impl: Impl,
    ) -> None:
        super().__init__()
        check_rotation_dim(rotation_dim)
        self.in_channels, self.out_channels = channels
        self.rotation_dim = rotation_dim
        self.bias_in_magnitude = bias_in_magnitude
        self.binding = binding
        self.impl: Impl = impl
        self.linear_map = linear_map
        self.bias = nn.Parameter(torch.empty(rotation_dim, self.out_channels))
        self.norm = norm
        nn.init.uniform_(self.bias, -(fan_in**-0.5), fan_in**-0.5)

    def forward(self, z: Tensor) -> Tensor:
        n, c = self.rotation_dim, self.in_channels
        check_shape("z", z, self.axes, n=n, c=c, hint=f"Lift images with rf.lift(x, n={n}).")
        return unstack(self.advance(stack(z)))

    def advance(self, s: Tensor, *, only_magnitude: bool = False) -> Tensor:
        """The layer on stacked features, (b, n + 1, *space, c) -> (b, n + 1, *space', c').

        Or -> (b, *space', c') if only magnitudes are wanted.
        """
        return self._activate(self._map(s if self.binding else s[:, :-1]), only_magnitude)

    def advance_lifted(self, x: Tensor) -> Tensor:
        """``advance`` on a lifted image x >= 0, (b, c, *space) -> (b, n + 1, *space', c').

        Slot 0 and the magnitudes are the image and all other slots are zero, so one call of the
        linear map on the image alone gives every response.
        """
        return self._activate(self._map(x.movedim(1, -1).unsqueeze(ROTATION)), False)

    @property
    def weight(self) -> Tensor:
        """The weights of the linear map."""
        return cast(Tensor, self.linear_map.weight)

    def _activate(self, y: Tensor, only_magnitude: bool) -> Tensor:
        return activate(
            y,
            self.bias,
            self.norm,
            bias_in_magnitude=self.bias_in_magnitude,
            binding=self.binding,
            only_magnitude=only_magnitude,
            impl=self.impl,
        )

    def _map(self, s: Tensor) -> Tensor:
        """The linear map alone, on every slot: (b, slots, *space, c) -> (b, slots, *space', c')."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        options = f"rotation_dim={self.rotation_dim}"
        if not self.bias_in_magnitude:
            options += ", bias_in_magnitude=False"
        if not self.binding:
            options += ", binding=False"
        return options


def stack(z: Tensor) -> Tensor:
    """Vectors and magnitudes side by side, (b, n, c, *space) -> (b, n + 1, *space, c)."""
    z = z.movedim(2, -1)
    return torch.cat([z, magnitude(z).unsqueeze(ROTATION)], dim=ROTATION)


def unstack(s: Tensor) -> Tensor:
    """The vectors of stacked features, (b, n + 1, *space, c) -> (b, n, c, *space)."""
    return s[:, :-1].movedim(-1, 2)
