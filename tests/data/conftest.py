"""Writing files as others publish them, straight from the description of the format."""

import gzip
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from rotating_features.data.crc32c import masked_crc32c


@pytest.fixture(scope="session")
def records() -> ModuleType:
    """The functions below."""
    return sys.modules[__name__]


def slow_crc32c(data: bytes) -> int:
    """Bit by bit, as the polynomial has it."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = slow_crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values: list[bytes] | np.ndarray, *, packed: bool = True) -> bytes:
    """A ``tf.train.Feature``; of uint8, a value of one byte for every number, as published."""
    if isinstance(values, list):
        return field(1, b"".join(field(1, value) for value in values))
    if values.dtype == np.uint8:
        flat = values.reshape(-1)
        triples = np.stack([np.full_like(flat, 0x0A), np.full_like(flat, 1), flat], axis=1)
        return field(1, triples.tobytes())
    if values.dtype.kind == "f":
        kind, key, numbers = 2, b"\x0d", [struct.pack("<f", value) for value in values]
    else:
        kind, key, numbers = 3, b"\x08", [varint(int(value)) for value in values]
    if packed:
        return field(kind, field(1, b"".join(numbers)))
    return field(kind, b"".join(key + number for number in numbers))


def example(features: Mapping[str, list[bytes] | np.ndarray], *, packed: bool = True) -> bytes:
    entries = (
        field(1, field(1, name.encode()) + field(2, feature(values, packed=packed)))
        for name, values in features.items()
    )
    return field(1, b"".join(entries))


def frame(data: bytes, check: Callable[[bytes], int] = masked) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join(
        [length, struct.pack("<I", masked(length)), data, struct.pack("<I", check(data))]
    )


def write(path: Path, examples: Iterable[bytes], *, zipped: bool = True) -> Path:
    """A file of whole records; the bits of large ones would take seconds, one by one."""
    content = b"".join(
        frame(data, masked if len(data) < 10_000 else masked_crc32c) for data in examples
    )
    path.write_bytes(gzip.compress(content, 1) if zipped else content)
    return path


@pytest.fixture
def voc(tmp_path: Path) -> Path:
    """A folder in the layout of Pascal VOC: 2 photographs of train, 2 of val, 1 of SBD alone."""
    root = tmp_path / "VOCdevkit" / "VOC2012"
    rng = np.random.default_rng(0)
    lists = {"train": ["a1", "a2"], "val": ["b1", "b2"], "trainaug": ["a1", "a2", "c1"]}
    for name in ("a1", "a2", "b1", "b2", "c1"):
        h, w = rng.integers(20, 40, 2)
        write_photograph(root / "JPEGImages" / f"{name}.jpg", h, w)
        if name != "c1":
            objects = np.zeros((h, w), dtype=np.uint8)
            objects[2:9, 3:12], objects[10:15, 4:16] = 1, 2
            objects[2, 3:12] = 255
            write_mask(root / "SegmentationObject" / f"{name}.png", objects)
            kinds = np.array([0, 15, 20], dtype=np.uint8)[objects % 255]
            kinds[objects == 255] = 255
            write_mask(root / "SegmentationClass" / f"{name}.png", kinds)
    folder = root / "ImageSets" / "Segmentation"
    folder.mkdir(parents=True)
    for name, listed in lists.items():
        (folder / f"{name}.txt").write_text("\n".join(listed))
    return tmp_path


def write_photograph(path: Path, h: int, w: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng([h, w]).integers(256, size=(h, w, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)


def write_mask(path: Path, labels: np.ndarray) -> None:
    """With a palette, as VOC has them: colours are nowhere near the labels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = Image.fromarray(labels).convert("P")
    mask.putdata(labels.flatten().tolist())
    mask.putpalette(np.random.default_rng(0).integers(256, size=768).tolist())
    mask.save(path)
