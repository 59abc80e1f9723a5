"""TFRecord files, plain or GZIP, read without TensorFlow.

A file is a row of records, each a length, the length's checksum, the data and the data's checksum,
all little-endian. The data is a ``tf.train.Example`` in protobuf's wire format: names with lists
of bytes, floats or whole numbers. Every checksum is looked at.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rotating_features._check import InputError
from rotating_features.data.crc32c import masked_crc32c

Example = dict[str, "np.ndarray | list[bytes]"]
"""Features by name. Floats are float32 and whole numbers int64. Bytes are a list; where every value
is one byte, as published images have it, they are an array of uint8."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # protobuf's wire types
_LARGEST = 1 << 30


class _DamageError(Exception):
    """What is wrong with a record; its reader adds which one of which file."""


def read_examples(path: str | Path) -> Iterator[Example]:
    """The examples of ``path``, one after another.

    Raises:
        InputError: The file is not there, ends in the middle, or is damaged. The message has its
            name and the number of the record, counted from 0.
    """
    for number, record in enumerate(read_records(path)):
        try:
            example = parse_example(record)
        except (_DamageError, IndexError, UnicodeDecodeError) as error:
            raise _broken(path, number, f"is not a tf.train.Example ({error})") from error
        yield example


def read_records(path: str | Path) -> Iterator[bytes]:
    """The data of the records of ``path``, checksums compared. Errors as in ``read_examples``."""
    if not Path(path).is_file():
        raise InputError(f"There is no file {path}; a TFRecord file was wanted.")
    number = 0
    with Path(path).open("rb") as raw:
        start = raw.read(12)
        raw.seek(0)
        plain = len(start) == 12 and _length_is_sound(start)
        packed = start[:2] == b"\x1f\x8b" and not plain
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        while True:
            try:
                record = _next_record(file)
            except (_DamageError, EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise _broken(path, number, f"cannot be read: {error}") from error
            if record is None:
                return
            yield record
            number += 1


def parse_example(record: bytes) -> Example:
    """The features of one serialised ``tf.train.Example``."""
    example: Example = {}
    for number, features in _fields(memoryview(record)):
        if number != 1:
            continue
        for _, entry in _fields(_message(features)):
            name, feature = "", memoryview(b"")
            for part, value in _fields(_message(entry)):
                if part == 1:
                    name = str(_message(value), "utf-8")
                elif part == 2:
                    feature = _message(value)
            example[name] = _feature(feature)
    return example


def _next_record(file: BinaryIO | gzip.GzipFile) -> bytes | None:
    header = file.read(12)
    if not header:
        return None
    if len(header) < 12:
        raise _DamageError("the file ends inside its length")
    if not _length_is_sound(header):
        raise _DamageError("the checksum of its length is wrong")
    (length,) = struct.unpack_from("<Q", header)
    if length > _LARGEST:
        raise _DamageError(f"it claims to have {length} bytes")
    rest = file.read(length + 4)
    if len(rest) < length + 4:
        raise _DamageError(f"the file ends after {len(rest)} of its {length + 4} bytes")
    if masked_crc32c(memoryview(rest)[:length]) != int.from_bytes(rest[length:], "little"):
        raise _DamageError("the checksum of its data is wrong")
    return rest[:length]


def _length_is_sound(header: bytes) -> bool:
    return masked_crc32c(header[:8]) == int.from_bytes(header[8:12], "little")


def _feature(data: memoryview) -> np.ndarray | list[bytes]:
    """A list of bytes, floats or whole numbers; empty where nothing is stored."""
    for kind, value in _fields(data):
        if kind == 1:
            return _bytes(_message(value))
        if kind == 2:
            return _floats(_message(value))
        if kind == 3:
            return _integers(_message(value))
    return []


def _bytes(data: memoryview) -> np.ndarray | list[bytes]:
    if data and len(data) % 3 == 0:  # a million values of one byte each take a while in a loop
        triples = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3)
        if (triples[:, 0] == (1 << 3 | _BYTES)).all() and (triples[:, 1] == 1).all():
            return triples[:, 2].copy()
    return [bytes(_message(value)) for number, value in _fields(data) if number == 1]


def _floats(data: memoryview) -> np.ndarray:
    """Packed (one run of numbers) or not (a key before each)."""
    parts = []
    for number, value in _fields(data):
        if number == 1:
            part = _message(value)
            if len(part) % 4:
                raise _DamageError(f"{len(part)} bytes of float32")
            parts.append(part)
    return np.frombuffer(b"".join(parts), dtype="<f4").astype(np.float32)


def _integers(data: memoryview) -> np.ndarray:
    numbers: list[int] = []
    for number, value in _fields(data):
        if number == 1 and isinstance(value, int):
            numbers.append(value)
        elif number == 1:
            place, packed = 0, _message(value)
            while place < len(packed):
                one, place = _varint(packed, place)
                numbers.append(one)
    return np.array(numbers, dtype=np.uint64).view(np.int64)  # two's complement


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of every field: an int for a varint, what it stores for all others."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, place = _varint(data, place)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise _DamageError(f"field of unknown type {kind}")
        if place + length > len(data):
            raise _DamageError(f"a field of {length} bytes where {len(data) - place} are left")
        yield key >> 3, data[place : place + length]
        place += length


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """The number at ``place``, seven bits a byte, lowest first, and the place after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place
        if shift > 63:
            raise _DamageError("a number of more than 64 bits")


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _DamageError("a number where text, bytes or a list was wanted")
    return value


def _broken(path: str | Path, number: int, how: str) -> InputError:
    return InputError(
        f"Record {number} of {path} {how}.\n"
        "  The file is damaged or not whole: remove it and fetch it again."
    )
