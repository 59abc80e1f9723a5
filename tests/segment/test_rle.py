"""COCO's strings, against a decoder that knows nothing of ours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rotating_features.segment.rle import compress

PUBLISHED = [  # strings of COCO's own example results, images of 426 x 640
    "mRT41Y=4L5L1N000000000000O100000000000000000001OUPm3",
    "YoX42V=5K3M3N2HE^C=a<72M3N1O1L4L4Khkk3",
    "`UQ62V=2@9[CJc<?00O1000000O10O01OJ6N22N1J7M2N2N2O10000000000001O1O1O`0@;Eihk1",
    "khP52`<3iC=P<FlC;T<>000000O2O00001O]OkC1V<LnC1S<NPD0P<OSDNV<H^kR3",
]


def encode(mask: np.ndarray) -> str:
    """The naive way to the positions that ``compress`` wants."""
    flat = [0, *mask.T.ravel().astype(int), 0]
    starts = [i for i in range(1, len(flat)) if flat[i] > flat[i - 1]]
    ends = [i for i in range(1, len(flat)) if flat[i] < flat[i - 1]]
    return compress(np.array(starts, dtype=int) - 1, np.array(ends, dtype=int) - 1, mask.size)


@given(mask=arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_a_mask_comes_back(decode, mask: np.ndarray) -> None:
    assert decode(encode(mask), *mask.shape).tolist() == mask.tolist()


@given(counts=st.lists(st.integers(1, 10**9), min_size=1, max_size=12), full=st.booleans())
def test_runs_of_any_length_come_back(numbers, counts: list[int], full: bool) -> None:
    counts = [0, *counts] if full else counts
    edges = np.cumsum(counts)
    ends = edges[1::2]
    assert numbers(compress(edges[0::2][: len(ends)], ends, int(edges[-1]))) == counts


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_strings_are_written_the_same(numbers, text: str) -> None:
    edges = np.cumsum(numbers(text))
    assert edges[-1] == 426 * 640
    assert compress(edges[0:-1:2], edges[1::2], 426 * 640) == text


def test_an_empty_mask_is_one_run_of_zeros() -> None:
    """As COCO's tools write it for an image of 1712 x 2006."""
    assert compress(np.array([], dtype=int), np.array([], dtype=int), 1712 * 2006) == "PiiX3"


def test_a_full_mask_starts_with_no_zeros(numbers) -> None:
    assert numbers(compress(np.array([0]), np.array([12]), 12)) == [0, 12]
