"""Multi-dSprites: two to five coloured sprites on grey; drawn here, or as published by DeepMind."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from rotating_features._check import InputError
from rotating_features.data.counter import integers, uniform
from rotating_features.data.published import Parts, Published, pixels
from rotating_features.data.remote import FILES
from rotating_features.data.sample import SPLITS, Sample, Split
from rotating_features.data.sprites import RADII, REACH, SHAPES, TURNS, sprites
from rotating_features.data.tfrecord import Example

SIZES: dict[Split, int] = {"train": 60_000, "val": 10_000, "test": 320}
SIDE = 64
FEWEST, MOST = 2, 5


class MultiDSprites(Dataset[Sample]):
    """Ellipses, hearts and squares of random colour on a grey background, drawn on demand.

    Like the published ``colored_on_grayscale``, but made here, so it needs no download and its
    images are others. A sprite has one of 3 shapes, 6 sizes and 40 turns, lies whole inside the
    picture, and has a hue of its own with saturation and brightness of at least a half; the
    background has any brightness. Later sprites cover earlier ones: a pixel belongs to the sprite
    on top, and one that is covered whole has no pixels. Sample ``i`` depends on
    ``(seed, split, i)`` alone.

    Args:
        split: ``"train"`` (60,000 images), ``"val"`` (10,000) or ``"test"`` (320, the number the
            paper scores).
        seed: Another seed is another dataset.

    Example:
        >>> image, instances, _ = MultiDSprites("train")[0]
        >>> image.shape, instances.unique()
        (torch.Size([3, 64, 64]), tensor([0, 1, 2]))
    """

    channels = 3
    size: tuple[int, int] = (SIDE, SIDE)

    def __init__(self, split: Split, *, seed: int = 0) -> None:
        if split not in SIZES:
            raise InputError(f"split should be one of {list(SPLITS)}, got {split!r}.")
        self.split: Split = split
        self.seed = seed

    def __len__(self) -> int:
        return SIZES[self.split]

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is outside {self.split!r} (0..{len(self) - 1}).")
        return self.draw([index]).first()

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        sample = np.asarray(indices)
        labels = self._place(sample)
        colors = self._paint(sample)
        image = np.take_along_axis(colors, labels[:, None], axis=2)
        return Sample(
            torch.from_numpy(image).view(-1, 3, SIDE, SIDE),
            torch.from_numpy(labels).view(-1, SIDE, SIDE),
        )

    def _place(self, sample: np.ndarray) -> np.ndarray:
        """Which sprite is on top at every pixel: (b, SIDE * SIDE) int64."""
        key = self.seed, SPLITS.index(self.split), sample
        count = FEWEST + integers(MOST - FEWEST + 1, *key, 0)
        room = SIDE + 2 * REACH  # masks reach over the rim of the picture; sprites do not
        reach = np.arange(2 * REACH + 1)
        window = (reach[:, None] * room + reach).reshape(-1)
        labels = np.zeros((len(sample), room * room), dtype=np.uint8)
        start = np.arange(len(sample)) * room * room
        for label in range(1, MOST + 1):
            shape, radius, turn = (
                integers(high, *key, label, which)
                for which, high in enumerate((len(SHAPES), len(RADII), TURNS))
            )
            margin = np.array(RADII).astype(np.int64)[radius]
            ways = SIDE - 2 * margin
            top, left = (
                margin + (uniform(*key, label, which) * ways).astype(np.int64) for which in (3, 4)
            )
            mask = sprites()[shape, radius, turn] & (label <= count)[:, None]
            place = (start + top * room + left)[:, None] + window
            labels.reshape(-1)[place[mask]] = label
        inside = labels.reshape(-1, room, room)[:, REACH:-REACH, REACH:-REACH]
        return inside.reshape(-1, SIDE * SIDE).astype(np.int64)

    def _paint(self, sample: np.ndarray) -> np.ndarray:
        """A colour for the background and every sprite: (b, rgb, 1 + MOST) float32."""
        key = self.seed, SPLITS.index(self.split), sample[:, None], np.arange(MOST + 1)
        hue = uniform(*key, 5)
        saturation, value = 0.5 + uniform(*key, 6) / 2, 0.5 + uniform(*key, 7) / 2
        saturation[:, 0] = 0
        value[:, 0] = 2 * value[:, 0] - 1
        tone = (np.array([[5], [3], [1]]) + 6 * hue[:, None]) % 6  # where red, green, blue stand
        share = np.minimum(tone, 4 - tone).clip(0, 1)
        color = value[:, None] * (1 - saturation[:, None] * share)
        return ((color * 255).round() / 255).astype(np.float32)  # as in a file of bytes


class PublishedMultiDSprites(Published):
    """DeepMind's ``multi_dsprites_colored_on_grayscale.tfrecords``, or the paper's npz files of it.

    The file has a million images; as in the paper, the first 64 are set aside, and the next 320
    are for testing, 10,000 for validation and 60,000 for training.
    """

    title = "Multi-dSprites"
    name = "multi-dsprites"
    npz = "colored_on_grayscale"
    remote = FILES["multi-dsprites"][0]
    side = SIDE
    parts = Parts(set_aside=64, test=320, val=10_000, train=60_000)

    @classmethod
    def decode(cls, example: Example) -> tuple[np.ndarray, np.ndarray]:
        """Image and masks lie in the file as rows, columns and then channels or entities."""
        image = pixels(example, "image", (SIDE, SIDE, 3))
        masks = pixels(example, "mask", (SIDE, SIDE, 1 + MOST)) >= 128
        return image, (masks * np.arange(1 + MOST, dtype=np.uint8)).max(2)
