"""4Shapes: four outlines on black, every shape once in every image; white, coloured, with depth."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rotating_features._check import InputError
from rotating_features.data.counter import integers
from rotating_features.data.sample import Sample, Split
from rotating_features.data.shapes import (
    COLOR,
    HueOffset,
    ShapesDataset,
    check_hue_offset,
    equal_depths,
    paint,
)
from rotating_features.data.stencils import outline, ring, square, triangle

RingDiameter = Literal[11, 23]


class FourShapes(ShapesDataset):
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

    channels: int = 1
    size: tuple[int, int] = (32, 32)

    def __init__(self, split: Split, *, seed: int = 0, ring_diameter: RingDiameter = 23) -> None:
        super().__init__(split, seed=seed, stencils=four_stencils(ring_diameter))

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        scene = self._scene(np.asarray(indices))
        white = (scene.covered > 0).astype(np.float32)
        return Sample(self._images(white), self._maps(scene.instances()))


class ColoredFourShapes(FourShapes):
    """The images of ``FourShapes`` with a colour for every object, and a depth if asked for.

    Objects draw their colours independently from a set with evenly spaced hues. The first hue
    is random, but usually the same for all splits of a seed. An object's depth depends on its
    shape alone. Where objects overlap, the one with the higher label is seen.

    Args:
        split, seed, ring_diameter: As in ``FourShapes``, with the same places.
        colors: How many colours there are to draw from, 1 to 5.
        depth: Whether depth is a fourth channel after red, green and blue.
        depth_from_zero: "Equal distances" in [0, 1] read to the letter: the first object lies at
            depth 0, like the background. False leaves out 0.
        hue_offset: Whose the first hue is: "dataset", or "image" for a set of colours of its own
            in every image, which the paper's words may mean as well.

    Example:
        >>> image, instances, _ = ColoredFourShapes("train", colors=5, depth=True)[0]
        >>> image.shape, instances.unique()
        (torch.Size([4, 32, 32]), tensor([-1,  0,  1,  2,  3,  4]))
    """

    def __init__(
        self,
        split: Split,
        *,
        seed: int = 0,
        ring_diameter: RingDiameter = 23,
        colors: int = 5,
        depth: bool = False,
        depth_from_zero: bool = True,
        hue_offset: HueOffset = "dataset",
    ) -> None:
        super().__init__(split, seed=seed, ring_diameter=ring_diameter)
        if colors not in range(1, 6):
            raise InputError(f"colors should be a whole number from 1 to 5, got {colors}.")
        check_hue_offset(hue_offset)
        self.channels = 4 if depth else 3
        self.colors = colors
        self.hue_offset: HueOffset = hue_offset
        self._depths = equal_depths(4, from_zero=depth_from_zero) if depth else np.empty((4, 0))

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        sample = np.asarray(indices)
        scene = self._scene(sample)
        way = self._address(sample[:, None], COLOR + np.arange(1, 5))
        palette = self._hues(self.colors, sample, self.hue_offset)
        chosen = integers(self.colors, *way)
        colors = palette[np.arange(len(palette))[:, None], chosen]
        depths = np.broadcast_to(self._depths, (len(sample), *self._depths.shape))
        image = paint(scene.front, np.concatenate([colors, depths], axis=2))
        return Sample(self._images(image), self._maps(scene.instances()))


def four_stencils(ring_diameter: RingDiameter) -> tuple[np.ndarray, ...]:
    """Square, triangle up, triangle down, ring."""
    if ring_diameter not in (11, 23):
        raise InputError(f"ring_diameter should be 23 or 11, got {ring_diameter}.")
    up = outline(triangle(base=17, height=9))
    return outline(square(13)), up, up[::-1], ring(ring_diameter)
