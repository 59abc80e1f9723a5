"""Shapes as boolean masks, cut to their bounding box."""

import numpy as np

OUTLINE = 3


def square(side: int) -> np.ndarray:
    """A solid square."""
    return np.ones((side, side), dtype=bool)


def triangle(base: int, height: int) -> np.ndarray:
    """A solid isosceles triangle that points up; each row is centred."""
    half = np.floor(np.linspace(0, (base - 1) / 2, height) + 0.5)  # round() steps unevenly
    return np.abs(np.arange(base) - (base - 1) / 2) <= half[:, None]


def diamond(side: int) -> np.ndarray:
    """A solid square of ``side`` turned by 45 degrees: the pixels whose centres it covers."""
    radius = int(side / 2**0.5)
    offset = np.abs(np.arange(-radius, radius + 1))
    return offset + offset[:, None] <= radius


def disk(diameter: int) -> np.ndarray:
    """A solid disk."""
    offset = np.arange(diameter) - (diameter - 1) / 2
    return offset**2 + offset[:, None] ** 2 <= (diameter / 2) ** 2


def outline(solid: np.ndarray, width: int = OUTLINE) -> np.ndarray:
    """The rim of ``solid``: what ``width`` erosions by one pixel in four directions take away."""
    core = np.pad(solid, 1)
    for _ in range(width):
        rows = core & np.roll(core, 1, axis=0) & np.roll(core, -1, axis=0)
        core = rows & np.roll(core, 1, axis=1) & np.roll(core, -1, axis=1)
    return solid & ~core[1:-1, 1:-1]


def ring(diameter: int, width: int = OUTLINE) -> np.ndarray:
    """A disk without its middle."""
    middle = np.pad(disk(diameter - 2 * width), width)
    return disk(diameter) & ~middle


def placements(stencil: np.ndarray, side: int) -> np.ndarray:
    """Every way to put ``stencil`` fully inside a square of ``side``: (ways, side * side) uint8.

    Drawing a thousand images is then a thousand rows of this table.
    """
    h, w = stencil.shape
    tops, lefts = side - h + 1, side - w + 1
    table = np.zeros((tops, lefts, side, side), dtype=np.uint8)
    for top in range(tops):
        for left in range(lefts):
            table[top, left, top : top + h, left : left + w] = stencil
    return table.reshape(tops * lefts, side * side)
