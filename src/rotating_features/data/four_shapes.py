"""4Shapes: four white outlines on black, every shape once in every image."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch.utils.data import Dataset

from rotating_features._check import InputError
from rotating_features.data.counter import integers
from rotating_features.data.sample import BACKGROUND, IGNORE, SPLITS, Sample, Split
from rotating_features.data.stencils import outline, placements, ring, square, triangle

SIZES: dict[Split, int] = {"train": 50_000, "val": 10_000, "test": 10_000}
SIDE = 32


class FourShapes(Dataset[Sample]):
    """Square, ring and two triangles on black, 32 x 32, drawn on demand.

    Sample ``i`` depends on ``(seed, split, i)`` alone, so it is the same on every machine, in
    every worker, and in whatever order it is asked for.

    Args:
        split: ``"train"`` (50,000 images), ``"val"`` or ``"test"`` (10,000 each).
        seed: Another seed is another dataset.
        ring_diameter: The paper gives the circle "an outer radius of 11 pixels", read here to
            the letter: 23 pixels across. 11 draws the smaller reading.

    Example:
        >>> image, instances, _ = FourShapes("train")[0]
        >>> image.shape, instances.unique()
        (torch.Size([1, 32, 32]), tensor([-1,  0,  1,  2,  3,  4]))
    """

    channels = 1
    size: tuple[int, int] = (SIDE, SIDE)

    def __init__(self, split: Split, *, seed: int = 0, ring_diameter: Literal[11, 23] = 23) -> None:
        if split not in SIZES:
            raise InputError(f"split should be one of {list(SPLITS)}, got {split!r}.")
        if ring_diameter not in (11, 23):
            raise InputError(f"ring_diameter should be 23 or 11, got {ring_diameter}.")
        self.split: Split = split
        self.seed = seed
        up = outline(triangle(base=17, height=9))
        stencils = outline(square(13)), up, up[::-1], ring(ring_diameter)
        self._placements = [placements(stencil, SIDE) for stencil in stencils]

    def __len__(self) -> int:
        return SIZES[self.split]

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is outside {self.split!r} (0..{len(self) - 1}).")
        return self.draw([index]).first()

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        sample = np.asarray(indices)
        covered = np.zeros((len(sample), SIDE * SIDE), dtype=np.uint8)
        labels = np.full(covered.shape, BACKGROUND, dtype=np.int8)
        for label, table in enumerate(self._placements, start=1):
            way = integers(len(table), self.seed, SPLITS.index(self.split), sample, label)
            shape = table[way]
            covered += shape
            labels += shape.view(np.int8) * np.int8(label)
        labels[covered > 1] = IGNORE
        image = torch.from_numpy(covered.clip(max=1)).float()
        return Sample(
            image.view(-1, 1, SIDE, SIDE), torch.from_numpy(labels).long().view(-1, SIDE, SIDE)
        )
