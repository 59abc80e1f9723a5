"""Files that are either the old one or the new one."""

from pathlib import Path

import pytest

from rotating_features._files import replacing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"old")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_half(path: Path, error: type[BaseException]) -> None:
    with replacing(path) as partial:
        partial.write_bytes(b"ne")
        raise error


def test_success_replaces_the_file_and_leaves_nothing_else(path: Path) -> None:
    with replacing(path) as partial:
        partial.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["weights.bin"]


def test_until_the_end_the_file_is_the_old_one(path: Path) -> None:
    with replacing(path) as partial:
        partial.write_bytes(b"new")
        assert path.read_bytes() == b"old"


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "new.txt"
    with replacing(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt, SystemExit])
def test_any_failure_leaves_the_old_file(path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        write_half(path, error)
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["weights.bin"]


def test_a_failure_before_the_first_byte_leaves_the_old_file(path: Path) -> None:
    with pytest.raises(RuntimeError), replacing(path):
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["weights.bin"]


def test_writing_nothing_is_an_error_and_leaves_the_old_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_bytes() == b"old"


def test_a_failure_of_the_last_step_leaves_the_old_file(path: Path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError), replacing(path) as partial:
        partial.write_bytes(b"new")
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["weights.bin"]


def test_what_a_killed_writer_left_behind_is_no_obstacle(path: Path) -> None:
    path.with_name(path.name + ".partial").write_bytes(b"half of something longer")
    with replacing(path) as partial:
        partial.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["weights.bin"]


def test_the_new_file_is_on_the_disk_before_it_takes_the_place(path: Path, monkeypatch) -> None:
    """A crash of the machine right after must not leave an empty file."""
    calls = []
    monkeypatch.setattr("os.fsync", lambda _: calls.append("fsync"))
    monkeypatch.setattr(Path, "replace", lambda *_: calls.append("replace"))
    with replacing(path) as partial:
        partial.write_bytes(b"new")
    assert calls == ["fsync", "replace"]
