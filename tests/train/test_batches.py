import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotating_features.train.batches import Batches


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
