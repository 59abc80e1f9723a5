"""Gradients of weights beside the backward pass, not in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor


class Beside:
    """A second stream for gradients of weights, which nothing waits for before the optimiser.

    They then run beside the rest of the backward pass, which moves memory while they multiply.
    Whoever opens ``with beside():`` around the forward pass has to ``join`` after the backward, and
    nothing may look at these gradients before: they are of leaves, used once and without hooks.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.kept: list[Tensor] = []  # what the second stream may still read

    @contextmanager
    def __call__(self) -> Iterator[None]:
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def run(self, f: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """``f`` of ``inputs``, which are ready here; its result is ready after ``join``."""
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            result = f(*inputs)
        self.kept += (*inputs, result)
        return result

    def join(self) -> None:
        """Wait for all that was run."""
        torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
        self.kept.clear()


_current: ContextVar[Beside | None] = ContextVar("beside", default=None)


def current() -> Beside | None:
    """The stream that the caller opened, if any. A backward pass has to remember its forward's."""
    return _current.get()


def run_beside(beside: Beside | None, f: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """``f`` of ``inputs``, on the second stream if there is one."""
    return f(*inputs) if beside is None else beside.run(f, *inputs)
