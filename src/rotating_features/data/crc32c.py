"""CRC32C, the checksum inside TFRecord files and of Google's storage, in NumPy.

A checksum is linear: a byte adds to it what depends on its value and on its distance from the end
alone. So the bytes of a block look up their shares in one table, all at once, and only blocks
follow each other in a Python loop.
"""

from functools import cache

import numpy as np

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, lowest bit first
_BLOCK = 512
_ROWS = 256  # blocks looked up at a time, so that their places fit the processor's cache


def crc32c(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The checksum of what had checksum ``before``, followed by ``data``.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
        >>> hex(crc32c(b"6789", before=crc32c(b"12345")))
        '0xe3069283'
    """
    shares = _shares()
    array = np.frombuffer(data, dtype=np.uint8)
    head = len(array) % _BLOCK
    state = _append(before ^ 0xFFFFFFFF, array[:head], shares)
    blocks = array[head:].reshape(-1, _BLOCK)
    far = [row.tolist() for row in shares[_BLOCK - 4 :]]  # of the state, seen across one block
    for start in range(0, len(blocks), _ROWS):
        for share in _fold(blocks[start : start + _ROWS], shares).tolist():
            state = (
                share
                ^ far[3][state & 0xFF]
                ^ far[2][state >> 8 & 0xFF]
                ^ far[1][state >> 16 & 0xFF]
                ^ far[0][state >> 24]
            )
    return state ^ 0xFFFFFFFF


def masked_crc32c(data: bytes | bytearray | memoryview) -> int:
    """The checksum as TFRecord files store it: turned and shifted."""
    plain = crc32c(data)
    return ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _append(state: int, array: np.ndarray, shares: np.ndarray) -> int:
    """``state`` after a few more bytes; the state itself is added to the first four."""
    if len(array) < 4:
        for byte in array.tolist():
            state = int(shares[0, (state ^ byte) & 0xFF]) ^ state >> 8
        return state
    start = np.frombuffer(state.to_bytes(4, "little"), dtype=np.uint8)
    array = np.concatenate([array[:4] ^ start, array[4:]])
    return int(_fold(array[None], shares)[0])


def _fold(blocks: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The sum of the shares of every block: (blocks, bytes) uint8 -> (blocks,) uint32."""
    length = blocks.shape[1]
    places = np.arange(length - 1, -1, -1) * 256
    found = shares.reshape(-1).take(blocks + places, mode="clip")  # inside anyway; clip is fastest
    return np.bitwise_xor.reduce(found, axis=1)


@cache
def _shares() -> np.ndarray:
    """What byte ``b`` adds if ``k`` bytes follow it: (k, b) uint32."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    rows = [table]
    for _ in range(_BLOCK - 1):
        rows.append(table[rows[-1] & 0xFF] ^ rows[-1] >> 8)
    return np.stack(rows)
