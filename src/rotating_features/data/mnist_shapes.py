"""MNIST1Shape and MNIST2Shape: a handwritten digit and one or two of three shapes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.counter import integers
from rotating_features.data.four_shapes import four_stencils
from rotating_features.data.mnist import read_mnist
from rotating_features.data.sample import IGNORE, Sample, Split
from rotating_features.data.shapes import DIGIT, ShapesDataset, paint


class MnistShapes(ShapesDataset):
    """A digit and one or two different ones of square, triangle up, triangle down; 32 x 32, grey.

    Image ``i`` has the split's digit ``i``, so that every digit is used once. Its 28 x 28 pixels
    and the shapes, of the format of 4Shapes, are put at random places fully inside. The rest
    depends on ``(seed, split, i)`` alone.

    The paper does not say how a digit's grey edge is drawn and labelled. Here the image keeps the
    grey values, and is the maximum of what lies upon each other. A pixel belongs to the digit if
    it is brighter than 0.5, that is, if the stroke covers most of it; fainter ones are background,
    or a shape's. With ``digit_edge`` all that is not black belongs to it.

    Labels of objects: 1 for the digit, 2 and 3 for the shapes. Labels of classes: 1 + their place
    in ``class_names``. Both have IGNORE where objects overlap.

    Args:
        split: ``"train"`` (50,000 images, with the first digits of MNIST's training set), ``"val"``
            (10,000, with its last digits) or ``"test"`` (10,000, with the digits of its test set).
        shapes: How many of the three shapes are in each image.
        seed: Another seed is another dataset, of the same digits.
        digit_edge: Whether a digit's grey edge belongs to it. Labels depend on it, images do not.
        path: Folder with the four original files of MNIST; ``data/mnist`` by default.
    """

    channels: int = 1
    size: tuple[int, int] = (32, 32)
    class_names: tuple[str, ...] = (*"0123456789", "square", "triangle up", "triangle down")

    def __init__(
        self,
        split: Split,
        *,
        shapes: Literal[1, 2],
        seed: int = 0,
        digit_edge: bool = False,
        path: str | Path | None = None,
    ) -> None:
        super().__init__(split, seed=seed, stencils=four_stencils(23)[:3])
        if shapes not in (1, 2):
            raise InputError(f"shapes should be 1 or 2, got {shapes}.")
        self.shapes = shapes
        self.faintest = 1 if digit_edge else 128
        digits, names = read_mnist("t10k" if split == "test" else "train", path)
        start = self.lengths["train"] if split == "val" else 0
        self._digits = digits[start : start + self.lengths[split]]
        self._names = names[start : start + self.lengths[split]]

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        sample = np.asarray(indices)
        present = self._choose(sample, self.shapes)
        scene = self._scene(sample, present)
        digit = self._place_digits(sample)
        ink = (digit >= self.faintest)[:, None]
        overlap = scene.covered[:, None] + ink > 1

        # Two maps side by side: which object, and of which class.
        of_digit = np.stack([np.ones(len(sample)), 1 + self._names[sample]], axis=1)
        shape_class = np.broadcast_to(np.arange(11, 14), present.shape)
        of_shapes = np.stack([1 + present.cumsum(1), shape_class], axis=2)
        maps = np.where(ink, of_digit[:, :, None], paint(scene.front, of_shapes))
        instances, classes = np.where(overlap, IGNORE, maps).swapaxes(0, 1)

        grey = np.where(scene.covered > 0, np.uint8(255), digit)
        image = self._images(grey.astype(np.float32) / 255)
        return Sample(image, self._maps(instances), self._maps(classes))

    def draw_labels(self, indices: Sequence[int] | np.ndarray) -> Tensor:
        """What is in the images at ``indices``: 1 or 0 for each class, (b, 13) float32."""
        sample = np.asarray(indices)
        digit = np.arange(10) == self._names[sample, None]
        present = self._choose(sample, self.shapes)
        return torch.from_numpy(np.concatenate([digit, present], axis=1).astype(np.float32))

    def _place_digits(self, sample: np.ndarray) -> np.ndarray:
        """Grey values, (b, pixels) uint8: images cut out of digits with wide margins."""
        margin = self.size[0] - self._digits.shape[1]
        wide = np.pad(self._digits[sample], ((0, 0), (margin, margin), (margin, margin)))
        way = integers((margin + 1) ** 2, *self._address(sample, DIGIT))
        windows = sliding_window_view(wide, self.size, axis=(1, 2))
        cut = windows[np.arange(len(sample)), way // (margin + 1), way % (margin + 1)]
        return cut.reshape(len(sample), -1)
