r"""An autoencoder that is also told which classes are in an image, but not where.

.. math::
    z_\text{class} &= f_\text{class}(z_\text{encoder}) \\
    L &= \mathrm{MSE} + \mathrm{BCE}(\sigma(w_k \lVert z_\text{class}\rVert + b_k), o_k)

The orientation of :math:`z_\text{class}` is that of the object in the bottleneck, so pixels that
point the same way belong to that class: segmentation by class, learned without any mask.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError, check_shape
from rotating_features.models.flavours import RotatingAutoEncoder
from rotating_features.nn import Readout, RotatingLinear
from rotating_features.nn.stacked import unstack
from rotating_features.ops import Impl


class Classification(NamedTuple):
    """What a classifier says of a batch of images."""

    probabilities: Tensor  # (b, classes), of each class being in the image
    z: Tensor  # (b, n, classes), where each class points


class RotatingClassifier(RotatingAutoEncoder):
    """The rotating autoencoder with a classifier on its bottleneck.

    Args:
        channels, size, hidden_dim, rotation_dim, features, bias_in_magnitude, binding, impl: As in
            :class:`RotatingAutoEncoder`.
        classes: How many there are; an image may have several.

    Example:
        >>> model = RotatingClassifier(channels=1, size=(32, 32), hidden_dim=8, classes=13)
        >>> model.classify(torch.rand(2, 1, 32, 32)).probabilities.shape
        torch.Size([2, 13])
    """

    needs_labels: ClassVar[bool] = True

    def __init__(
        self,
        *,
        channels: int,
        size: tuple[int, int],
        classes: int,
        hidden_dim: int = 32,
        rotation_dim: int = 8,
        features: bool = False,
        bias_in_magnitude: bool = True,
        binding: bool = True,
        impl: Impl = "auto",
    ) -> None:
        if classes < 2:
            raise InputError(
                f"classes should be at least 2, got {classes}: layer normalisation over one class "
                "alone would give every image the same answer."
            )
        super().__init__(
            channels=channels,
            size=size,
            hidden_dim=hidden_dim,
            rotation_dim=rotation_dim,
            features=features,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
            impl=impl,
        )
        self.settings["classes"] = classes
        self.classes = classes
        self.f_class = RotatingLinear(
            2 * hidden_dim,
            classes,
            rotation_dim=rotation_dim,
            bias_in_magnitude=bias_in_magnitude,
            binding=binding,
            impl=impl,
        )
        self.class_readout = Readout(classes)

    def classify(self, x: Tensor) -> Classification:
        """Which classes are in each image, and where each points."""
        self._check(x)
        s = self.f_class.advance(self._encode(x))
        return Classification(self._logits(s[:, -1]).sigmoid(), unstack(s))

    def loss(
        self, x: Tensor, dtype: torch.dtype | None = None, *, labels: Tensor | None = None
    ) -> Tensor:
        """Squared error of the reconstruction plus cross-entropy of the classes, equally weighted.

        Args:
            x, dtype: As in :meth:`AutoEncoder.loss`.
            labels: 1 for classes that are in the image and 0 for others, (b, classes).
        """
        if labels is None:
            raise InputError(
                "A classifier should be told which classes are in each image, got no labels.\n"
                f"  Pass labels=, one row of {self.classes} zeros and ones for each image."
            )
        self._check_shape(x)
        check_shape("labels", labels, "b classes", b=len(x), classes=self.classes)
        s = self._encode(x, dtype)
        logits = self._logits(self.f_class.advance(s, only_magnitude=True))
        wrong = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return self._error(s, x) + wrong

    def _logits(self, m: Tensor) -> Tensor:
        return self.class_readout.weight * m + self.class_readout.bias
