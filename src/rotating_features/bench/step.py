"""The training step against a plain reading of the paper, eager and through ``torch.compile``.

One step is gathering a batch, forward, backward, clipping and Adam; on photographs also cropping
them and a frozen network that makes features of the crops.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.bench.alone import Task, Tell, alone, rounds_here
from rotating_features.bench.harness import Row, Timing, compare, measure, this_device
from rotating_features.bench.photographs import packed_noise, random_vit
from rotating_features.bench.plain import PlainAutoEncoder, plain_crops
from rotating_features.bench.synthetic import RandomImages
from rotating_features.data import FourShapes, ImageDataset
from rotating_features.features import Backbone
from rotating_features.machine import Precision, can_compile
from rotating_features.models import RotatingAutoEncoder
from rotating_features.models.on_features import suitable_dtype
from rotating_features.train import Step
from rotating_features.train.batches import DRAW_BITS, INDEX_BITS
from rotating_features.train.feed import Feed
from rotating_features.train.photo_feed import PhotoFeed
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
    crop: int = 0  # side of the crops of photographs that a ViT makes the features of, if any
    layers: int = 12  # of the ViT


WORKS = {
    "4shapes": Work(drawn=True),
    "10shapes": Work(channels=4, side=48, n=10),
    "features": Work(channels=768, side=14, n=10, d=128, features=True),
    "photographs": Work(channels=768, side=14, n=10, d=128, features=True, crop=224),
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
    if problem := next(filter(None, (lacking(sizes[name]) for name in works)), None):
        raise InputError(problem)
    for name in works or suitable_works(sizes):
        work = sizes[name]
        chosen = list(variants or suitable_variants())
        jobs = [[step_task(variant, work, repeats)] for variant in chosen]
        timings = alone(jobs, rounds=rounds or rounds_here(), tell=tell)
        found = {variant: timing for variant, (timing,) in zip(chosen, timings, strict=True)}
        yield compare(f"{name} step b={work.batch} n={work.n} d={work.d}", found, peer="plain")


def lacking(work: Work) -> str | None:
    """Why a step cannot be taken on the work here, or None if it can."""
    if work.crop and find_spec("transformers") is None:
        return "step on photographs wants transformers, which is not installed here."
    return None


def suitable_works(sizes: dict[str, Work] = WORKS) -> list[str]:
    """Those that take no more than minutes on this machine and lack nothing."""
    names = list(sizes) if torch.cuda.is_available() else list(sizes)[:1]
    return [name for name in names if lacking(sizes[name]) is None]


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
    if way.ours:
        call, steps = _ours(way, size, _feed(size, device), at_once)
    else:
        call, steps = _plain(way, size, device)
    return measure(call, warmup=3, repeats=repeats).per(steps)


def _images(size: Work) -> ImageDataset:
    """4Shapes' own or noise. On a CPU it matters: how many denormals the plain step meets."""
    if size.drawn:
        return FourShapes("val")
    shape = 2 * size.batch, size.channels, size.side, size.side
    return RandomImages(shape, features=size.features)


def _feed(size: Work, device: torch.device) -> Feed | PhotoFeed:
    """Where our batches come from; a ViT is only looked at, so it may be in bfloat16."""
    if not size.crop:
        return Feed(_images(size), device)
    return PhotoFeed(
        packed_noise(2 * size.batch, size.crop),
        device,
        size=size.crop,
        backbone=_vit(size, device, suitable_dtype(device)),
    )


def _plain_batches(size: Work, device: torch.device) -> Callable[[], Tensor]:
    """Where the peer's come from: the same images, or random crops of the same photographs."""
    if not size.crop:
        feed, indices = Feed(_images(size), device), torch.arange(size.batch, device=device)
        return lambda: feed(indices)
    shape = 2 * size.batch, size.crop, size.crop * 4 // 3, 3
    photographs = torch.randint(256, shape, dtype=torch.uint8).to(device)
    vit = _vit(size, device, torch.float32)
    return lambda: vit(plain_crops(photographs, size.crop, size.batch))


def _vit(size: Work, device: torch.device, dtype: torch.dtype) -> Backbone:
    return random_vit(size.channels, layers=size.layers, side=size.crop, dtype=dtype, device=device)


def _ours(
    way: Variant, size: Work, feed: Feed | PhotoFeed, at_once: int | None
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
    if size.crop:
        order |= torch.randint(1 << DRAW_BITS, order.shape) << INDEX_BITS
    rates = torch.full((k,), 1e-4)
    return lambda: together.run(order, rates), k * way.seeds


def _plain(way: Variant, size: Work, device: torch.device) -> tuple[Callable[[], None], int]:
    """The same for the peer, at the settings that PyTorch starts with."""
    batch = _plain_batches(size, device)
    model = PlainAutoEncoder(size.channels, size.side, size.d, size.n, features=size.features)
    model = model.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)

    def loss_of(x: Tensor) -> Tensor:
        return F.mse_loss(model(x), x)

    loss = torch.compile(loss_of) if way.compiled else loss_of
    steps = PLAIN_STEPS if device.type == "cuda" else 1

    def call() -> None:
        for _ in range(steps):
            optimiser.zero_grad()
            loss(batch()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimiser.step()

    return call, steps
