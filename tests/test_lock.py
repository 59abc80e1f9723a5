"""Folders with one writer at a time."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from rotating_features._check import InputError
from rotating_features._lock import locked

pytestmark = pytest.mark.skipif(find_spec("fcntl") is None, reason="a system without such locks")


def test_a_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    a, b = tmp_path / "new" / "a", tmp_path / "b"
    with locked([a, b]):
        for folder in (a, b):
            with pytest.raises(InputError, match=f"Another command is writing to {folder}"):
                locked([folder]).__enter__()
    with pytest.raises(ZeroDivisionError), locked([a]):
        raise ZeroDivisionError
    with locked([b, a]):
        pass


def test_who_is_refused_one_folder_keeps_none(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with locked([b]), pytest.raises(InputError, match="is writing to"):
        locked([a, b]).__enter__()
    with locked([a]):
        pass
