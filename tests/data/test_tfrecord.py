"""TFRecord files: what was written is read, and what is damaged is named."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.data.tfrecord import parse_example, read_examples, read_records

FLOATS = st.lists(st.floats(width=32, allow_nan=False), max_size=5).map(
    lambda values: np.array(values, dtype=np.float32)
)
WHOLE = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5).map(
    lambda values: np.array(values, dtype=np.int64)
)
BYTES = st.lists(st.binary(max_size=300), max_size=5)
EXAMPLES = st.dictionaries(st.text(max_size=5), st.one_of(FLOATS, WHOLE, BYTES), max_size=4)


def as_read(values):
    """Bytes of length one come back as numbers; all else as it was."""
    if isinstance(values, list) and values and all(len(value) == 1 for value in values):
        return np.frombuffer(b"".join(values), dtype=np.uint8)
    return values


@given(EXAMPLES, st.booleans())
def test_what_was_written_is_read(records, features, packed: bool) -> None:
    read = parse_example(records.example(features, packed=packed))
    assert read.keys() == features.keys()
    for name, values in features.items():
        wanted, got = as_read(values), read[name]
        if isinstance(wanted, list):
            assert got == wanted
        else:
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == wanted.dtype


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_records_come_in_order(records, tmp_path_factory, data: list[bytes], zipped: bool) -> None:
    path = tmp_path_factory.mktemp("order") / "a.tfrecords"
    assert list(read_records(records.write(path, data, zipped=zipped))) == data


def test_a_plain_file_that_begins_like_gzip_is_plain(records, tmp_path: Path) -> None:
    """The first two bytes of GZIP are also those of a record of 35,615 bytes."""
    data = bytes(0x8B1F)
    path = records.write(tmp_path / "a.tfrecords", [data], zipped=False)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert list(read_records(path)) == [data]


def test_fields_of_other_kinds_are_passed_over(records) -> None:
    """A later version of a format may add some."""
    strange = b"\x78\x05" + b"\x7d1234" + b"\x7912345678"  # varint, 4 bytes, 8 bytes
    data = strange + records.example({"a": [b"xy"]}) + strange
    assert parse_example(data) == {"a": [b"xy"]}


def test_a_feature_without_values_is_empty(records) -> None:
    entry = records.field(1, b"none") + records.field(2, b"")
    assert parse_example(records.field(1, records.field(1, entry))) == {"none": []}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*gone\.tfrecords"):
        list(read_examples(tmp_path / "gone.tfrecords"))


THREE = [{"n": np.array([i])} for i in range(3)]


def test_a_file_cut_anywhere_gives_whole_records_and_then_says_so(records, tmp_path: Path) -> None:
    path = records.write(tmp_path / "a.tfrecords", map(records.example, THREE), zipped=False)
    whole = path.read_bytes()
    each = len(whole) // 3
    for cut in set(range(len(whole))) - {0, each, 2 * each}:  # there, it is only shorter
        path.write_bytes(whole[:cut])
        examples = read_examples(path)
        for number in range(cut // each):
            assert next(examples)["n"] == [number]
        with pytest.raises(InputError, match=rf"Record {cut // each} of .*a\.tfrecords cannot"):
            next(examples)


def test_a_gzip_file_cut_anywhere_says_so(records, tmp_path: Path) -> None:
    path = records.write(tmp_path / "a.tfrecords", map(records.example, THREE))
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"Record \d of .*a\.tfrecords cannot be read"):
            list(read_examples(path))


def test_any_damaged_byte_is_found(records, tmp_path: Path) -> None:
    path = records.write(tmp_path / "a.tfrecords", map(records.example, THREE), zipped=False)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        number = place // (len(whole) // 3)
        with pytest.raises(InputError, match=rf"Record {number} of .*a\.tfrecords cannot"):
            list(read_examples(path))


def test_damage_inside_gzip_is_found(records, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecords"
    content = bytearray(b"".join(records.frame(records.example(item)) for item in THREE))
    content[-6] ^= 1  # in the data of the last record
    path.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match=r"Record 2 .* the checksum of its data is wrong"):
        list(read_examples(path))


@given(data=st.binary(max_size=40))
def test_nonsense_with_right_checksums_is_no_example(records, tmp_path_factory, data) -> None:
    """Any bytes either parse or are refused by name; nothing else escapes."""
    path = records.write(tmp_path_factory.mktemp("nonsense") / "a.tfrecords", [data])
    told = None
    try:
        list(read_examples(path))
    except InputError as error:
        told = str(error)
    assert told is None or "Record 0 of" in told


def test_an_impossible_length_is_not_asked_of_the_memory(records, tmp_path: Path) -> None:
    length = struct.pack("<Q", 2**50)
    path = tmp_path / "a.tfrecords"
    path.write_bytes(length + struct.pack("<I", records.masked(length)))
    with pytest.raises(InputError, match=r"Record 0 .* claims to have 1125899906842624 bytes"):
        list(read_records(path))
