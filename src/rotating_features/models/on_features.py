"""A model for photographs: a frozen network and an autoencoder of the features it makes."""

from typing import Any

import torch
from torch import Tensor, nn

from rotating_features._check import InputError
from rotating_features.features import Backbone
from rotating_features.machine import multiplies_bfloat16
from rotating_features.models.autoencoder import AutoEncoder, Output


class OnFeatures(nn.Module):
    """Objects in photographs, on the grid of a backbone.

    The autoencoder alone is trained; it reconstructs features, not pixels. It remembers what made
    them (``origin``), so that its file is enough to put both together again.

    Args:
        backbone: From :func:`rotating_features.features.open_backbone`, or any module of yours in
            a :class:`rotating_features.features.Backbone`.
        autoencoder: Built with ``features=True`` for the backbone's channels and grid.
        size: Height and width of the images it gets.

    Shape:
        ``(b, 3, h, w)`` in [0, 1] -> ``Output((b, c, h', w'), (b, n, c, h', w'))`` on the grid.

    Example:
        >>> from rotating_features.models import RotatingAutoEncoder
        >>> backbone = Backbone(nn.Conv2d(3, 8, 16, stride=16), channels=8, stride=16)
        >>> autoencoder = RotatingAutoEncoder(
        ...     channels=8, size=(14, 14), hidden_dim=4, rotation_dim=3, features=True
        ... )
        >>> OnFeatures(backbone, autoencoder, size=(224, 224))(torch.rand(2, 3, 224, 224)).z.shape
        torch.Size([2, 3, 8, 14, 14])
    """

    channels = 3

    def __init__(
        self, backbone: Backbone, autoencoder: AutoEncoder, *, size: tuple[int, int]
    ) -> None:
        super().__init__()
        wanted = backbone.channels, backbone.grid(size)
        came = autoencoder.channels, autoencoder.size
        if wanted != came or autoencoder.prepare is None:
            raise InputError(
                f"The autoencoder should be built with features=True for {backbone.name}, whose "
                f"features of {size[0]} x {size[1]} pixels have {wanted[0]} channels on a grid of "
                f"{wanted[1]}, got one for {came[0]} channels on {came[1]}."
            )
        self.backbone, self.autoencoder = backbone, autoencoder
        self.size = (size[0], size[1])
        self.rotation_dim = autoencoder.rotation_dim
        autoencoder.origin = None  # it may have been trained on another's features
        if backbone.spec is not None:
            made_by = {name: value for name, value in backbone.spec.items() if name != "dtype"}
            weights = backbone.weights_id()
            autoencoder.origin = {"backbone": made_by, "weights": weights, "size": [*size]}

    @property
    def settings(self) -> dict[str, Any]:
        """All that the answers depend on, but for the weights."""
        own = self.autoencoder.settings
        return {**own, "size": [*self.size], "backbone": self.backbone.fingerprint()}

    def forward(self, x: Tensor) -> Output:
        return self.autoencoder(self.backbone(x))


def suitable_dtype(device: str | torch.device) -> torch.dtype:
    """What a backbone computes in: it is only looked at, so a machine that can hurry may."""
    kind = torch.device(device).type
    hurries = kind == "cuda" or (kind == "cpu" and multiplies_bfloat16())
    return torch.bfloat16 if hurries else torch.float32
