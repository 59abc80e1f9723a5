"""A small model, and pictures that differ."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rotating_features.models import RotatingAutoEncoder


@pytest.fixture
def model() -> RotatingAutoEncoder:
    return RotatingAutoEncoder(channels=3, size=(32, 32), hidden_dim=4, rotation_dim=3).eval()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of eleven pictures of different sizes, one of them in a folder inside."""
    folder = tmp_path / "photos"
    (folder / "inner").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(11):
        coarse = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((30 + 7 * i, 80 - 5 * i))
        picture.save(folder / ("inner" if i == 6 else "") / f"{i:02}.{'jpg' if i % 2 else 'png'}")
    return folder


def read_runs(text: str) -> list[int]:
    """Run lengths, one character at a time."""
    counts: list[int] = []
    value = shift = 0
    for character in text:
        code = ord(character) - 48
        value |= (code & 0x1F) << shift
        shift += 5
        if not code & 0x20:
            if code & 0x10:
                value -= 1 << shift
            counts.append(value + (counts[-2] if len(counts) > 2 else 0))
            value = shift = 0
    return counts


def read_mask(text: str, h: int, w: int) -> np.ndarray:
    flat: list[int] = []
    for i, count in enumerate(read_runs(text)):
        assert count >= 0
        flat += [i % 2] * count
    assert len(flat) == h * w
    return np.array(flat).reshape(w, h).T


@pytest.fixture(scope="session")
def numbers() -> Callable[[str], list[int]]:
    """Run lengths of COCO's strings, by a decoder that knows nothing of ours."""
    return read_runs


@pytest.fixture(scope="session")
def decode() -> Callable[[str, int, int], np.ndarray]:
    """Masks of COCO's strings."""
    return read_mask
