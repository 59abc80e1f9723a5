"""``segment`` on a folder of photographs, against one photograph after the other.

Times are of one photograph. Of ours there are also those of its stages, summed over threads.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from rotating_features.bench.alone import Task, Tell, alone, rounds_here
from rotating_features.bench.harness import Row, Timing, compare, measure, short, this_device
from rotating_features.bench.photographs import (
    has_efficientnet,
    small_backbone,
    write_photographs,
)
from rotating_features.data.decode import open_image
from rotating_features.evaluate import discover
from rotating_features.machine import tune_cpu
from rotating_features.models import OnFeatures, RotatingAutoEncoder
from rotating_features.segment import Timings, find_images, segment
from rotating_features.segment.blocks import Blocks
from rotating_features.segment.files import write_pictures
from rotating_features.segment.timings import STAGES

PHOTOGRAPHS = 200
K, N, D = 4, 10, 128
SIDE = 224
PEER = "one by one"
WARM = 20
"""Photographs that are segmented before the clock starts."""
NAMES = {"model": "rotating features"}
"""What rows call a stage, where that says more than its own name."""
Images = list[tuple[Path, Path]]


def bench_segment(
    *,
    repeats: int,
    folder: Path | None = None,
    photographs: int = PHOTOGRAPHS,
    d: int = D,
    rounds: int | None = None,
    tell: Tell | None = None,
) -> Iterator[list[Row]]:
    """Rows of the whole, of its stages and of the peer.

    Args:
        repeats: How often all photographs are segmented in each process, three times at most.
        folder: With photographs, of which the first are taken. Default: made-up ones of VOC's size.
        photographs: How many.
        d: Of the model.
        rounds, tell: As in :func:`alone`.
    """
    with ExitStack() as stack:
        if folder is None:
            made = Path(stack.enter_context(TemporaryDirectory()))
            write_photographs(made, photographs)
        else:
            made = folder
        photographs = len(find_images([made])[:photographs])
        given = {"folder": str(made), "photographs": photographs, "d": d}
        task = {"bench": "segment", **given, "repeats": min(repeats, 3)}
        parts: list[Task] = [{**task, "variant": "ours", "part": p} for p in ("whole", *STAGES)]
        peer: Task = {**task, "variant": PEER, "part": "whole"}
        (ours, *stages), (theirs,) = alone(
            [parts, [peer]], rounds=rounds or rounds_here(), tell=tell
        )
    kind = "made-up photographs of 500x375" if folder is None else "photographs"
    backbone = "EfficientNet-Lite0" if has_efficientnet() else "random ViT-S/16"
    work = f"segment {photographs} {kind}, {backbone}, random model n={N} d={d}, k={K}"
    rows = compare(work, {"ours": ours, PEER: theirs}, peer=PEER)
    named = {f"ours: {NAMES.get(s, s)}": t for s, t in zip(STAGES, stages, strict=True)}
    rows[1:1] = [
        {**row, "peak_mb": "", "times_faster": ""} for row in compare(work, named, peer=PEER)
    ]
    for row in rows:
        whole = row["variant"] in ("ours", PEER)
        row["photographs"] = photographs
        row["photographs_per_second"] = short(1e3 / float(str(row["median_ms"]))) if whole else ""
    yield rows


def time_segment(
    variant: str, *, part: str, folder: str, photographs: int, d: int, repeats: int
) -> Timing:
    """Time of a photograph: of the ``"whole"``, on the clock, or of a stage, over all threads.

    All parts come from the same run, which the first of them that is asked for takes.
    """
    return _time(variant, folder, photographs, d, repeats)[part]


@cache
def _time(variant: str, folder: str, photographs: int, d: int, repeats: int) -> dict[str, Timing]:
    if variant == "ours":
        tune_cpu()  # as the command does
    images = find_images([folder])[:photographs]
    model, way = random_model(d), segment_all if variant == "ours" else one_by_one
    each: list[Timings] = []
    with TemporaryDirectory() as made:
        outs = (Path(made) / str(i) for i in count())
        way(model, images[:WARM], next(outs))
        whole = measure(
            lambda: each.append(way(model, images, next(outs))), warmup=0, repeats=repeats
        )
    found = {"whole": whole}
    for stage in STAGES:
        times = [1e3 * timings.seconds[stage] for timings in each[-repeats:]]
        low, median, high = np.percentile(times, [25, 50, 75]).tolist()
        found[stage] = Timing(median, low, high, whole.peak_mb)
    return {part: timing.per(len(images)) for part, timing in found.items()}


def random_model(d: int) -> OnFeatures:
    """A model for photographs of 224 x 224, with random weights on its backbone's features.

    Its norms have seen features of noise: without, it would take all there is for background.
    """
    torch.manual_seed(0)
    device = this_device()
    backbone = small_backbone(device)
    autoencoder = RotatingAutoEncoder(
        channels=backbone.channels,
        size=backbone.grid(SIDE),
        hidden_dim=d,
        rotation_dim=N,
        features=True,
    ).to(device)
    for norm in autoencoder.modules():
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            norm.momentum = 1.0
    with torch.no_grad():
        autoencoder.train()(backbone(torch.rand(8, 3, SIDE, SIDE, device=device)))
    return OnFeatures(backbone, autoencoder, size=(SIDE, SIDE)).eval()


def segment_all(model: OnFeatures, images: Images, out: Path) -> Timings:
    """Ours, as the command does it."""
    timings = Timings()
    for result in segment(model, images, out, k=K, timings=timings):
        if result.problem is not None:
            raise RuntimeError(result.problem)
    return timings


def one_by_one(model: OnFeatures, images: Images, out: Path) -> Timings:
    """The peer: the same files of each and what is in them, but no report or contact sheet."""
    for source, name in images:
        picture = open_image(source)
        found = discover(model, picture, k=K)
        labels, doubt = found.labels.cpu(), found.uncertainty.cpu()
        blocks = Blocks(
            labels.numpy().astype(np.uint8),
            doubt.double().numpy(),
            *(np.ones(length, np.int64) for length in labels.shape),
        )
        write_pictures(out, name, blocks, picture)
        blocks.describe()
    return Timings()
