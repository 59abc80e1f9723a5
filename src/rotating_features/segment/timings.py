"""Where the time goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Literal, get_args

import torch

Stage = Literal["decode", "backbone", "model", "cluster", "write", "report"]
STAGES: tuple[Stage, ...] = get_args(Stage)


class Timings:
    """Seconds spent in each stage, summed over threads, so they may exceed those on the clock.

    Attributes:
        seconds: By stage: reading files, the backbone if there is one, the model with all that
            comes between it and clustering, clustering, making and writing masks, and what is
            written of all images at the end.
        images: How many were segmented.
    """

    def __init__(self) -> None:
        self.seconds: dict[Stage, float] = dict.fromkeys(STAGES, 0.0)
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
