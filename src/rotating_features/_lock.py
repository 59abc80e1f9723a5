"""Folders with one writer at a time."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from rotating_features._check import InputError


@contextmanager
def locked(folders: Iterable[Path]) -> Iterator[None]:
    """Keep other processes from writing to these folders until this ends, or we are gone.

    They are made if they are not there. Not where the system has no such locks.
    """
    with ExitStack() as opened:
        for folder in folders:
            _lock(folder, opened)
        yield


def _lock(folder: Path, opened: ExitStack) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if find_spec("fcntl") is None:  # not on Windows
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    opened.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"Another command is writing to {folder}.\n  Wait for it, or choose another folder."
        ) from error
    except OSError:
        pass  # some network drives have none
