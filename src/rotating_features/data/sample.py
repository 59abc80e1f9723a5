"""What every dataset yields, and what it promises."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from torch import Tensor

BACKGROUND = 0
IGNORE = -1

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")


class Sample(NamedTuple):
    """An image and its objects, or a batch of both with one more axis in front."""

    image: Tensor  # (c, h, w) float32 in [0, 1]
    instances: Tensor  # (h, w) int64: BACKGROUND, 1..k for objects, IGNORE where they overlap
    classes: Tensor | None = None  # (h, w) int64, the same for classes; None if there are none

    def first(self) -> "Sample":
        """The first of a batch."""
        classes = None if self.classes is None else self.classes[0]
        return Sample(self.image[0], self.instances[0], classes)


class ImageDataset(Protocol):
    """Images by index, one or many at a time."""

    channels: int
    size: tuple[int, int]

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        ...


@runtime_checkable
class Labelled(Protocol):
    """A dataset that knows which classes are in each image."""

    def draw_labels(self, indices: Sequence[int] | np.ndarray, /) -> Tensor:
        """1 for classes that are in the image and 0 for others, (b, classes)."""
        ...
