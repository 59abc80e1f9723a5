"""Shapes of the sizes that SPEC 2 states."""

import numpy as np
import pytest

from rotating_features.data.stencils import diamond, outline, placements, ring, square, triangle

SOLIDS = {
    "square": square(13),
    "triangle": triangle(base=17, height=9),
    "triangle upside down": triangle(base=17, height=9)[::-1],
    "triangle to the left": np.rot90(triangle(base=17, height=9)),
    "diamond": diamond(13),
}


def count(inside, size: int) -> int:
    """Pixels of a grid for which ``inside`` holds of their coordinates."""
    return sum(bool(inside(y, x)) for y in range(size) for x in range(size))


def steps_to_outside(solid: np.ndarray, y: int, x: int) -> int:
    """Steps up, down, left or right from a pixel to the nearest one outside ``solid``."""
    h, w = solid.shape
    return min(
        abs(y - v) + abs(x - u)
        for v in range(-1, h + 1)
        for u in range(-1, w + 1)
        if not (0 <= v < h and 0 <= u < w and solid[v, u])
    )


def test_a_square_has_a_rim_of_3_around_a_core_of_7() -> None:
    rim = outline(square(13))
    assert rim.shape == (13, 13)
    assert not rim[3:10, 3:10].any()
    assert rim.sum() == 13**2 - 7**2


def test_a_triangle_grows_by_one_pixel_on_either_side_in_every_row() -> None:
    solid = triangle(base=17, height=9)
    assert solid.sum(1).tolist() == [1, 3, 5, 7, 9, 11, 13, 15, 17]
    assert (solid == solid[:, ::-1]).all()


@pytest.mark.parametrize("name", SOLIDS)
def test_an_outline_is_what_lies_within_3_steps_of_the_outside(name: str) -> None:
    solid = SOLIDS[name]
    rim = outline(solid)
    for (y, x), drawn in np.ndenumerate(rim):
        assert drawn == (solid[y, x] and steps_to_outside(solid, y, x) <= 3)


@pytest.mark.parametrize("diameter", [11, 19, 23, 39])
def test_a_ring_is_as_wide_as_asked_and_3_thick(diameter: int) -> None:
    middle = (diameter - 1) / 2

    def between(y: int, x: int) -> bool:
        return diameter / 2 - 3 < np.hypot(y - middle, x - middle) <= diameter / 2

    drawn = ring(diameter)
    assert drawn.shape == (diameter, diameter)
    assert drawn.any(0).all()
    assert drawn.any(1).all()
    assert drawn.sum() == count(between, diameter)


@pytest.mark.parametrize("diameter", [11, 19, 23, 39])
def test_a_ring_looks_the_same_from_all_four_sides(diameter: int) -> None:
    drawn = ring(diameter)
    assert (drawn == np.rot90(drawn)).all()
    assert (drawn == drawn.T).all()


def test_placements_are_all_the_ways_inside_and_each_is_whole() -> None:
    stencil = outline(triangle(base=17, height=9))
    table = placements(stencil, side=32).reshape(-1, 32, 32)
    assert len(np.unique(table.reshape(len(table), -1), axis=0)) == (32 - 9 + 1) * (32 - 17 + 1)
    for placed in table:
        rows, cols = np.flatnonzero(placed.any(1)), np.flatnonzero(placed.any(0))
        assert (placed[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1] == stencil).all()


def test_a_stencil_as_large_as_the_image_fits_in_one_way() -> None:
    assert (placements(square(5), side=5) == 1).all()


def test_a_small_triangle_widens_evenly() -> None:
    widths = triangle(base=11, height=11).sum(1).tolist()
    assert widths == [1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11]


@pytest.mark.parametrize("side", [1, 7, 13])
def test_a_diamond_is_a_square_turned_by_45_degrees(side: int) -> None:
    """Turned back, the centres of its pixels lie in the square, and no others do."""
    solid = diamond(side)
    middle = len(solid) // 2

    def in_square(y: int, x: int) -> bool:
        turned = complex(x - middle - 1, y - middle - 1) * np.exp(0.25j * np.pi)
        return max(abs(turned.real), abs(turned.imag)) <= side / 2

    drawn = np.pad(solid, 1)
    assert all(drawn[y, x] == in_square(y, x) for y, x in np.ndindex(drawn.shape))
