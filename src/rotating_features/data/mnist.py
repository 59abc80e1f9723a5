"""Handwritten digits, read from the four files in which MNIST was published."""

import gzip
import math
from pathlib import Path
from typing import Literal

import numpy as np

from rotating_features._check import InputError
from rotating_features.data.remote import missing

FOLDER = Path("data/mnist")
"""Where the files are looked for unless a folder is given."""

LENGTHS = {"train": 60_000, "t10k": 10_000}
FILES = tuple(
    f"{part}-{kind}-ubyte.gz" for part in LENGTHS for kind in ("images-idx3", "labels-idx1")
)


def read_mnist(
    part: Literal["train", "t10k"], folder: str | Path | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Digits, (N, 28, 28) uint8, and what they are, (N,) uint8.

    Args:
        part: The 60,000 digits to train on, or the 10,000 to test on.
        folder: Where the four files lie; ``data/mnist`` by default.
    """
    folder = (FOLDER if folder is None else Path(folder)).absolute()
    count = LENGTHS[part]
    images = _read_idx(folder / f"{part}-images-idx3-ubyte.gz", (count, 28, 28))
    labels = _read_idx(folder / f"{part}-labels-idx1-ubyte.gz", (count,))
    if (highest := labels.max()) > 9:
        raise InputError(
            f"Labels of MNIST should be 0 to 9, but there is a {highest} in "
            f"{part}-labels-idx1-ubyte.gz in the folder {folder}.\n  {_advice(folder)}"
        )
    return images, labels


def _read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Bytes after a header: 0, 0, 8 for "bytes", the number of axes, their big-endian sizes."""
    where = f"{path.name} in the folder {path.parent}"
    if not path.is_file():
        raise missing("MNIST", "mnist", path.parent, fetched_as="mnist1shape")
    try:
        content = gzip.decompress(path.read_bytes())
    except Exception as error:  # a damaged file fails in gzip, zlib or struct
        raise InputError(f"{where} could not be read: {error}\n  {_advice(path.parent)}") from error
    header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
    if not content.startswith(header) or len(content) != len(header) + math.prod(shape):
        wanted = " x ".join(map(str, shape))
        raise InputError(
            f"{where} should unpack to an idx file of {wanted} bytes after a header of "
            f"{len(header)}, but its {len(content)} bytes are something else.\n"
            f"  {_advice(path.parent)}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=len(header)).reshape(shape)


def _advice(folder: Path) -> str:
    return f"Put the four original files of MNIST into {folder}: {', '.join(FILES)}."
