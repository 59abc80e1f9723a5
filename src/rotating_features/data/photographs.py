"""Photographs and their masks: what datasets of them yield, and how their files are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from rotating_features._check import InputError
from rotating_features.data.decode import open_image
from rotating_features.data.memory import count_pixels
from rotating_features.data.sample import IGNORE

UNLABELLED = 255
"""What masks have where nobody said what is there, such as on outlines of objects."""


LONGEST = 32
"""Times a photograph may be as long as wide: resized to a shorter side, it would fill gigabytes."""


class Photograph(NamedTuple):
    """A photograph, and what is known about its pixels."""

    image: Tensor  # (3, h, w) uint8, the size it has on disk
    instances: Tensor | None  # (h, w) int64: BACKGROUND, 1..k for objects, IGNORE; None if unknown
    classes: Tensor | None  # (h, w) int64, the same for classes


class Photographs(Protocol):
    """Photographs by index. They differ in size, so they come one at a time."""

    def __len__(self) -> int: ...

    def name(self, index: int, /) -> str:
        """How reports call it."""
        ...

    def pixels(self, index: int, /) -> int:
        """How many it has, so that not too many are in memory at once."""
        ...

    def __getitem__(self, index: int, /) -> Photograph: ...


class Images(Protocol):
    """Images by index, without masks: all that is needed to train."""

    def __len__(self) -> int: ...

    def name(self, index: int, /) -> str: ...

    def pixels(self, index: int, /) -> int: ...

    def image(self, index: int, /) -> Tensor:
        """(3, h, w) uint8; ``InputError`` if there is something wrong with its file."""
        ...


class Files(NamedTuple):
    """Where one photograph lies, and its masks if it has any."""

    name: str
    image: Path
    instances: Path | None = None
    classes: Path | None = None


class PhotographFiles(Dataset[Photograph]):
    """Photographs that are read from their files when asked for.

    Args:
        files: One entry a photograph.
        highest_class: Masks of classes have 0 up to this number.
    """

    def __init__(self, files: Sequence[Files], *, highest_class: int = UNLABELLED - 1) -> None:
        self.files = tuple(files)
        self.highest_class = highest_class

    def __len__(self) -> int:
        return len(self.files)

    def name(self, index: int) -> str:
        return self._at(index).name

    def pixels(self, index: int) -> int:
        """Height times width, by the file's first bytes; 1 if they cannot be read."""
        return count_pixels(self._at(index).image)

    def image(self, index: int) -> Tensor:
        """The photograph alone, (3, h, w) uint8."""
        return read_image(self._at(index).image)

    def __getitem__(self, index: int) -> Photograph:
        files, image = self._at(index), self.image(index)
        instances = None if files.instances is None else read_labels(files.instances)
        classes = None
        if files.classes is not None:
            classes = read_labels(files.classes, highest=self.highest_class)
        for path, mask in ((files.instances, instances), (files.classes, classes)):
            if mask is not None and mask.shape != image.shape[1:]:
                raise InputError(
                    f"{path} should be as large as {files.image}, "
                    f"{tuple(image.shape[1:])} pixels, got {tuple(mask.shape)}."
                )
        return Photograph(image, instances, classes)

    def _at(self, index: int) -> Files:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is outside 0..{len(self) - 1}.")
        return self.files[index]


def read_image(path: str | Path) -> Tensor:
    """The picture in a file, (3, h, w) uint8, its channels last in memory."""
    picture = open_image(path)
    w, h = picture.size
    if max(h, w) > LONGEST * min(h, w):
        raise InputError(
            f"{path} should be at most {LONGEST} times as long as wide, got {h} x {w} pixels."
        )
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)


def read_labels(path: str | Path, *, highest: int = UNLABELLED - 1) -> Tensor:
    """The labels in a mask's file, (h, w) int64, IGNORE where it has 255.

    In a file with a palette they are the numbers of its colours.
    """
    try:
        with Image.open(path) as file:
            mode, values = file.mode, np.array(file)
    except Exception as error:  # what decoders raise on damaged files knows no bounds
        raise InputError(f"{path} cannot be read as a mask: {error}") from error
    if mode not in ("P", "L"):
        raise InputError(
            f"{path} should be a mask with a palette or in 8-bit grey, got mode {mode!r}.\n"
            "  Labels are lost when a mask is saved in colours: get the original file."
        )
    labels = torch.from_numpy(values.astype(np.int64))
    labels[labels == UNLABELLED] = IGNORE
    if (found := int(labels.max())) > highest:
        raise InputError(f"{path} should have labels 0 to {highest} and 255, got a {found}.")
    return labels
