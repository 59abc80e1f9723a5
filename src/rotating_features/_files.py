"""Files that are either the old one or the new one, never half of each."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUFFIX = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it takes ``path``'s place at once.

    Killed, out of disk or failed at any moment, ``path`` is what it was before. Where two processes
    may write the same file, they should hold the folder's lock (``_lock.py``).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + SUFFIX)
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
