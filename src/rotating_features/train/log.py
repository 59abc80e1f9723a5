"""A run's log: JSON lines, TensorBoard and a progress bar."""

import json
import time
from pathlib import Path
from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from torch.utils.tensorboard.writer import SummaryWriter

from rotating_features._files import replacing
from rotating_features.train.checkpoint import METRICS_FILE, read_metrics


class Log:
    """Writes what happens in a run to its folder and shows it.

    Args:
        folder: The run's folder.
        start: Steps that were done before; later lines of an earlier attempt are dropped.
        steps: Steps there will be in all.
        title: What stands before the progress bar.
        quiet: No progress bar.
        spent: Seconds that went into it just before.
    """

    def __init__(
        self,
        folder: Path,
        *,
        start: int,
        steps: int,
        title: str = "",
        quiet: bool = False,
        spent: float = 0.0,
    ) -> None:
        kept = read_metrics(folder, up_to=start)
        with replacing(folder / METRICS_FILE) as partial:
            partial.write_text("".join(json.dumps(row) + "\n" for row in kept))
        self._lines = (folder / METRICS_FILE).open("a")
        self._board = SummaryWriter(folder, purge_step=start + 1 if start else None)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            TimeRemainingColumn(),
            disable=quiet,
        )
        self._task = self._bar.add_task(title, total=steps, completed=start, news="")
        self._seconds = spent + (kept[-1]["seconds"] if kept else 0.0)
        self._started = self._since = time.perf_counter()
        self._images = 0

    def __enter__(self) -> "Log":
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        self._lines.close()
        self._board.close()

    def advance(self, steps: int, images: int) -> None:
        """So many steps on, each over so many images."""
        self._images += steps * images
        self._bar.advance(self._task, steps)

    def write(self, step: int, **values: float) -> None:
        """Log ``values`` after ``step`` steps, with the run's time and speed."""
        now = time.perf_counter()
        if "loss" in values and self._images:
            values["images_per_second"] = round(self._images / (now - self._since), 1)
            self._since, self._images = now, 0
        seconds = round(self._seconds + now - self._started, 2)
        self._lines.write(json.dumps({"step": step, "seconds": seconds, **values}) + "\n")
        self._lines.flush()
        for name, value in values.items():
            self._board.add_scalar(name, value, step)
        if "loss" in values:
            speed = values.get("images_per_second", 0.0)
            self._bar.update(self._task, news=f"loss {values['loss']:.4f}  {speed:,.0f} img/s")

    def pause(self) -> None:
        """Leave the time until the next step out of the images per second."""
        self._since, self._images = time.perf_counter(), 0
