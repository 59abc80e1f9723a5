"""Scores of orientation maps and photographs, smooth masks and Ward's clusters against
scikit-learn and -image.

Times are of one image out of a batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from rotating_features.bench.alone import Tell, alone, rounds_here
from rotating_features.bench.harness import Row, Timing, compare, measure, short, this_device
from rotating_features.bench.peers import evaluate_peer, photographs_peer, smooth_peer, ward_peer
from rotating_features.bench.synthetic import label_maps, orientation_maps, photograph_masks
from rotating_features.evaluate import PHOTO_PROTOCOLS, kmeans, mode_filter
from rotating_features.evaluate.ward import ward
from rotating_features.machine import tune_cpu
from rotating_features.metrics import adjusted_rand_index, mean_best_overlap

K = 5
RADIUS = 22
LABELS = 10
THRESHOLD = 5.0


class Images(NamedTuple):
    """How many are given to us at a time, and to the peer, which takes them one by one."""

    ours_cpu: int
    ours_cuda: int
    peer: int


def bench_evaluate(**options: Any) -> Iterator[list[Row]]:
    """k-means of maps, ARI-BG and MBO."""
    work = f"evaluate k-means k={K} n=8 32x32"
    return _bench("evaluate", work, "scikit-learn", Images(500, 10_000, 50), **options)


def bench_smooth(**options: Any) -> Iterator[list[Row]]:
    """The mode filter on label maps."""
    work = f"mode filter r={RADIUS} 320x320 {LABELS} labels"
    return _bench("smooth", work, "scikit-image", Images(8, 64, 2), **options)


def bench_ward(**options: Any) -> Iterator[list[Row]]:
    """Agglomerative clustering of the pixels of maps."""
    work = "ward 1,024 points n=8"
    return _bench("ward", work, "scikit-learn", Images(8, 512, 8), **options)


def bench_photographs(**options: Any) -> Iterator[list[Row]]:
    """Labels of a grid resized and smoothed, ARI-BG, MBO_i and MBO_c."""
    work = f"photographs 14x14 labels, mode filter r={RADIUS}, ARI-BG MBO_i MBO_c at 320x320"
    return _bench("photographs", work, "scikit", Images(32, 256, 4), **options)


def _bench(
    bench: str,
    work: str,
    peer: str,
    default: Images,
    *,
    repeats: int,
    images: Images | None = None,
    rounds: int | None = None,
    tell: Tell | None = None,
) -> Iterator[list[Row]]:
    size = images or default
    ours = size.ours_cuda if torch.cuda.is_available() else size.ours_cpu
    counts = {"ours": ours, peer: size.peer}
    jobs = [
        [{"bench": bench, "variant": variant, "images": count, "repeats": min(repeats, 5)}]
        for variant, count in counts.items()
    ]
    timings = alone(jobs, rounds=rounds or rounds_here(), tell=tell)
    found = {variant: timing for variant, (timing,) in zip(counts, timings, strict=True)}
    rows = compare(work, found, peer=peer)
    for row in rows:
        row["images"] = counts[str(row["variant"])]
        row["seconds_per_10000"] = short(10 * cast(float, row["median_ms"]))
    yield rows


def time_evaluate(variant: str, *, images: int, repeats: int) -> Timing:
    """Time of an image; ``variant`` is "ours" or the peer."""
    peer = partial(evaluate_peer, k=K)
    return _per_image(variant, evaluate_ours, peer, orientation_maps(images), repeats)


def time_smooth(variant: str, *, images: int, repeats: int, side: int = 320) -> Timing:
    """Time of an image; ``variant`` is "ours" or the peer."""
    inputs = (label_maps(images, side, LABELS),)
    ours, peer = partial(mode_filter, radius=RADIUS), partial(smooth_peer, radius=RADIUS)
    return _per_image(variant, ours, peer, inputs, repeats)


def time_ward(variant: str, *, images: int, repeats: int) -> Timing:
    """Time of an image; ``variant`` is "ours" or the peer."""
    inputs = (orientation_maps(images)[0].flatten(2).transpose(1, 2),)
    ours, peer = partial(ward, threshold=THRESHOLD), partial(ward_peer, threshold=THRESHOLD)
    return _per_image(variant, ours, peer, inputs, repeats)


def time_photographs(variant: str, *, images: int, repeats: int, side: int = 320) -> Timing:
    """Time of an image; ``variant`` is "ours" or the peer."""
    protocol = replace(PHOTO_PROTOCOLS["rf2023"], mask_side=side)
    peer = partial(photographs_peer, radius=side // 14)

    def ours(grid: Tensor, instances: Tensor, classes: Tensor) -> dict[str, Tensor]:
        return protocol.score(protocol.fit_labels(grid), instances, classes)

    return _per_image(variant, ours, peer, photograph_masks(images, side), repeats)


def evaluate_ours(maps: Tensor, instances: Tensor) -> tuple[Tensor, Tensor]:
    """ARI-BG and MBO of each image."""
    labels = kmeans(maps.flatten(2).transpose(1, 2), K).labels.view_as(instances)
    return (
        adjusted_rand_index(labels, instances, skip=(0, -1)),
        mean_best_overlap(labels, instances),
    )


def _per_image(
    variant: str,
    ours: Callable[..., object],
    peer: Callable[..., object],
    inputs: tuple[Tensor, ...],
    repeats: int,
) -> Timing:
    if variant == "ours":
        tune_cpu()  # as our command does
        there = [x.to(this_device()) for x in inputs]
        timing = measure(lambda: ours(*there), warmup=1, repeats=repeats)
    else:
        timing = measure(lambda: peer(*inputs), warmup=1, repeats=repeats)
    return timing.per(len(inputs[0]))
