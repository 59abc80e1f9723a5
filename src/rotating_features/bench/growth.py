"""How cost grows: the step with n, batch and image side, evaluation with the number of images."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from rotating_features._files import replacing
from rotating_features.bench.alone import Task, Tell, alone, rounds_here
from rotating_features.bench.evaluation import K
from rotating_features.bench.harness import Row, Timing, compare
from rotating_features.bench.step import Work, step_task
from rotating_features.machine import describe

STEPS_AT_ONCE = 20


class Sizes(NamedTuple):
    """Works to take a step on, by what grows, and numbers of images to evaluate."""

    n: Sequence[Work]
    batch: Sequence[Work]
    side: Sequence[Work]
    images: Sequence[int]
    peer_images: Sequence[int]


ON_CUDA = Sizes(
    n=[Work(n=n) for n in (2, 4, 6, 8, 10, 12, 16)],
    batch=[Work(batch=b) for b in (1, 4, 16, 64, 256, 1024)],
    side=[Work(side=side) for side in (32, 48, 64, 96, 128)],
    images=(100, 300, 1000, 3000, 10_000),
    peer_images=(100, 300),
)
ON_CPU = Sizes(
    n=[Work(n=n, batch=16) for n in (2, 4, 8, 16)],
    batch=[Work(batch=b) for b in (1, 4, 16, 64)],
    side=[Work(side=side, batch=4) for side in (32, 64, 96)],
    images=(100, 300, 1000, 3000),
    peer_images=(100, 300),
)


def bench_growth(
    *,
    repeats: int,
    works: Sequence[str] = (),
    sizes: Sizes | None = None,
    rounds: int | None = None,
    tell: Tell | None = None,
) -> Iterator[list[Row]]:
    """Rows of one thing that grows after the other; times are of a whole step or evaluation.

    ``works`` are those to be measured, out of n, batch, side and images; all by default.

    On a CPU neither the peer nor ours is compiled, which would take a minute for each size.
    """
    sizes = sizes or (ON_CUDA if torch.cuda.is_available() else ON_CPU)
    ours = "float32" if torch.cuda.is_available() else "float32 uncompiled"
    repeats, rounds = min(repeats, 5), rounds or rounds_here()
    for grows in [name for name in ("n", "batch", "side") if name in works or not works]:
        each: Sequence[Work] = getattr(sizes, grows)
        jobs = [
            [step_task(variant, work, repeats, at_once=STEPS_AT_ONCE) for work in each]
            for variant in (ours, "plain")
        ]
        first, second = alone(jobs, rounds=rounds, tell=tell)
        rows: list[Row] = []
        for work, mine, theirs in zip(each, first, second, strict=True):
            text = f"step b={work.batch} n={work.n} d={work.d} {work.side}x{work.side}"
            rows += _rows(text, {ours: mine, "plain": theirs}, "plain", grows, getattr(work, grows))
        yield rows
    if "images" in works or not works:
        yield _evaluation(sizes, repeats, rounds, tell)


def latest(rows: Sequence[Row]) -> list[Row]:
    """The last row of each size and variant that this machine has taken."""
    here = {name: str(value) for name, value in describe().items() if name in ("cpu", "gpu")}
    mine = [row for row in rows if here.items() <= row.items()]
    return list({(row["grows"], row["value"], row["variant"]): row for row in mine}.values())


def draw(rows: Sequence[Row], folder: Path) -> Path:
    """A picture of the rows, in a file named after the machine that they name, or else this one."""
    from rotating_features.plots import growth

    machine = {**describe(), **(rows[0] if rows else {})}
    on_cpu = machine["gpu"] == "none"
    name = "cpu" if on_cpu else str(machine["gpu"]).replace(" ", "-")
    title = f"{machine['cpu']}, {machine['cores']} threads" if on_cpu else str(machine["gpu"])
    path = folder / f"growth-{name}.png"
    with replacing(path) as partial:
        growth(rows, title=title).savefig(partial, format="png")
    return path


def _evaluation(sizes: Sizes, repeats: int, rounds: int, tell: Tell | None) -> list[Row]:
    counts = {"ours": sizes.images, "scikit-learn": sizes.peer_images}
    jobs: list[list[Task]] = [
        [{"bench": "evaluate", "variant": v, "images": i, "repeats": repeats} for i in images]
        for v, images in counts.items()
    ]
    each_job = alone(jobs, rounds=rounds, tell=tell)
    found = {
        variant: dict(zip(counts[variant], timings, strict=True))
        for variant, timings in zip(counts, each_job, strict=True)
    }
    rows: list[Row] = []
    for images in sizes.images:
        each = {variant: timings.get(images) for variant, timings in found.items()}
        whole = {v: None if t is None else t.per(1 / images) for v, t in each.items()}
        text = f"evaluate k-means k={K} n=8 {images} images"
        rows += _rows(text, whole, "scikit-learn", "images", images)
    return rows


def _rows(
    work: str, timings: dict[str, Timing | None], peer: str, grows: str, value: int
) -> list[Row]:
    rows = compare(work, timings, peer=peer, grows=grows, value=value)
    if not torch.cuda.is_available():  # there a process has one peak, and it did several sizes
        rows = [{**row, "peak_mb": ""} for row in rows]
    return rows
