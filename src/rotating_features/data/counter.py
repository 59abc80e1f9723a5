"""Random numbers that depend on their address alone.

A draw is a hash of ``(seed, split, sample, which)``: no state, no order. Any sample can be drawn
on any machine, in any worker, alone or among thousands, and is the same.
"""

import numpy as np

_STRIDE = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: consecutive counters land far apart


def uniform(*address: int | np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), one for each element of the broadcast ``address``.

    Example:
        >>> uniform(0, 1, np.arange(3)).round(3)
        array([0.269, 0.275, 0.367])
    """
    key = np.zeros(1, dtype=np.uint64)
    for part in address:
        key = _mix(key ^ np.asarray(part).astype(np.uint64))
    return (key >> np.uint64(11)) * 2.0**-53


def integers(high: int, *address: int | np.ndarray) -> np.ndarray:
    """Whole numbers in [0, high), one for each element of the broadcast ``address``."""
    return (uniform(*address) * high).astype(np.int64)


def _mix(key: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele et al., 2014): every input bit moves every output bit."""
    key = key + _STRIDE
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
