"""Measuring: medians and spread, peak memory, and rows that say where they come from."""

import csv
import gc
import math
import sys
import time
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from rotating_features._commit import commit
from rotating_features._files import replacing
from rotating_features.machine import describe

Row = dict[str, object]
PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "scikit-image": "skimage",
    "pillow": "PIL",
    "transformers": "transformers",
    "triton": "triton",
}
"""On which times depend, and the names they are imported by."""


class Timing(NamedTuple):
    """Milliseconds of one call, and the memory it needs."""

    median_ms: float
    low_ms: float  # first quartile
    high_ms: float  # third quartile
    peak_mb: float

    def per(self, parts: float) -> "Timing":
        """The time of one of the parts that a call has; memory is shared and stays."""
        median, low, high = (value / parts for value in self[:3])
        return Timing(median, low, high, self.peak_mb)


def this_device() -> torch.device:
    """Where measurements take place: on the GPU, if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def measure(call: Callable[[], object], *, warmup: int, repeats: int) -> Timing:
    """Time ``call``; on a GPU each call is waited for.

    Peak memory on a GPU is what PyTorch holds of it, cached blocks and the pools of CUDA graphs
    included, at most, in a process that has warmed up and given back what only the warm-up needed.
    Where nothing runs on a GPU it is the whole process's, from its start.
    """
    wait = torch.cuda.synchronize if torch.cuda.is_available() else _nothing
    for _ in range(warmup):
        call()
    if torch.cuda.is_available():
        wait()
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        call()  # takes back from the driver what it does need
        wait()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        wait()
        times.append(1e3 * (time.perf_counter() - started))
    low, median, high = np.percentile(times, [25, 50, 75]).tolist()
    return Timing(median, low, high, _peak_mb())


def compare(
    work: str, timings: dict[str, Timing | None], *, peer: str, **more: object
) -> list[Row]:
    """A row for each variant that could be measured, with its speed relative to the peer's."""
    base = timings.get(peer)
    return [
        {
            "work": work,
            "variant": variant,
            **{name: short(value) for name, value in timing._asdict().items()},
            "peer": peer,
            "times_faster": "" if base is None else short(base.median_ms / timing.median_ms),
            **more,
        }
        for variant, timing in timings.items()
        if timing is not None
    ]


def short(value: float) -> float:
    """Four digits, which is more than a clock knows."""
    return float(f"{value:.4g}")


def append_rows(folder: Path, name: str, rows: list[Row]) -> Path:
    """Add rows to ``NAME.csv``, each with machine, versions and commit.

    A file has one header: columns that are new to it are added, empty in the rows it had.
    """
    path = folder / f"{name}.csv"
    origin = {"commit": commit(), **describe(), "packages": _packages()}
    old = read_rows(path) if path.exists() else []
    every = [*old, *({**row, **origin} for row in rows)]
    columns = list(dict.fromkeys(column for row in every for column in row))
    with replacing(path) as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)
    return path


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, as text."""
    with path.open(newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def _nothing() -> None:
    """On a CPU there is nothing to wait for."""


def _peak_mb() -> float:
    if torch.cuda.is_available() and torch.cuda.max_memory_reserved():
        return torch.cuda.max_memory_reserved() / 2**20
    if sys.platform == "win32":
        return math.nan
    import resource  # which Windows lacks

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _packages() -> str:
    """Versions of what else the time depends on, as far as it is here."""
    here = {name: metadata.version(name) for name in PACKAGES if find_spec(PACKAGES[name])}
    return ", ".join(f"{name} {version}" for name, version in here.items())
