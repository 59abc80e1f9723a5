"""Measurements in processes of their own.

TF32, denormals, how memory is allocated, what was compiled before: none of it may pass from one
variant to the next, and the peak of memory belongs to a process.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from rotating_features.bench.harness import Timing

Task = dict[str, Any]
"""What to time: ``bench`` and ``variant``, and the arguments of that benchmark's timer."""
Tell = Callable[[str], None]


def rounds_here() -> int:
    """How often a variant is measured: a CPU may be busy for a while, a GPU is ours."""
    return 1 if torch.cuda.is_available() else 3


def alone(
    jobs: Sequence[list[Task]], *, rounds: int = 1, tell: Tell | None = None
) -> list[list[Timing | None]]:
    """The timing of every task of every job; None where memory did not suffice.

    A job is a process, which does its tasks one after the other. The jobs of a round take turns,
    so that all see the same machine, and of several rounds the middle one counts. On a GPU their
    processes start side by side, which takes seconds, and then wait for their turn.
    """
    found: list[list[list[Timing | None]]] = [[] for _ in jobs]
    for _ in range(rounds):
        waiting = [_Process() for _ in jobs] if torch.cuda.is_available() else []
        try:
            for process in waiting:
                process.wait()
            for job, results in zip(jobs, found, strict=True):
                process = waiting.pop(0) if waiting else _Process()
                if tell is not None:
                    tell(f"{job[0]['bench']}: {job[0]['variant']}")
                results.append(process.run(job))
        finally:
            for process in waiting:
                process.stop()
    return [[middle(timings) for timings in zip(*results, strict=True)] for results in found]


class _Process:
    """``rotating_features.bench.one``, ready to be told what to do."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (stop closes it)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rotating_features.bench.one"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.ready = False

    def wait(self) -> None:
        if not self.ready:
            self._output().readline()
            self.ready = True

    def run(self, job: list[Task]) -> list[Timing | None]:
        try:
            self.wait()
            out, _ = self.process.communicate(json.dumps(job) + "\n")
            if status := self.process.returncode:
                self.errors.seek(0)
                said = self.errors.read()[-4000:]
                raise RuntimeError(f"{job[0]} ended with status {status}:\n{said}")
        finally:
            self.stop()
        return [None if t is None else Timing(*t) for t in json.loads(out.splitlines()[-1])]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        with self.process:  # closes its pipes
            self.errors.close()

    def _output(self) -> Any:
        return cast(Any, self.process.stdout)


def middle(timings: Sequence[Timing | None]) -> Timing | None:
    """The middle one, with the spread of all: processes may differ by more than calls do."""
    known = sorted(timing for timing in timings if timing is not None)
    if not known:
        return None
    low, high = min(t.low_ms for t in known), max(t.high_ms for t in known)
    return known[len(known) // 2]._replace(low_ms=low, high_ms=high)
