"""Ctrl-C as a request, not as a crash."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):  # noqa: N818 (a request, not an error)
    """The run was asked to stop; it saved its state first."""

    def __init__(self, done: int) -> None:
        super().__init__(f"interrupted after {done} steps")
        self.done = done


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C (or SIGTERM) has come; a second one is a crash."""
    came = False

    def remember(number: int, _: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, remember)
    except ValueError:  # not the main thread: there signals cannot be had
        before = {}
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
