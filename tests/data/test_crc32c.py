"""CRC32C, compared with published values and with the definition, bit by bit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotating_features.data.crc32c import crc32c, masked_crc32c

KNOWN = {
    b"": 0x00000000,
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
}
"""The check value of the polynomial, and those of RFC 3720, B.4."""


@pytest.mark.parametrize("data", KNOWN)
def test_known_values(data: bytes) -> None:
    assert crc32c(data) == KNOWN[data]


@given(st.binary(max_size=40))
def test_short_data_agrees_with_the_definition(records, data: bytes) -> None:
    assert crc32c(data) == records.slow_crc32c(data)


@pytest.mark.parametrize("length", [511, 512, 513, 515, 1_024, 256 * 512, 140_001])
def test_long_data_agrees_with_the_definition(records, length: int) -> None:
    data = bytes((7 * i * i + i // 11) % 256 for i in range(length))
    assert crc32c(data) == records.slow_crc32c(data)


@given(st.binary(max_size=3_000), st.integers(0, 3_000))
def test_data_may_come_in_two_parts(data: bytes, cut: int) -> None:
    assert crc32c(data[cut:], before=crc32c(data[:cut])) == crc32c(data)


def test_the_masked_checksum_is_turned_and_shifted() -> None:
    """Of nothing it is the constant; of the rest, the mask can be taken off again."""
    assert masked_crc32c(b"") == 0xA282EAD8
    turned = (masked_crc32c(b"123456789") - 0xA282EAD8) % 2**32
    assert (turned << 15 | turned >> 17) % 2**32 == 0xE3069283
