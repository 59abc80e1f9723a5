"""The training step against a plain reading of the paper, eager and through ``torch.compile``.

One step is gathering a batch, forward, backward, clipping and Adam.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.bench.alone import Task, Tell, alone, rounds_here
from rotating_features.bench.harness import Row, Timing, compare, measure, this_device
from rotating_features.bench.plain import PlainAutoEncoder
from rotating_features.bench.synthetic import RandomImages
from rotating_features.data import FourShapes, ImageDataset
from rotating_features.models import RotatingAutoEncoder
from rotating_features.train import Step
from rotating_features.train.feed import Feed
from rotating_features.train.machine import Precision, can_compile
from rotating_features.train.together import Together

PLAIN_STEPS = 5
"""Steps of the peer that a GPU takes before it is waited for."""


class Work(NamedTuple):
    """What a step trains on, and how large the model is."""

    channels: int = 1
    side: int = 32
    n: int = 8
    d: int = 32
    batch: int = 64
    features: bool = False
    drawn: bool = False  # 4Shapes' own images, not noise


WORKS = {
    "4shapes": Work(drawn=True),
    "10shapes": Work(channels=4, side=48, n=10),
    "features": Work(channels=768, side=14, n=10, d=128, features=True),
}


class Variant(NamedTuple):
    """A way of taking the step. Ours goes through kernels on a GPU, where it is never compiled."""

    ours: bool
    compiled: bool
    precision: Precision = "float32"
    seeds: int = 1


VARIANTS = {
    "plain": Variant(ours=False, compiled=False),
    "plain compiled": Variant(ours=False, compiled=True),
    "float32": Variant(ours=True, compiled=True),
    "float32 uncompiled": Variant(ours=True, compiled=False),
    "bfloat16": Variant(ours=True, compiled=True, precision="bfloat16"),
    "float32 x4 seeds": Variant(ours=True, compiled=True, seeds=4),
    "bfloat16 x4 seeds": Variant(ours=True, compiled=True, precision="bfloat16", seeds=4),
}


def bench_step(
    *,
    repeats: int,
    works: Sequence[str] = (),
    variants: Sequence[str] = (),
    sizes: dict[str, Work] = WORKS,
    rounds: int | None = None,
    tell: Tell | None = None,
) -> Iterator[list[Row]]:
    """Rows of one work after the other; by default those that suit this machine."""
    if unknown := [name for name in works if name not in sizes]:
        raise InputError(f"A work should be one of {', '.join(sizes)}, got {', '.join(unknown)}.")
    if unknown := [name for name in variants if name not in VARIANTS]:
        known = ", ".join(VARIANTS)
        raise InputError(f"A variant should be one of {known}, got {', '.join(unknown)}.")
    for name in works or (sizes if torch.cuda.is_available() else list(sizes)[:1]):
        work = sizes[name]
        chosen = list(variants or suitable_variants())
        jobs = [[step_task(variant, work, repeats)] for variant in chosen]
        timings = alone(jobs, rounds=rounds or rounds_here(), tell=tell)
        found = {variant: timing for variant, (timing,) in zip(chosen, timings, strict=True)}
        yield compare(f"{name} step b={work.batch} n={work.n} d={work.d}", found, peer="plain")


def suitable_variants() -> list[str]:
    """Those that this machine can run; several models at once only pay on a GPU."""
    device = this_device()
    if device.type == "cuda":
        names = [name for name in VARIANTS if name != "float32 uncompiled"]
        return [name for name in names if name != "plain compiled" or can_compile(device)]
    if can_compile(device):
        return ["plain", "plain compiled", "float32", "bfloat16"]
    return ["plain", "float32 uncompiled"]


def step_task(variant: str, work: Work, repeats: int, *, at_once: int | None = None) -> Task:
    """What ``time_step`` is to be called with, as JSON can tell it."""
    task = {"bench": "step", "variant": variant, "work": work._asdict(), "repeats": repeats}
    return task if at_once is None else {**task, "at_once": at_once}


def time_step(
    variant: str, *, work: dict[str, Any], repeats: int, at_once: int | None = None
) -> Timing:
    """Time of a step and, if there are several seeds, of one model.

    Args:
        variant: Out of ``VARIANTS``.
        work: The fields of a ``Work``.
        repeats: Timed calls.
        at_once: Steps that our variants take in a call. Default: as many as training takes.
    """
    size, way, device = Work(**work), VARIANTS[variant], this_device()
    torch.manual_seed(0)
    feed = Feed(_images(size), device)
    if way.ours:
        call, steps = _ours(way, size, feed, at_once)
    else:
        call, steps = _plain(way, size, feed)
    return measure(call, warmup=3, repeats=repeats).per(steps)


def _images(size: Work) -> ImageDataset:
    """4Shapes' own or noise. On a CPU it matters: how many denormals the plain step meets."""
    if size.drawn:
        return FourShapes("val")
    shape = 2 * size.batch, size.channels, size.side, size.side
    return RandomImages(shape, features=size.features)


def _ours(
    way: Variant, size: Work, feed: Feed, at_once: int | None
) -> tuple[Callable[[], Tensor], int]:
    """A call, and how many steps of one model it takes."""
    steps = []
    for _ in range(way.seeds):
        model = RotatingAutoEncoder(
            channels=size.channels,
            size=(size.side, size.side),
            hidden_dim=size.d,
            rotation_dim=size.n,
            features=size.features,
        ).to(feed.device)
        compiled = way.compiled and feed.device.type == "cpu"
        steps.append(Step(model, precision=way.precision, compiled=compiled))
    together = Together(steps, feed)
    k = min(at_once or together.stride, together.stride)
    order = torch.randint(2 * size.batch, (k, way.seeds, size.batch))
    rates = torch.full((k,), 1e-4)
    return lambda: together.run(order, rates), k * way.seeds


def _plain(way: Variant, size: Work, feed: Feed) -> tuple[Callable[[], None], int]:
    """The same for the peer, at the settings that PyTorch starts with."""
    model = PlainAutoEncoder(size.channels, size.side, size.d, size.n, features=size.features)
    model = model.to(feed.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
    indices = torch.arange(size.batch, device=feed.device)

    def loss_of(x: Tensor) -> Tensor:
        return F.mse_loss(model(x), x)

    loss = torch.compile(loss_of) if way.compiled else loss_of
    steps = PLAIN_STEPS if feed.device.type == "cuda" else 1

    def call() -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            loss(feed(indices)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimiser.step()

    return call, steps
