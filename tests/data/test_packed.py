"""Crops cut on the device are those one would cut by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.packed import Packed
from rotating_features.data.workers import Problem

SIDE = 6
SIZES = [(6, 6), (6, 9), (11, 6), (6, 90), (70, 6)]


def make(sizes: list[tuple[int, int]] = SIZES, side: int = SIDE) -> tuple[Packed, list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    images = [
        torch.randint(256, (3, *size), dtype=torch.uint8, generator=generator) for size in sizes
    ]
    heights, widths = torch.tensor(sizes).T.contiguous().unbind()
    pixels = torch.cat([image.permute(1, 2, 0).reshape(-1, 3) for image in images])
    names = [f"photo {i}" for i in range(len(images))]
    problems = [Problem("bad", "bad is broken")]
    return Packed(pixels, heights, widths, names, side=side, problems=problems), images


def draw(row: float, column: float, *, flip: int = 0, turn: int = 0, right: int = 0) -> int:
    """The bits of a crop whose corner lies at these fractions of what is possible."""
    return flip | turn << 1 | right << 2 | int(row * 2**20) << 3 | int(column * 2**20) << 23


def test_whole_photographs_come_back() -> None:
    packed, images = make()
    assert len(packed) == len(images)
    assert packed.name(3) == "photo 3"
    assert all(torch.equal(packed.image(i), image) for i, image in enumerate(images))


@given(
    st.lists(st.integers(0, len(SIZES) - 1), min_size=1, max_size=6),
    st.integers(1, SIDE),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_a_crop_is_a_slice_flipped_then_turned(
    chosen: list[int], size: int, flip: bool, turns: bool, data: st.DataObject
) -> None:
    packed, images = make()
    unit = st.floats(0, 1, exclude_max=True)
    bit = st.integers(0, 1)
    wanted, draws = [], []
    for index in chosen:
        (h, w), row, column = SIZES[index], data.draw(unit), data.draw(unit)
        flipped, turned, right = (data.draw(bit) for _ in range(3))
        draws.append(draw(row, column, flip=flipped, turn=turned, right=right))
        row, column = (int(x * 2**20) / 2**20 for x in (row, column))
        top, left = int(row * (h - size + 1)), int(column * (w - size + 1))
        crop = images[index][:, top : top + size, left : left + size]
        if flip and flipped:
            crop = crop.flip(2)
        if turns and turned:
            crop = crop.rot90(-1 if right else 1, (1, 2))
        wanted.append(crop)
    crops = packed.crops(
        torch.tensor(chosen), torch.tensor(draws), size, flip=flip, quarter_turns=turns
    )
    assert torch.equal(crops, torch.stack(wanted))


def test_the_sign_of_a_draw_does_not_matter() -> None:
    packed, _ = make()
    indices, draws = torch.randint(5, (200,)), torch.randint(-(2**63), 2**63 - 1, (200,))
    ours = packed.crops(indices, draws, 4, quarter_turns=True)
    assert torch.equal(ours, packed.crops(indices, draws & (2**63 - 1), 4, quarter_turns=True))


def test_the_same_draw_gives_the_same_crop_in_any_batch() -> None:
    packed, _ = make()
    indices, draws = torch.randint(5, (8,)), torch.randint(2**63 - 1, (8,))
    together = packed.crops(indices, draws, 5)
    alone = [packed.crops(indices[i : i + 1], draws[i : i + 1], 5) for i in range(8)]
    assert torch.equal(together, torch.cat(alone))


def test_every_position_is_as_likely_as_any_other() -> None:
    """4 x 7 positions, each mirrored or not, turned to the left, right or not at all."""
    h, w, size, n = 6, 9, 3, 60_000
    number = torch.arange(h * w)
    pixels = torch.stack([number, number, number], dim=1).to(torch.uint8)
    packed = Packed(pixels, torch.tensor([h]), torch.tensor([w]), ["one"], side=6)
    draws = torch.randint(2**63 - 1, (n,))
    crops = packed.crops(torch.zeros(n, dtype=torch.int64), draws, size, quarter_turns=True)
    corners = crops[:, 0, [0, 0, -1, -1], [0, -1, 0, -1]].long()
    kinds, counts = corners.unique(dim=0, return_counts=True)
    assert len(kinds) == 4 * 7 * 6
    straight = (corners[:, 0] - corners[:, 1]).abs() == size - 1
    positions = corners.amin(1).bincount(minlength=h * w)
    positions = positions[positions > 0] / n * 28
    assert len(positions) == 28
    assert (positions - 1).abs().max() < 0.1  # five standard deviations
    assert abs(straight.float().mean() - 0.5) < 0.01
    assert counts.min() > 0.7 * n / 28 / 8


def test_a_photograph_of_the_size_of_the_crop_is_the_crop() -> None:
    packed, images = make()
    zeros, draws = torch.zeros(20, dtype=torch.int64), torch.randint(2**63 - 1, (20,))
    crops = packed.crops(zeros, draws, SIDE, flip=False)
    assert all(torch.equal(crop, images[0]) for crop in crops)


def test_no_step_waits_for_a_number() -> None:
    """Tensors without values can be indexed only if nobody looks at values."""
    packed, _ = make()
    indices, draws = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    there = packed.to("meta")
    crops = there.crops(indices.to("meta"), draws.to("meta"), 5, quarter_turns=True)
    assert crops.shape == (4, 3, 5, 5)


@pytest.mark.gpu
def test_a_cuda_graph_cuts_the_same_crops() -> None:
    packed, _ = make()
    there = packed.to("cuda")
    indices, draws = torch.randint(5, (2, 64)), torch.randint(2**63 - 1, (2, 64))
    i, d = indices[0].cuda(), draws[0].cuda()
    there.crops(i, d, 5, quarter_turns=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        crops = there.crops(i, d, 5, quarter_turns=True)
    i.copy_(indices[1])
    d.copy_(draws[1])
    graph.replay()
    assert torch.equal(crops.cpu(), packed.crops(indices[1], draws[1], 5, quarter_turns=True))


@pytest.mark.parametrize("size", [0, SIDE + 1])
def test_a_crop_that_does_not_fit_is_explained(size: int) -> None:
    packed, _ = make()
    one = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(InputError, match=f"should be of 1 to 6 pixels.*got {size}"):
        packed.crops(one, one, size)


def test_an_index_outside_is_refused() -> None:
    packed, _ = make()
    one = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(IndexError):
        packed.crops(one + 5, one, 3)
