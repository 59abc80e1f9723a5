"""Measuring: medians and spread, peak memory, and rows that say where they come from."""

import csv
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from rotating_features.experiments.report import commit
from rotating_features.train.machine import describe

RESULTS = Path(__file__).parent / "results"


class Timing(NamedTuple):
    """Milliseconds of one call, and the process's peak memory."""

    median_ms: float
    low_ms: float  # first quartile
    high_ms: float  # third quartile
    peak_mb: float


def measure(call: Callable[[], object], *, warmup: int, repeats: int) -> Timing:
    """Time ``call``; on a GPU each call is waited for."""
    on_gpu = torch.cuda.is_available()
    times = []
    for index in range(warmup + repeats):
        started = time.perf_counter()
        call()
        if on_gpu:
            torch.cuda.synchronize()
        if index >= warmup:
            times.append(1e3 * (time.perf_counter() - started))
    low, _, high = statistics.quantiles(times, n=4)
    return Timing(statistics.median(times), low, high, _peak_mb())


def _peak_mb() -> float:
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def append_rows(name: str, rows: list[dict[str, object]]) -> Path:
    """Add rows to ``results/NAME.csv``, each with machine, versions and commit."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    origin = {"commit": commit(), **describe()}
    full = [{**row, **origin} for row in rows]
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(full[0]))
        if new:
            writer.writeheader()
        writer.writerows(full)
    return path
