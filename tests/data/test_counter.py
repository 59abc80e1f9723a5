"""Random numbers by address: no state, no order, no pattern."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from rotating_features.data.counter import integers, uniform

ADDRESS = st.integers(0, 2**63 - 1)


def assert_spread_evenly(counts: np.ndarray) -> None:
    """A chi-square test that true chance fails once in 5,000 times, on either side."""
    expected = counts.sum() / counts.size
    statistic = ((counts - expected) ** 2 / expected).sum()
    low, high = chi2.ppf([1e-4, 1 - 1e-4], counts.size - 1)
    assert low < statistic < high, "too even or too uneven for chance"


@given(st.lists(ADDRESS, min_size=1, max_size=20), ADDRESS)
def test_a_number_depends_on_its_address_alone(samples: list[int], seed: int) -> None:
    together = uniform(seed, 1, np.array(samples))
    alone = [uniform(seed, 1, sample).item() for sample in samples]
    assert together.tolist() == alone


@given(st.lists(ADDRESS, min_size=1, max_size=4))
def test_numbers_lie_between_0_and_1(address: list[int]) -> None:
    assert 0 <= uniform(*address).item() < 1


@given(st.integers(1, 2**31), ADDRESS)
def test_whole_numbers_lie_below_their_bound(high: int, address: int) -> None:
    assert 0 <= integers(high, address).item() < high


@given(st.integers(-(2**63), -1))
def test_a_negative_seed_is_a_seed_like_any_other(seed: int) -> None:
    assert uniform(seed, 0).item() != uniform(0, 0).item()


def test_the_order_of_an_address_matters() -> None:
    assert uniform(1, 2).item() != uniform(2, 1).item()


def test_addresses_broadcast_like_arrays() -> None:
    table = uniform(0, np.arange(3)[:, None], np.arange(5))
    assert table.shape == (3, 5)
    assert np.unique(table).size == 15


@pytest.mark.parametrize("seed", [0, 1, 2, 1_000_000])
@pytest.mark.parametrize("high", [100, 384, 484])
def test_consecutive_samples_are_spread_evenly(high: int, seed: int) -> None:
    draws = integers(high, seed, 0, np.arange(20_000), 1)
    assert_spread_evenly(np.bincount(draws, minlength=high))


@pytest.mark.parametrize("axis", ["seed", "split", "sample", "which"])
def test_neighbouring_addresses_are_independent(axis: str) -> None:
    """Pairs of draws whose addresses differ by one in one place fill the square evenly."""
    sample = np.arange(20_000)
    address = {"seed": 0, "split": 0, "sample": 2 * sample, "which": 1}
    neighbour = {**address, axis: address[axis] + 1}
    pairs = 10 * integers(10, *address.values()) + integers(10, *neighbour.values())
    assert_spread_evenly(np.bincount(pairs, minlength=100))


def test_numbers_never_change() -> None:
    """Datasets are made of these: another value is another dataset."""
    assert uniform(7, 2, 123, 4).item() == 0.3888799093336387
