"""Where a step's photographs come from: random crops, or a frozen network's features of them."""

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.packed import Packed
from rotating_features.features import Backbone
from rotating_features.train.batches import INDEX_BITS


class PhotoFeed:
    """Crops of photographs by ticket, on a device.

    A ticket is the number of a photograph with random bits above it, see :class:`Batches`; the same
    ticket gives the same crop. Cutting, flipping and the backbone all run on the device, so that a
    CUDA graph can hold them.

    Args:
        photographs: All of them, in bytes.
        device: Where they are wanted; on a GPU all are kept there.
        size: Height and width of a crop.
        backbone: Whose features are wanted, on the same device. Default: the pixels themselves.
        quarter_turns: Whether crops are also turned by 90 degrees, as for FoodSeg103.
    """

    def __init__(
        self,
        photographs: Packed,
        device: torch.device,
        *,
        size: int,
        backbone: Backbone | None = None,
        quarter_turns: bool = False,
    ) -> None:
        self.photographs = photographs.to(device)
        self.device, self.size, self.backbone = device, size, backbone
        self.quarter_turns = quarter_turns
        weights = "" if backbone is None else f" {backbone.weights_id()}"
        self.digest = photographs.digest() + weights
        """What a run that goes on should find again."""

    def __len__(self) -> int:
        return len(self.photographs)

    def __call__(self, tickets: Tensor) -> Tensor:
        """Crops (b, 3, size, size) in [0, 1], or their features (b, c, h, w)."""
        crops = self.photographs.crops(
            tickets & ((1 << INDEX_BITS) - 1),
            tickets >> INDEX_BITS,
            self.size,
            quarter_turns=self.quarter_turns,
        )
        return crops / 255 if self.backbone is None else self.backbone(crops)

    def batch(self, tickets: Tensor, *, labels: bool) -> tuple[Tensor]:
        """The same, for models that need no labels."""
        if labels:
            raise InputError(
                "The model learns from classes, and photographs are given without.\n"
                "  Train a model that needs none."
            )
        return (self(tickets),)
