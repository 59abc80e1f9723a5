"""Reading, model and writing, side by side."""

import errno
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.memory import Memory
from rotating_features.data.workers import MOST_WORKERS
from rotating_features.evaluate.discover import ObjectModel, group, look
from rotating_features.models import Model, OnFeatures
from rotating_features.segment.blocks import make_blocks
from rotating_features.segment.files import write_pictures
from rotating_features.segment.journal import Journal, facts_of
from rotating_features.segment.load import Loaded, load_image
from rotating_features.segment.timings import Timings

MOST_OBJECTS = 255


class Segmented(NamedTuple):
    """What became of one image: how many objects it has, or why that is not known."""

    source: Path
    objects: int | None
    problem: str | None
    skipped: bool = False  # it was done before


@dataclass
class Task:
    """An image on its way. What it no longer needs is dropped, lest memory fill up."""

    source: Path
    name: Path
    made_from: str
    done: bool
    loading: Future[Loaded] | None = None
    writing: Future[dict[str, Any]] | None = None
    problem: str | None = None


class Pipeline:
    """Threads that read ahead and write behind while the model works.

    At most three batches are on their way, or as many images more as keep the writers busy.
    """

    def __init__(
        self,
        model: Model,
        out: Path,
        journal: Journal,
        k: int | Literal["auto"] | None,
        distance_threshold: float | None,
        magnitude_threshold: float,
        timings: Timings,
    ) -> None:
        self.model, self.out, self.journal, self.timings = model, out, journal, timings
        self.options: dict[str, Any] = {"k": k, "distance_threshold": distance_threshold}
        self.magnitude_threshold = magnitude_threshold
        self.workers = min(MOST_WORKERS, os.cpu_count() or 1)
        self.device = next(model.parameters()).device
        self.threads = torch.get_num_threads()
        self.readers, self.writers = self._pool(), self._pool()
        self.memory = Memory()
        self.pending: deque[Task] = deque()  # found, and perhaps written

    def run(self, tasks: list[Task], batch_size: int) -> Iterator[Segmented]:
        """What becomes of each task, in their order."""
        batches = [tasks[i : i + batch_size] for i in range(0, len(tasks), batch_size)]
        for batch, following in zip(batches, [*batches[1:], []], strict=True):
            self._read(batch)
            self._read(following)
            self._find(batch)
            self.pending += batch
            while len(self.pending) > max(batch_size, 2 * self.workers):
                yield self._settle_first()
        while self.pending:
            yield self._settle_first()

    def stop(self) -> None:
        """End what has begun, forget the rest, and note what is done, up to a gap.

        So the report has its lines in order, as if nothing had happened.
        """
        self.readers.shutdown(cancel_futures=True)
        self.writers.shutdown(cancel_futures=True)
        if self.device.type != "cpu":
            torch.set_num_threads(self.threads)  # for threads that others start
        for task in self.pending:
            if task.writing is not None:
                if task.writing.cancelled() or task.writing.exception():
                    break
                self._settle(task)

    def _pool(self) -> ThreadPoolExecutor:
        """Threads with a core each beside a GPU: PyTorch would have each of them use all cores.

        Beside a model on the CPU that does not pay: its own threads would wait for them, spinning.
        """
        if self.device.type == "cpu":
            return ThreadPoolExecutor(self.workers)
        return ThreadPoolExecutor(self.workers, initializer=torch.set_num_threads, initargs=(1,))

    def _read(self, batch: list[Task]) -> None:
        """Begin to read a batch, with those done before: it shall be the batch it was then."""
        if all(task.done for task in batch):
            return
        for task in batch:
            if task.loading is None:
                task.loading = self.readers.submit(self._load, task.source)

    def _load(self, source: Path) -> Loaded:
        with self.timings.spent("decode"):
            return load_image(source, self.model.channels, self.model.size, self.memory)

    def _find(self, batch: list[Task]) -> None:
        """Objects of a batch, which then go to be written."""
        ready: list[tuple[Task, Loaded]] = []
        for task in batch:
            loading, task.loading = task.loading, None
            try:
                if loading is not None:
                    ready.append((task, loading.result()))
            except InputError as error:
                task.problem = str(error)
        if all(task.done for task, _ in ready):
            return
        try:
            orientations = self._look(torch.stack([loaded.x for _, loaded in ready]))
            with self.timings.spent("cluster", self.device):
                found = group(orientations, **self.options)
                labels, doubt = (part.cpu() for part in found)
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"{len(ready)} images at once are too many for {self.device}. "
                "Pass a smaller batch size."
            ) from error
        for (task, loaded), *maps in zip(ready, labels, doubt, strict=True):
            if task.done:
                continue
            if (most := int(maps[0].max())) > MOST_OBJECTS:
                task.problem = (
                    f"{task.source} has {most} objects; a mask can hold {MOST_OBJECTS}. Pass --k."
                )
            else:
                task.writing = self.writers.submit(self._write, task, loaded, *maps)

    def _look(self, x: Tensor) -> Tensor:
        """Where each place of the grid points; the backbone, if there is one, is timed alone."""
        model: ObjectModel = self.model
        if isinstance(self.model, OnFeatures):
            model = self.model.autoencoder
            with self.timings.spent("backbone", self.device):
                x = self.model.backbone(x.to(self.device))
        with self.timings.spent("model", self.device):
            return look(model, x, magnitude_threshold=self.magnitude_threshold)[1]

    def _write(self, task: Task, loaded: Loaded, labels: Tensor, doubt: Tensor) -> dict[str, Any]:
        """Write an image's files; its line of the report."""
        (h, w), (gh, gw) = loaded.size, labels.shape
        with self.timings.spent("write"), self.memory.take(h * w // 2):
            coarse = gh < self.model.size[0] or gw < self.model.size[1]
            blocks = make_blocks(labels, doubt, (h, w), smooth=coarse)
            write_pictures(self.out, task.name, blocks, loaded.picture)
            return {
                "image": str(task.source.absolute()),  # for runs from elsewhere
                "file": facts_of(task.source),
                "name": task.name.as_posix(),
                "width": w,
                "height": h,
                **blocks.describe(),
                "made_from": task.made_from,
            }

    def _settle_first(self) -> Segmented:
        settled = self._settle(self.pending[0])
        self.pending.popleft()  # not before: one that failed is a gap
        return settled

    def _settle(self, task: Task) -> Segmented:
        """Note what became of a task, once it is known."""
        if task.done:
            objects = self.journal.objects[task.name.as_posix()]
            return Segmented(task.source, objects, None, skipped=True)
        if task.writing is not None:
            try:
                line = task.writing.result()
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                task.problem = f"{task.source} has too long a name for its masks. Rename it."
            else:
                self.journal.append(line)
                self.timings.images += 1
                task.writing = None
                return Segmented(task.source, line["objects"], None)
        return Segmented(task.source, None, task.problem)
