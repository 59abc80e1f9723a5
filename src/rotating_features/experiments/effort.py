"""How long training will take here, roughly, before it is begun."""

import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from rotating_features.experiments.build import make_dataset, make_model
from rotating_features.experiments.config import Experiment

SHARE = {"cuda": 0.14, "cpu": 0.5}
"""Of the speed of large matrix products, what a step of the 4Shapes model reaches in the rows of
``benchmarks/results``: on an H200 with four models side by side, and on two CPU cores."""


def step_flops(experiment: Experiment) -> float:
    """Multiplications and additions of a step, counted on a model without numbers."""
    dataset = make_dataset(experiment.data, "test")
    meta = torch.device("meta")
    model = make_model(experiment.model, dataset, seed=0, device=meta)
    x = torch.empty(1, dataset.channels, *dataset.size, device=meta)
    labels = None
    if model.needs_labels:
        labels = torch.empty(1, len(getattr(dataset, "class_names", ())), device=meta)
    with FlopCounterMode(display=False) as counter:
        model.loss(x.expand(2, -1, -1, -1), labels=None if labels is None else labels.expand(2, -1))
    forward = counter.get_total_flops() / 2  # batch normalisation wants two images
    return 3 * forward * experiment.train.batch_size  # the backward pass is twice the forward


def machine_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Of a large matrix product on this machine, in a second."""
    side = 8192 if device.type == "cuda" else 1024
    a = torch.ones(side, side, device=device, dtype=dtype)
    tf32 = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True  # as in training
    try:
        for repeats in (3, 10):  # the first to warm up
            started = time.perf_counter()
            for _ in range(repeats):
                _ = a @ a
            if device.type == "cuda":
                torch.cuda.synchronize(device)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
    return 10 * 2 * side**3 / (time.perf_counter() - started)


def in_words(seconds: float) -> str:
    """Two digits are more than an estimate knows."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
