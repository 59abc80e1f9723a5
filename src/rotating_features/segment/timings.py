"""Where the time goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Literal

import torch

Stage = Literal["decode", "model", "cluster", "write"]


class Timings:
    """Seconds spent in each stage, summed over threads, so they may exceed those on the clock.

    Attributes:
        seconds: By stage: reading files, the model with all that comes before clustering,
            clustering, and making and writing masks.
        images: How many were segmented.
    """

    def __init__(self) -> None:
        self.seconds: dict[Stage, float] = {"decode": 0, "model": 0, "cluster": 0, "write": 0}
        self.images = 0
        self._lock = Lock()

    @contextmanager
    def spent(self, stage: Stage, device: torch.device | None = None) -> Iterator[None]:
        """Count what happens in here; a GPU is waited for."""
        start = time.perf_counter()
        try:
            yield
        finally:
            if device is not None and device.type == "cuda":
                torch.cuda.synchronize(device)
            with self._lock:
                self.seconds[stage] += time.perf_counter() - start
