"""Datasets and models from settings."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from rich.progress import Progress, SpinnerColumn, TextColumn

from rotating_features._check import InputError
from rotating_features.data import (
    DATASETS,
    PHOTOGRAPHS,
    ImageDataset,
    NpzDataset,
    Split,
    npz_name,
)
from rotating_features.experiments.config import DataConfig, ModelConfig
from rotating_features.models import MODELS, AutoEncoder


def make_dataset(data: DataConfig, split: Split) -> ImageDataset:
    """Images, drawn or read."""
    if data.dataset in PHOTOGRAPHS:
        raise InputError(
            f"{data.dataset} has photographs, which are not drawn images of one size.\n"
            "  Train on it, or segment it."
        )
    make = DATASETS[data.dataset]
    takes = _options(make)
    check_options(data, takes)
    values = dataclasses.asdict(data)
    if data.path is not None and "path" not in takes:  # drawn, so what was drawn may be read
        return NpzDataset(Path(data.path) / npz_name(data.dataset, split))
    options = {name: value for name, value in values.items() if name in takes}
    if "progress" not in takes:
        return make(split, **options)
    with _first_use() as progress:
        return make(split, progress=progress, **options)


@contextmanager
def _first_use() -> Iterator[Callable[[int], object]]:
    """A bar that appears when it is told of something: published files are turned into others."""
    with ExitStack() as stack:
        bar = Progress(SpinnerColumn(), TextColumn("{task.description}"), transient=True)

        def tell(images: int) -> None:
            if not bar.tasks:
                stack.enter_context(bar)
                bar.add_task("")
            said = f"first use of the published file: {images:,} images made quick to find"
            bar.update(bar.task_ids[0], description=said)

        yield tell


def check_options(data: DataConfig, takes: set[str]) -> None:
    """Raise ``InputError`` for a setting that the dataset would not heed."""
    defaults = dataclasses.asdict(DataConfig())
    for name, value in dataclasses.asdict(data).items():
        if name not in {"dataset", "path", *takes} and value != defaults[name]:
            known = ", ".join(sorted({"path", *takes} - {"split", "progress"}))
            raise InputError(
                f"{data.dataset} has no option {name}, got {name}={value}.\n  It has {known}."
            )


def make_model(
    model: ModelConfig, dataset: ImageDataset, *, seed: int, device: torch.device
) -> AutoEncoder:
    """A new model for images of this dataset."""
    if model.backbone is not None:
        raise InputError(
            f"Backbones are for photographs ({', '.join(PHOTOGRAPHS)}), got {model.backbone}."
        )
    classes = len(getattr(dataset, "class_names", ()))
    if model.kind == "classifier" and not classes:
        raise InputError(
            "The classifier should get a dataset with classes, for instance mnist1shape; "
            "this one has none."
        )
    return build_autoencoder(
        model,
        channels=dataset.channels,
        size=dataset.size,
        classes=classes,
        seed=seed,
        device=device,
    )


def build_autoencoder(
    model: ModelConfig, *, seed: int, device: torch.device, **sizes: Any
) -> AutoEncoder:
    """A new model of the kind asked for; ``sizes`` are what it must know of its input."""
    torch.manual_seed(seed)  # decides the weights' start; nothing later is drawn from it
    make: Any = MODELS[model.kind]
    takes = _options(make)
    values = dataclasses.asdict(model) | sizes
    return make(**{name: value for name, value in values.items() if name in takes}).to(device)


def _options(make: Any) -> set[str]:
    """Names of the arguments that a registry's entry leaves open."""
    fixed = set(cast("partial[Any]", make).keywords) if isinstance(make, partial) else set[str]()
    return set(inspect.signature(make).parameters) - fixed
