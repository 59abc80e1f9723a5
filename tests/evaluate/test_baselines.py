"""Labels that take no learning."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.evaluate import block_masks, cluster_features, kmeans, one_label


def blocks_by_hand(blocks: int, h: int, w: int) -> list[list[int]]:
    """The paper's words, pixel by pixel."""
    if blocks == 1:
        heights = [1]
    else:
        columns = 2 if blocks < 9 else 3 if blocks <= 15 else 4
        heights = [blocks // columns] * (columns - 1)
        heights.append(blocks - sum(heights))
    picture = []
    for y in range(h):
        row = []
        for x in range(w):
            column = next(j for j in range(len(heights)) if x < (j + 1) * w / len(heights))
            block = next(i for i in range(heights[column]) if y < (i + 1) * h / heights[column])
            row.append(sum(heights[:column]) + block)
        picture.append(row)
    return picture


@given(st.integers(1, 30), st.integers(12, 40), st.integers(4, 40))
def test_blocks_are_those_of_the_papers_words(blocks: int, h: int, w: int) -> None:
    assert block_masks(blocks, (h, w)).tolist() == blocks_by_hand(blocks, h, w)


@given(st.integers(1, 30), st.integers(12, 60), st.integers(4, 60))
def test_there_are_as_many_blocks_as_asked_and_each_is_a_rectangle(blocks, h, w) -> None:
    labels = block_masks(blocks, (h, w))
    assert labels.unique().tolist() == list(range(blocks))
    for label in range(blocks):
        where = labels == label
        assert where.sum() == where.any(0).sum() * where.any(1).sum()


@pytest.mark.parametrize(
    ("blocks", "columns"), [(1, 1), (2, 2), (8, 2), (9, 3), (15, 3), (16, 4), (40, 4)]
)
def test_the_number_of_columns_is_the_papers(blocks: int, columns: int) -> None:
    assert len(block_masks(blocks, (320, 320))[0].unique()) == columns


def test_what_is_left_over_goes_to_the_last_column() -> None:
    labels = block_masks(10, (320, 320))
    assert [len(column.unique()) for column in (labels[:, 0], labels[:, 160], labels[:, -1])] == [
        3,
        3,
        4,
    ]


def test_one_label_is_one_label() -> None:
    assert one_label(2, (3, 4)).unique().tolist() == [0]
    assert one_label(2, (3, 4)).shape == (2, 3, 4)


def test_features_are_clustered_by_direction_or_as_they_are() -> None:
    """Two directions, two lengths: either may tell two clusters apart."""
    x = torch.tensor([[1.0, 0], [9, 0], [0, 1], [0, 1.1]]).T.reshape(1, 2, 2, 2)
    by_direction = cluster_features(x, 2).labels.flatten()
    as_they_are = cluster_features(x, 2, normalise=False).labels.flatten()
    assert (by_direction == by_direction[0]).tolist() == [True, True, False, False]
    assert (as_they_are == as_they_are[1]).tolist() == [False, True, False, False]


def test_features_are_clustered_by_kmeans() -> None:
    x = torch.randn(3, 20, 6, 5)
    wanted = kmeans(x.flatten(2).mT, 4, seed=3).labels.view(3, 6, 5)
    assert torch.equal(cluster_features(x, 4, normalise=False, seed=3).labels, wanted)


def test_a_single_feature_map_is_explained() -> None:
    with pytest.raises(InputError, match=r"\(b, c, h, w\)"):
        cluster_features(torch.randn(20, 6, 5), 2)


@pytest.mark.parametrize(
    ("blocks", "size", "words"),
    [(0, (9, 9), "at least 1 block, got 0"), (10, (3, 9), "10 blocks .* 4 x 3 pixels")],
)
def test_impossible_blocks_are_explained(blocks: int, size, words: str) -> None:
    with pytest.raises(InputError, match=words):
        block_masks(blocks, size)
