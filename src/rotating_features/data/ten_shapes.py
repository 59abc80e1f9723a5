"""10Shapes: up to ten shapes on black, told apart by form, colour and depth alike."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from rotating_features._check import InputError
from rotating_features.data.four_shapes import RingDiameter, four_stencils
from rotating_features.data.sample import Sample, Split
from rotating_features.data.shapes import (
    LENGTHS,
    HueOffset,
    ShapesDataset,
    check_hue_offset,
    equal_depths,
    paint,
)
from rotating_features.data.stencils import diamond, outline, ring, square, triangle

LARGE_RING = {23: 39, 11: 19}
"""What radius 19 means across, where radius 11 means 23 or 11."""


class TenShapes(ShapesDataset):
    """Ten shapes on black with one colour and one depth each, 48 x 48 RGB-D, drawn on demand.

    In the order of their labels 1 to 10: the square, the triangles up and down and the ring of
    4Shapes; triangles to the left and right, diamond, large ring; solid triangle, solid square.
    A shape covers those before it, so the small solid ones are never hidden from sight.

    Sample ``i`` depends on ``(seed, split, i)`` alone. Hues are evenly spaced from a random one
    that is usually the same for all splits of a seed.

    Args:
        split: ``"train"`` (200,000 images), ``"val"`` or ``"test"`` (10,000 each).
        seed: Another seed is another dataset.
        shapes: The dataset has the first 2 to 10 shapes; colours and depths are spread over them.
        objects: How many of ``shapes`` are in an image, every subset as likely. None is all. A
            shape keeps its label, colour, depth and place whatever is drawn beside it.
        ring_diameter: The paper's rings have radii of 11 and 19, read here to the letter: 23 and
            39 pixels across. 11 draws the smaller reading, 11 and 19 across.
        depth_from_zero: Depths are spread over [0, 1]: the first shape lies at 0, like the
            background. False leaves out 0.
        hue_offset: Whose the first hue is: "dataset", or "image" for other hues in every image.

    Example:
        >>> image, instances, _ = TenShapes("train", objects=6)[0]
        >>> image.shape, instances.unique()
        (torch.Size([4, 48, 48]), tensor([-1,  0,  1,  4,  5,  6,  7,  8]))
    """

    channels: int = 4
    size: tuple[int, int] = (48, 48)
    lengths: ClassVar[dict[Split, int]] = {**LENGTHS, "train": 200_000}

    def __init__(
        self,
        split: Split,
        *,
        seed: int = 0,
        shapes: int = 10,
        objects: int | None = None,
        ring_diameter: RingDiameter = 23,
        depth_from_zero: bool = True,
        hue_offset: HueOffset = "dataset",
    ) -> None:
        if shapes not in range(2, 11):
            raise InputError(f"shapes should be a whole number from 2 to 10, got {shapes}.")
        if objects is not None and objects not in range(2, shapes + 1):
            raise InputError(
                f"objects should be a whole number from 2 to shapes={shapes}, or None for all "
                f"of them, got {objects}."
            )
        check_hue_offset(hue_offset)
        super().__init__(split, seed=seed, stencils=ten_stencils(ring_diameter)[:shapes])
        self.shapes, self.objects = shapes, objects
        self.hue_offset: HueOffset = hue_offset
        self._depths = equal_depths(shapes, from_zero=depth_from_zero)

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        sample = np.asarray(indices)
        present = None if self.objects is None else self._choose(sample, self.objects)
        scene = self._scene(sample, present)
        colors = self._hues(self.shapes, sample, self.hue_offset)
        depths = np.broadcast_to(self._depths, (len(colors), *self._depths.shape))
        image = paint(scene.front, np.concatenate([colors, depths], axis=2))
        return Sample(self._images(image), self._maps(scene.instances()))


def ten_stencils(ring_diameter: RingDiameter) -> tuple[np.ndarray, ...]:
    """The four of 4Shapes, four more outlines, two small solid shapes."""
    four = four_stencils(ring_diameter)
    up = four[1]
    outlines = np.rot90(up), np.rot90(up, -1), outline(diamond(13)), ring(LARGE_RING[ring_diameter])
    return *four, *outlines, triangle(base=11, height=11)[::-1], square(7)
