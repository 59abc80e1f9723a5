"""Where a step's photographs come from: random crops, or a frozen network's features of them."""

import math
import time

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.memory import return_memory
from rotating_features.data.packed import Packed
from rotating_features.features import Backbone
from rotating_features.machine import free_memory
from rotating_features.train.batches import DRAW_BITS, INDEX_BITS

LOOK_BATCH = 32
ROOM = 0.8
"""Of the memory that is free, what features may take; the model and its steps want some, too."""
RATIO = 4 / 3
"""Of the sides of a photograph, where its size is not known yet."""


class PhotoFeed:
    """Crops of photographs by ticket, on a device.

    A ticket is the number of a photograph with random bits above it, see :class:`Batches`; the same
    ticket gives the same crop. Cutting, flipping and the backbone all run on the device, so that a
    CUDA graph can hold them.

    With ``crops``, each photograph has only so many of them, the same for every ticket, seed and
    run. Then the backbone looks at each once, before the first is asked for, and its features are
    kept in bfloat16: a step costs no more than the model that learns from them.

    Args:
        photographs: All of them, in bytes.
        device: Where they are wanted; on a GPU all are kept there.
        size: Height and width of a crop.
        backbone: Whose features are wanted, on the same device. Default: the pixels themselves.
        quarter_turns: Whether crops are also turned by 90 degrees, as for FoodSeg103.
        crops: So many of each photograph. Default: a new one for every ticket.
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
    ) -> None:
        if crops is not None and crops < 1:
            raise InputError(f"crops should be at least 1, or None for new ones, got {crops}.")
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

    def __len__(self) -> int:
        return self._count

    def __call__(self, tickets: Tensor) -> Tensor:
        """Crops (b, 3, size, size) in [0, 1], or their features (b, c, h, w)."""
        indices, draws = tickets & ((1 << INDEX_BITS) - 1), tickets >> INDEX_BITS
        if self.crops is None:
            return self._make(indices, draws)
        self.look(quiet=True)
        which = draws % self.crops * self._count + indices
        if self._kept is not None:
            return self._kept.index_select(0, which).float().movedim(3, 1)
        assert self._draws is not None
        return self._make(indices, self._draws.index_select(0, which))

    def batch(self, tickets: Tensor, *, labels: bool) -> tuple[Tensor]:
        """The same, for models that need no labels."""
        if labels:
            raise InputError(
                "The model learns from classes, and photographs are given without.\n"
                "  Train a model that needs none."
            )
        return (self(tickets),)

    def look(self, *, quiet: bool = False) -> float:
        """Have the backbone look at all crops, if there are so many and it has not; the seconds.

        Once that is done the photographs themselves are forgotten.
        """
        if self._draws is None or self.backbone is None or self._kept is not None:
            return 0.0
        started, draws = time.perf_counter(), self._draws
        assert self.crops is not None
        check_room(self.crops, self._count, self.backbone, self.size, self.device)
        shape = (len(draws), *self.backbone.grid(self.size), self.backbone.channels)
        kept = torch.empty(shape, dtype=torch.bfloat16, device=self.device)  # as layers want them
        title = f"looking at {len(draws):,} crops"
        for start in track(range(0, len(draws), LOOK_BATCH), title, disable=quiet):
            which = torch.arange(start, min(start + LOOK_BATCH, len(draws)), device=self.device)
            features = self._make(which % self._count, draws.index_select(0, which))
            kept[start : start + len(which)] = features.movedim(1, 3)
        self._kept, self._draws, self.photographs = kept, None, None
        give_back(self.device)
        return time.perf_counter() - started

    def _make(self, indices: Tensor, draws: Tensor) -> Tensor:
        assert self.photographs is not None
        crops = self.photographs.crops(indices, draws, self.size, quarter_turns=self.quarter_turns)
        return crops / 255 if self.backbone is None else self.backbone(crops)


def give_back(device: torch.device) -> None:
    """Have memory that is no longer used counted as free, and usable for a CUDA graph."""
    return_memory()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def check_room(
    crops: int,
    photographs: int,
    backbone: Backbone,
    size: int,
    device: torch.device,
    *,
    read: bool = True,
) -> None:
    """Raise ``InputError`` if features of so many crops would fill the device's memory.

    Where the photographs are yet to be ``read``, it is left what they will take.
    """
    give_back(device)
    each = 2 * photographs * backbone.channels * math.prod(backbone.grid(size))
    pixels = 0 if read else int(3 * RATIO * size**2) * photographs
    free = free_memory(device)
    if free is not None and crops * each > ROOM * (free - pixels):
        beside = f" beside {pixels / 1e9:.1f} GB of photographs" if pixels else ""
        raise InputError(
            f"Features of {crops} crops of {photographs:,} photographs take "
            f"{crops * each / 1e9:.1f} GB{beside}, and {device} has {free / 1e9:.1f} GB left.\n"
            f"  One crop of each takes {each / 1e9:.1f} GB. Choose with --data.crops, or None to "
            "have the backbone look at new ones in every step."
        )


def _fixed_draws(crops: int, photographs: int) -> Tensor:
    """What decides each crop: all first ones, all second ones, and so on, whatever ``crops`` is."""
    draws = [
        np.random.default_rng([DRAW_BITS, number]).integers(1 << DRAW_BITS, size=photographs)
        for number in range(crops)
    ]
    return torch.from_numpy(np.concatenate(draws))
