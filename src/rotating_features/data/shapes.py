"""What the datasets of shapes share: stencils at random places, drawn a batch at a time."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from rotating_features._check import InputError
from rotating_features.data.counter import integers, uniform
from rotating_features.data.sample import BACKGROUND, IGNORE, SPLITS, Sample, Split
from rotating_features.data.stencils import placements

LENGTHS: dict[Split, int] = {"train": 50_000, "val": 10_000, "test": 10_000}

# Which random number of a sample is which. The label of an object is added to the first three.
PLACE, COLOR, CHOICE, DIGIT = 0, 100, 200, 300
HUE = len(SPLITS)  # stands where a split stands: all splits have the same colours

HueOffset = Literal["dataset", "image"]
"""Whose the random hue is from which the others are evenly spaced."""


class Scene(NamedTuple):
    """What lies where in a batch of images, (b, pixels) each."""

    front: np.ndarray  # uint8: label of the object drawn last, BACKGROUND where there is none
    covered: np.ndarray  # uint8: how many objects lie there

    def instances(self) -> np.ndarray:
        """Labels as int8, IGNORE where objects overlap."""
        return np.where(self.covered > 1, np.int8(IGNORE), self.front.view(np.int8))


class ShapesDataset(Dataset[Sample], ABC):
    """Shapes on black, each at a random place fully inside the image, drawn on demand.

    Shape ``k`` of ``stencils`` is the object with label ``k + 1``, and covers those before it.
    Sample ``i`` depends on ``(seed, split, i)`` alone, so it is the same on every machine, in
    every worker, and in whatever order it is asked for.
    """

    channels: int
    size: tuple[int, int]
    lengths: ClassVar[dict[Split, int]] = LENGTHS

    def __init__(self, split: Split, *, seed: int, stencils: Sequence[np.ndarray]) -> None:
        if split not in self.lengths:
            raise InputError(f"split should be one of {list(SPLITS)}, got {split!r}.")
        self.split: Split = split
        self.seed = seed
        self._placements = [placements(stencil, self.size[0]) for stencil in stencils]

    def __len__(self) -> int:
        return self.lengths[self.split]

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is outside {self.split!r} (0..{len(self) - 1}).")
        return self.draw([index]).first()

    @abstractmethod
    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""

    def _address(self, sample: np.ndarray, which: int | np.ndarray) -> tuple[int | np.ndarray, ...]:
        return self.seed, SPLITS.index(self.split), sample, which

    def _hues(self, count: int, sample: np.ndarray, whose: HueOffset) -> np.ndarray:
        """Colours to draw from, (b, count, 3), or (1, count, 3) if all images have the same."""
        if whose == "dataset":
            return hues(count, self.seed)[None]
        return hues_from(uniform(*self._address(sample, COLOR)), count)

    def _choose(self, sample: np.ndarray, objects: int) -> np.ndarray:
        """``objects`` of the shapes for each sample, every subset as likely: (b, shapes) bool."""
        labels = np.arange(1, len(self._placements) + 1)
        lots = uniform(*self._address(sample[:, None], CHOICE + labels))
        return lots.argsort(1) < objects  # a random order of 0, 1, ... in each row

    def _scene(self, sample: np.ndarray, present: np.ndarray | None = None) -> Scene:
        """Put shapes into images: all of them, or those that are ``present``, (b, shapes) bool."""
        pixels = self.size[0] * self.size[1]
        front = np.full((len(sample), pixels), BACKGROUND, dtype=np.uint8)
        covered = np.zeros_like(front)
        for label, table in enumerate(self._placements, start=1):
            shape = table[integers(len(table), *self._address(sample, PLACE + label))]
            if present is not None:
                shape *= present[:, label - 1, None]
            covered += shape
            np.maximum(front, shape * np.uint8(label), out=front)
        return Scene(front, covered)

    def _images(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).view(-1, self.channels, *self.size)

    def _maps(self, labels: np.ndarray) -> Tensor:
        return torch.from_numpy(labels).long().view(-1, *self.size)


def hues(count: int, seed: int) -> np.ndarray:
    """``count`` colours of a dataset, evenly spaced from an offset that ``seed`` decides."""
    return hues_from(uniform(seed, HUE), count)[0]


def hues_from(offset: np.ndarray, count: int) -> np.ndarray:
    """``count`` saturated colours, evenly spaced from each offset, (b,) -> (b, count, 3).

    RGB of HSV with S = V = 1: each channel is full for a third of the colour circle around its
    own hue, falls over a sixth on either side, and is 0 in the rest.
    """
    hue = offset[:, None, None] + np.arange(count)[:, None] / count
    away = np.abs((hue - np.array([0, 1, 2]) / 3 + 0.5) % 1 - 0.5)
    return np.clip(2 - 6 * away, 0, 1).astype(np.float32)


def check_hue_offset(whose: str) -> None:
    """Raise ``InputError`` unless it is a :data:`HueOffset`."""
    if whose not in get_args(HueOffset):
        raise InputError(f"hue_offset should be one of {[*get_args(HueOffset)]}, got {whose!r}.")


def equal_depths(count: int, *, from_zero: bool = True) -> np.ndarray:
    """``count`` depths with equal distances, up to 1: (count, 1)."""
    steps = np.linspace(0, 1, count if from_zero else count + 1, dtype=np.float32)
    return steps[-count:, None]


def paint(front: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Give each pixel the values of the object in front, and background 0.

    Args:
        front: Labels, (b, pixels).
        values: Of the objects of each image, (b, objects, c), or of all images alike, (objects, c).

    Returns:
        (b, c, pixels) float32.
    """
    table = np.zeros((len(front), values.shape[-2] + 1, values.shape[-1]), dtype=np.float32)
    table[:, 1:] = values
    row = front + np.arange(len(front))[:, None] * table.shape[1]
    image = np.empty((len(front), table.shape[2], front.shape[1]), dtype=np.float32)
    for channel, column in enumerate(table.reshape(-1, table.shape[2]).T.copy()):
        image[:, channel] = column[row]
    return image
