"""Masks as strings, in the way that COCO's files have them.

A mask is read column after column, and the lengths of its runs are noted, in turn of zeros and of
ones, zeros first. From the fourth length on, the one two places before is subtracted. Each number
is then cut into chunks of five bits, the lowest first, as many as its sign needs; a sixth bit says
that another chunk follows. A chunk plus 48 is a character.
"""

import numpy as np


def compress(starts: np.ndarray, ends: np.ndarray, size: int) -> str:
    """A mask of ``size`` pixels with ones from each start up to its end, as a string.

    Args:
        starts, ends: Positions (r,), rising and without runs that touch.
        size: Height times width.

    Example:
        >>> compress(np.array([4]), np.array([6]), 9)  # 0 0 0 0 1 1 0 0 0
        '423'
    """
    edges = np.stack([starts, ends], 1).ravel()
    counts = np.diff(edges, prepend=0, append=size)
    if len(counts) > 1 and counts[-1] == 0:  # the last run is of ones: nothing comes after it
        counts = counts[:-1]
    rest = counts.astype(np.int64)
    rest[3:] -= counts[1:-2]
    characters, written = [], []
    more = np.ones(len(rest), dtype=bool)
    while more.any():
        written.append(more)
        chunk, rest = rest & 31, rest >> 5
        more = more & (rest != np.where(chunk & 16, -1, 0))  # its highest bit stands for all others
        characters.append(48 + chunk + 32 * more)
    return np.stack(characters, 1)[np.stack(written, 1)].astype(np.uint8).tobytes().decode("ascii")
