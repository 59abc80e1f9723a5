r"""What every rotating layer does, whatever its linear map.

.. math::
    \psi &= f_w(z) + b                    && \text{orientation-aware response} \\
    \chi &= f_w(\lVert z\rVert)           && \text{orientation-blind response} \\
    m    &= \mathrm{ReLU}(\mathrm{Norm}(\tfrac12\lVert\psi\rVert + \tfrac12\chi)) \\
    z'   &= m \, \psi \,/\, \lVert\psi\rVert

One set of weights :math:`w` acts on every rotation dimension and on the magnitudes alike, so that
:math:`\psi` and :math:`\chi` come out of one call of :math:`f_w` on stacked features.
"""

from torch import Tensor

from rotating_features.nn.stacked import LinearMap, StackedLayer
from rotating_features.ops import Impl
from rotating_features.ops.activate import activate
from rotating_features.vectors import check_rotation_dim


class RotatingLayer(StackedLayer):
    r"""Base of the rotating layers. A subclass says what its linear map is.

    Args:
        rotation_dim: Length :math:`n` of every feature vector.
        bias_in_magnitude: Whether the rotation bias counts in :math:`\lVert\psi\rVert`, as in
            the paper, or only turns the vector, as in the paper's released code.
        binding: ``False`` leaves :math:`\chi` out, the paper's ablation: the magnitude is then
            :math:`\lVert\psi\rVert` alone.
        impl: Which implementation to run, as in :func:`activate`; ``"triton"`` is about what comes
            after the linear map, for which there may be no kernel.
    """

    def __init__(
        self,
        linear_map: LinearMap,
        *,
        rotation_dim: int,
        bias_in_magnitude: bool,
        binding: bool,
        impl: Impl,
    ) -> None:
        check_rotation_dim(rotation_dim)
        super().__init__(linear_map, rotation_dim=rotation_dim, impl=impl)
        self.bias_in_magnitude = bias_in_magnitude
        self.binding = binding
        self.bias = self._new_bias(rotation_dim)

    def advance(self, s: Tensor, *, only_magnitude: bool = False) -> Tensor:
        return super().advance(s if self.binding else s[:, :-1], only_magnitude=only_magnitude)

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

    def extra_repr(self) -> str:
        options = f"rotation_dim={self.rotation_dim}"
        if not self.bias_in_magnitude:
            options += ", bias_in_magnitude=False"
        if not self.binding:
            options += ", binding=False"
        return options
