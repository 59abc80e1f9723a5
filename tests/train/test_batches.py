import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotating_features.train.batches import DRAW_BITS, INDEX_BITS, Batches


@given(images=st.integers(1, 50), batch=st.integers(1, 50), seed=st.integers(0, 9))
def test_an_epoch_shows_no_image_twice(images: int, batch: int, seed: int) -> None:
    batch = min(batch, images)
    batches = Batches(images, batch_size=batch, seed=seed)
    seen = np.concatenate([batches[step] for step in range(batches.per_epoch)])
    assert len(seen) == batches.per_epoch * batch
    assert len(np.unique(seen)) == len(seen)


def test_a_step_sees_the_same_images_whenever_it_is_asked_for() -> None:
    forward = Batches(20, batch_size=4, seed=1)
    in_order = [forward[step].tolist() for step in range(12)]
    backward = Batches(20, batch_size=4, seed=1)
    assert [backward[step].tolist() for step in reversed(range(12))] == in_order[::-1]


def test_epochs_and_seeds_differ() -> None:
    batches = Batches(50, batch_size=50, seed=0)
    first = batches[0].tolist()
    assert batches[1].tolist() != first
    assert Batches(50, batch_size=50, seed=1)[0].tolist() != first


def test_a_batch_larger_than_the_dataset_is_explained() -> None:
    with pytest.raises(ValueError, match="number of images, 10, got 11"):
        Batches(10, batch_size=11, seed=0)


def split(tickets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of images, and the random bits above them."""
    return tickets % 2**INDEX_BITS, tickets >> INDEX_BITS


@given(images=st.integers(1, 50), batch=st.integers(1, 50), seed=st.integers(0, 9))
def test_tickets_are_for_the_images_there_would_be_without(images, batch, seed) -> None:
    batch = min(batch, images)
    plain = Batches(images, batch_size=batch, seed=seed)
    drawn = Batches(images, batch_size=batch, seed=seed, draws=True)
    for step in range(2 * plain.per_epoch):
        indices, draws = split(drawn[step])
        np.testing.assert_array_equal(indices, plain[step])
        assert drawn[step].dtype == np.int64
        assert (draws >= 0).all()
        assert (draws < 2**DRAW_BITS).all()


def test_an_epoch_of_tickets_has_every_image() -> None:
    batches = Batches(20, batch_size=5, seed=2, draws=True)
    for epoch in range(3):
        tickets = np.concatenate([batches[4 * epoch + i] for i in range(4)])
        assert sorted(split(tickets)[0]) == list(range(20))


def test_tickets_depend_on_the_seed_and_the_step_alone() -> None:
    forward = Batches(20, batch_size=4, seed=1, draws=True)
    in_order = [forward[step].tolist() for step in range(12)]
    backward = Batches(20, batch_size=4, seed=1, draws=True)
    assert [backward[step].tolist() for step in reversed(range(12))] == in_order[::-1]
    assert Batches(20, batch_size=4, seed=2, draws=True)[0].tolist() != in_order[0]


def test_no_draw_comes_twice_and_every_bit_is_as_often_0_as_1() -> None:
    batches = Batches(100, batch_size=100, seed=0, draws=True)
    draws = np.concatenate([split(batches[step])[1] for step in range(40)])
    assert len(np.unique(draws)) == len(draws)
    ones = (draws[:, None] >> np.arange(DRAW_BITS) & 1).mean(0)
    assert (abs(ones - 0.5) < 0.05).all()  # six standard deviations


def test_more_images_than_a_ticket_can_name_are_explained() -> None:
    Batches(2**INDEX_BITS, batch_size=1, seed=0, draws=True)
    with pytest.raises(ValueError, match="at most 1,048,576 images, got 1,048,577"):
        Batches(2**INDEX_BITS + 1, batch_size=1, seed=0, draws=True)
