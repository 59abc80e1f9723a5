"""Where a step's photographs come from: random crops, or a frozen network's features of them."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.packed import Packed
from rotating_features.features import Backbone
from rotating_features.machine import free_memory
from rotating_features.train.batches import DRAW_BITS, INDEX_BITS

LOOK_BATCH = 32


class PhotoFeed:
    """Crops of photographs by ticket, on a device.

    A ticket is the number of a photograph with random bits above it, see :class:`Batches`; the same
    ticket gives the same crop. Cutting, flipping and the backbone all run on the device, so that a
    CUDA graph can hold them.

    With ``crops``, each photograph has only so many of them, the same for every ticket, seed and
    run. Then the backbone looks at each once, beforehand, and its features are kept in bfloat16:
    a step costs no more than the model that learns from them.

    Args:
        photographs: All of them, in bytes.
        device: Where they are wanted; on a GPU all are kept there.
        size: Height and width of a crop.
        backbone: Whose features are wanted, on the same device. Default: the pixels themselves.
        quarter_turns: Whether crops are also turned by 90 degrees, as for FoodSeg103.
        crops: So many of each photograph. Default: a new one for every ticket.
        progress: Told how many crops the backbone has looked at beforehand, time and again.
    """

    def __init__(
        self,
        photographs: Packed,
        device: torch.device,
        *,
        size: int,
        backbone: Backbone | None = None,
        quarter_turns: bool = False,
        crops: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.device, self.size, self.backbone = device, size, backbone
        self.quarter_turns, self.crops = quarter_turns, crops
        self.problems = photographs.problems
        self._count = len(photographs)
        self.digest = photographs.digest()
        """What a run that goes on should find again."""
        if backbone is not None:
            self.digest += f" {backbone.weights_id()}"
        if crops is not None:
            self.digest += f" {crops} crops"
        self.photographs: Packed | None = photographs.to(device)
        self._draws = None if crops is None else _fixed_draws(crops, self._count).to(device)
        self._kept: Tensor | None = None
        if backbone is not None and self._draws is not None:
            self._kept = self._keep(backbone, self._draws, progress)
            self.photographs = None  # which may take as much room

    def __len__(self) -> int:
        return self._count

    def __call__(self, tickets: Tensor) -> Tensor:
        """Crops (b, 3, size, size) in [0, 1], or their features (b, c, h, w)."""
        indices, draws = tickets & ((1 << INDEX_BITS) - 1), tickets >> INDEX_BITS
        if self.crops is not None and self._draws is not None:
            which = draws % self.crops * self._count + indices
            if self._kept is not None:
                return self._kept.index_select(0, which).float().movedim(3, 1)
            draws = self._draws.index_select(0, which)
        return self._look(indices, draws)

    def batch(self, tickets: Tensor, *, labels: bool) -> tuple[Tensor]:
        """The same, for models that need no labels."""
        if labels:
            raise InputError(
                "The model learns from classes, and photographs are given without.\n"
                "  Train a model that needs none."
            )
        return (self(tickets),)

    def _look(self, indices: Tensor, draws: Tensor) -> Tensor:
        assert self.photographs is not None
        crops = self.photographs.crops(indices, draws, self.size, quarter_turns=self.quarter_turns)
        return crops / 255 if self.backbone is None else self.backbone(crops)

    def _keep(
        self, backbone: Backbone, draws: Tensor, progress: Callable[[int], None] | None
    ) -> Tensor:
        """Features of all crops, (crops * photographs, h, w, c): channels last, as layers want."""
        shape = (len(draws), *backbone.grid(self.size), backbone.channels)
        kept = _room(shape, self.device, self._count)
        for start in range(0, len(draws), LOOK_BATCH):
            which = torch.arange(start, min(start + LOOK_BATCH, len(draws)), device=self.device)
            features = self._look(which % self._count, draws.index_select(0, which))
            kept[start : start + len(which)] = features.movedim(1, 3)
            if progress is not None:
                progress(start + len(which))
        return kept


def _fixed_draws(crops: int, photographs: int) -> Tensor:
    """What decides each crop: all first ones, all second ones, and so on, whatever ``crops`` is."""
    draws = [
        np.random.default_rng([DRAW_BITS, number]).integers(1 << DRAW_BITS, size=photographs)
        for number in range(crops)
    ]
    return torch.from_numpy(np.concatenate(draws))


def _room(shape: tuple[int, ...], device: torch.device, photographs: int) -> Tensor:
    wanted = 2 * int(np.prod(shape))
    free = free_memory(device)
    if free is not None and wanted > free:
        each = wanted * photographs // shape[0]
        raise InputError(
            f"Features of {shape[0] // photographs} crops of {photographs:,} photographs take "
            f"{wanted / 1e9:.1f} GB, and {device} has {free / 1e9:.1f} GB left.\n"
            f"  Keep fewer, {each / 1e9:.1f} GB each: --data.crops. Or leave it, and every step "
            "makes its own."
        )
    return torch.empty(shape, dtype=torch.bfloat16, device=device)
