"""Ellipses, hearts and squares, in every size and turned every way, as one table of masks."""

from functools import cache

import numpy as np

SHAPES = ("ellipse", "heart", "square")
RADII = (7.45, 8.94, 10.43, 11.92, 13.41, 14.9)
"""Of the circle around a sprite: dSprites' six scales, from a half to one. The largest is no whole
number, so that no pixel lies on a rim, where machines might differ in the last bit."""

TURNS = 40
REACH = 14
"""Pixels from the middle of a mask to its rim."""


@cache
def sprites() -> np.ndarray:
    """Masks by shape, radius and turn: (shapes, radii, turns, (2 * REACH + 1) ** 2) bool.

    A pixel is inside if its centre is. The middle of a sprite is the centre of a pixel.
    """
    offset = np.arange(-REACH, REACH + 1)
    down, right = np.meshgrid(offset, offset, indexing="ij")
    angle = np.arange(TURNS)[:, None, None] * (2 * np.pi / TURNS)
    x = np.cos(angle) * right - np.sin(angle) * down
    y = np.sin(angle) * right + np.cos(angle) * down
    radius = np.array(RADII)[:, None, None, None]
    x, y = x / radius, -y / radius  # up is positive, and a sprite reaches to 1
    masks = np.stack([_ellipse(x, y), _heart(x, y), _square(x, y)])
    return masks.reshape(*masks.shape[:3], -1)


def _ellipse(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x**2 + (y / 0.6) ** 2 <= 1


def _heart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A disk whose columns are lifted the more, the further they are from the middle."""
    x, y = 1.31 * x, 1.31 * y + 0.3  # what it reaches then is the circle of radius 1
    return x**2 + (y - 0.8 * np.sqrt(np.abs(x))) ** 2 <= 1


def _square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(x), np.abs(y)) <= 0.5**0.5
