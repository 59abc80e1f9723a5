"""What runs on photographs do otherwise: crops, and a backbone that looks at them."""

import torch
from rich.progress import Progress

from rotating_features._check import InputError
from rotating_features.data import PHOTOGRAPHS, PhotographFiles, Split
from rotating_features.data.packing import check_any, pack
from rotating_features.data.resize import check_resize
from rotating_features.experiments.build import build_autoencoder, check_options
from rotating_features.experiments.config import DataConfig, Experiment, ModelConfig
from rotating_features.experiments.left_out import say_left_out
from rotating_features.features import (
    Backbone,
    open_backbone,
)
from rotating_features.models import AutoEncoder, OnFeatures
from rotating_features.models.on_features import suitable_dtype
from rotating_features.train.batches import Batches
from rotating_features.train.photo_feed import PhotoFeed, check_room

OPTIONS = {"side", "resize", "crops"}
"""What can be said of photographs but for where they are."""


def open_photographs(data: DataConfig, split: Split) -> PhotographFiles:
    """The files of a split."""
    return PHOTOGRAPHS[data.dataset](split, data.path)


def open_model_backbone(model: ModelConfig, device: torch.device) -> Backbone | None:
    """The network whose features the model takes, if it does not take pixels."""
    if model.backbone is None:
        return None
    return open_backbone(
        model.backbone,
        position_embedding=model.position_embedding,
        class_token=model.position_embedding,  # the released code lost both at once
        dtype=suitable_dtype(device),
        device=device,
    )


def make_photo_model(
    model: ModelConfig,
    data: DataConfig,
    backbone: Backbone | None,
    *,
    seed: int,
    device: torch.device,
) -> AutoEncoder:
    """A new model for crops of photographs, or for a backbone's features of them."""
    size = (data.side, data.side)
    if backbone is None:
        return build_autoencoder(model, channels=3, size=size, seed=seed, device=device)
    autoencoder = build_autoencoder(
        model,
        channels=backbone.channels,
        size=backbone.grid(size),
        features=True,
        seed=seed,
        device=device,
    )
    return OnFeatures(backbone, autoencoder, size=size).autoencoder  # which now knows its origin


def check_photographs(experiment: Experiment) -> int:
    """Find mistakes before a folder is made; how many places a grid has."""
    data, model = experiment.data, experiment.model
    check_options(data, OPTIONS)
    check_resize(data.side, data.resize)
    open_photographs(data, "test")
    images = open_photographs(data, "train")
    check_any(images)
    Batches(len(images), batch_size=experiment.train.batch_size, seed=0, draws=True)
    if model.kind == "classifier":
        raise InputError("Photographs come without classes to learn from, got kind=classifier.")
    if model.kind == "standard":
        raise InputError(
            "Photographs are scored by the objects found in them, and a standard model finds none, "
            "got kind=standard.\n  Its features are no vectors: train a rotating or complex one."
        )
    cpu = torch.device("cpu")
    backbone = open_model_backbone(model, cpu)
    made = make_photo_model(model, data, backbone, seed=0, device=cpu)
    return made.size[0] * made.size[1]


def check_memory(experiment: Experiment, device: torch.device) -> None:
    """Raise ``InputError`` if training would keep features that do not fit beside photographs."""
    data = experiment.data
    if data.crops is None or experiment.model.backbone is None:
        return
    backbone = open_model_backbone(experiment.model, torch.device("cpu"))
    assert backbone is not None
    images = open_photographs(data, "train")
    check_room(data.crops, len(images), backbone, data.side, device, read=False)


def make_feed(experiment: Experiment, backbone: Backbone | None, device: torch.device) -> PhotoFeed:
    """All training photographs on the device, decoded once."""
    data = experiment.data
    photographs = open_photographs(data, "train")
    with Progress() as bar:
        task = bar.add_task("reading photographs", total=len(photographs))
        packed = pack(
            photographs,
            side=data.side,
            how=data.resize,
            progress=lambda done: bar.update(task, completed=done),
        )
        say_left_out(packed.problems, bar.console)
    return PhotoFeed(
        packed,
        device,
        size=data.side,
        backbone=backbone,
        quarter_turns=data.dataset == "foodseg103",
        crops=data.crops,
    )
