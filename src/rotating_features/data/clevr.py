"""CLEVR with masks: rendered scenes of at most six objects, as published by DeepMind."""

import numpy as np

from rotating_features.data.published import Parts, Published, pixels
from rotating_features.data.remote import FILES
from rotating_features.data.tfrecord import Example

HEIGHT, WIDTH = 240, 320
ENTITIES = 11
MOST = 6
SIDE = 128


class Clevr(Published):
    """DeepMind's ``clevr_with_masks_train.tfrecords``, or the paper's npz files of it.

    Scenes are cut to rows 29 to 220 and columns 64 to 255 and shrunk to 128 x 128 by taking single
    pixels (``nearest``). Labels are the numbers of the masks, 0 being the background. As in the
    paper, a scene is used if no mask beyond the sixth shows in it; of these, in the order of the
    file, the first 64 are set aside, the next 320 are for testing, 10,000 for validation, and
    up to 70,000, as many as there are, for training.
    """

    title = "CLEVR"
    name = "clevr"
    npz = "clevr_with_masks"
    remote = FILES["clevr"][0]
    side = SIDE
    parts = Parts(set_aside=64, test=320, val=10_000, train=70_000)

    @classmethod
    def decode(cls, example: Example) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks lie in the file one entity after another, unlike those of Multi-dSprites."""
        masks = pixels(example, "mask", (ENTITIES, HEIGHT, WIDTH))
        rows, columns = nearest(29, 221, SIDE)[:, None], nearest(64, 256, SIDE)
        shown = masks[:, rows, columns] >= 128
        labels = (shown * np.arange(ENTITIES, dtype=np.uint8)[:, None, None]).max(0)
        if labels.max() > MOST:
            return None
        return pixels(example, "image", (HEIGHT, WIDTH, 3))[rows, columns], labels


def nearest(start: int, stop: int, size: int) -> np.ndarray:
    """Which of the pixels ``start`` to ``stop - 1`` stand for each of ``size`` new ones.

    The one in which the centre of the new pixel lies, number ``floor((i + 1/2) * old / size)``, the
    right one of two if it lies between them. From 192 to 128 these are those of Pillow's NEAREST.

    Example:
        >>> nearest(0, 6, 4)
        array([0, 2, 3, 5])
    """
    return start + (2 * np.arange(size) + 1) * (stop - start) // (2 * size)
