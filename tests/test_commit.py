import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from rotating_features import _commit


def copied_to(folder: Path) -> ModuleType:
    """The module as part of a package of its own, with one file in a room."""
    (folder / "room").mkdir(parents=True)
    (folder / "room" / "file.py").write_text("one = 1\n")
    path = shutil.copy(str(_commit.__file__), folder)
    spec = importlib.util.spec_from_file_location("copy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_change_in_any_room_shows(tmp_path: Path) -> None:
    module = copied_to(tmp_path / "package")
    for words in ("init", "add .", "-c user.name=a -c user.email=a@b.c commit -m one"):
        subprocess.run(
            ["git", "-C", str(tmp_path), *words.split()], check=True, capture_output=True
        )
    clean = module.commit()
    assert len(clean) == 40
    (tmp_path / "notes.txt").write_text("outside the package")
    module.commit.cache_clear()
    assert module.commit() == clean
    (tmp_path / "package" / "room" / "file.py").write_text("one = 2\n")
    assert module.commit() == clean  # of which the code is that runs
    module.commit.cache_clear()
    assert module.commit() == clean + "+"


def test_another_projects_history_is_not_ours(tmp_path: Path) -> None:
    """As where the package is installed in a virtual environment inside a checkout."""
    subprocess.run(["git", "-C", str(tmp_path), "init"], check=True, capture_output=True)
    (tmp_path / "file").write_text("theirs")
    for words in ("add file", "-c user.name=a -c user.email=a@b.c commit -m one"):
        subprocess.run(
            ["git", "-C", str(tmp_path), *words.split()], check=True, capture_output=True
        )
    assert copied_to(tmp_path / "package").commit() == "unknown"


def test_without_history_a_variable_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    module = copied_to(tmp_path / "package")
    assert module.commit() == "unknown"
    monkeypatch.setenv("ROTATING_FEATURES_COMMIT", "abc")
    module.commit.cache_clear()
    assert module.commit() == "abc"
