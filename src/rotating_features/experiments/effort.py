"""How long training will take here, roughly, before it is begun."""

import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments.build import make_dataset, make_model
from rotating_features.experiments.config import Experiment
from rotating_features.experiments.photo_run import (
    make_photo_model,
    open_model_backbone,
    open_photographs,
)
from rotating_features.features import Backbone

SHARE = {"cuda": 0.14, "cpu": 0.5}
"""Of the speed of large matrix products, what a step of the 4Shapes model reaches in the rows of
``benchmarks/results``: on an H200 with four models side by side, and on two CPU cores."""


def step_flops(experiment: Experiment) -> float:
    """Multiplications and additions of a step, counted on a model without numbers."""
    meta, seen = torch.device("meta"), 0.0
    labels = None
    if experiment.data.dataset in PHOTOGRAPHS:
        backbone = open_model_backbone(experiment.model, torch.device("cpu"))
        model = make_photo_model(experiment.model, experiment.data, backbone, seed=0, device=meta)
        x = torch.empty(2, model.channels, *model.size, device=meta)
        if backbone is not None and experiment.data.crops is None:
            seen = _crop_flops(backbone, experiment.data.side)
    else:
        dataset = make_dataset(experiment.data, "test")
        model = make_model(experiment.model, dataset, seed=0, device=meta)
        x = torch.empty(2, dataset.channels, *dataset.size, device=meta)
        if model.needs_labels:
            labels = torch.empty(2, len(getattr(dataset, "class_names", ())), device=meta)
    with FlopCounterMode(display=False) as counter:
        model.loss(x, labels=labels)
    forward = counter.get_total_flops() / 2  # batch normalisation wants two images
    # The backward pass is twice the forward; a backbone has none.
    return (3 * forward + seen) * experiment.train.batch_size


def look_flops(experiment: Experiment) -> float:
    """Those of a backbone that looks at fixed crops before the first step; 0 if there is none."""
    if experiment.data.crops is None:
        return 0.0
    backbone = open_model_backbone(experiment.model, torch.device("cpu"))
    if backbone is None:
        return 0.0
    looks = experiment.data.crops * len(open_photographs(experiment.data, "train"))
    return looks * _crop_flops(backbone, experiment.data.side)


def _crop_flops(backbone: Backbone, side: int) -> float:
    """Of a backbone for one crop; it is moved to where there are no numbers."""
    meta = torch.device("meta")
    with FlopCounterMode(display=False) as counter:
        backbone.to(meta)(torch.empty(1, 3, side, side, dtype=torch.uint8, device=meta))
    return counter.get_total_flops()


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
