"""How many pixels of full size may be in memory at once, however many threads read."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

from rotating_features.data.decode import open_file

MOST_PIXELS = 2**27
"""At some 4 bytes each."""
LARGE = 2**24
"""Pixels from which on memory is worth to be given back."""


class Memory:
    """So many pixels may be in memory at once; who wants more than that gets all of it."""

    def __init__(self, pixels: int = MOST_PIXELS) -> None:
        self.most = self.free = pixels
        self.changed = Condition()

    @contextmanager
    def take(self, pixels: int) -> Iterator[None]:
        """Wait until there is room."""
        pixels = min(pixels, self.most)
        with self.changed:
            self.changed.wait_for(lambda: self.free >= pixels)
            self.free -= pixels
        try:
            yield
        finally:
            if pixels >= LARGE:
                return_memory()
            with self.changed:
                self.free += pixels
                self.changed.notify_all()


def count_pixels(path: Path) -> int:
    """As the file's first bytes have it; 1 where they cannot be read."""
    try:
        with open_file(path) as file:
            return file.width * file.height
    except Exception:  # open_image will say what is wrong
        return 1


def return_memory() -> None:
    """Give freed memory back to the system, which not every ``free`` does.

    Every thread keeps its largest image, and a process that trains on a CPU all it ever had.
    """
    if platform.system() == "Linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):  # not in musl
            libc.malloc_trim(0)
