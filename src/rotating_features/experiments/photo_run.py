"""What runs on photographs do otherwise: crops, a backbone, scores under protocols of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.progress import Progress
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data import PHOTOGRAPHS, PhotographFiles, Split
from rotating_features.data.packing import check_any, pack
from rotating_features.data.resize import check_resize
from rotating_features.data.workers import Problem
from rotating_features.evaluate import cluster
from rotating_features.evaluate.baselines import block_masks, cluster_features, one_label
from rotating_features.evaluate.orientation import orientation_map
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS
from rotating_features.evaluate.photographs import Prepared, score_photographs
from rotating_features.experiments.build import build_autoencoder, check_options
from rotating_features.experiments.config import DataConfig, EvaluateConfig, Experiment, ModelConfig
from rotating_features.experiments.left_out import say_left_out
from rotating_features.experiments.study import Baseline
from rotating_features.features import (
    Backbone,
    FeatureCache,
    Key,
    cached,
    hash_image,
    open_backbone,
)
from rotating_features.models import AutoEncoder, Model, OnFeatures
from rotating_features.models.on_features import suitable_dtype
from rotating_features.train.batches import Batches
from rotating_features.train.photo_feed import PhotoFeed, check_room

SCORES: dict[str, tuple[str, ...]] = {
    "pascal-voc": ("ari_bg", "mbo_i", "mbo_c"),
    "foodseg103": ("mbo_c",),
    "folder": (),
}
"""What a dataset's masks allow to be scored."""
OPTIONS = {"side", "resize", "crops"}
"""What can be said of photographs but for where they are."""
BATCH = 32
BLOCKS = {"pascal-voc": 6, "foodseg103": 5}
"""Of the block masks: as many as give the paper's scores; it does not say."""


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


Batch = dict[str, dict[str, Tensor]]
Kept = dict[str, dict[int, Prepared]]


def score_photo_model(
    model: Model,
    data: DataConfig,
    settings: EvaluateConfig,
    *,
    split: Split = "test",
    images: int | None = None,
    kept: Kept | None = None,
    left_out: list[Problem] | None = None,
) -> Iterator[Batch]:
    """Scores of photographs under each protocol, a batch at a time; see ``score_photographs``.

    ``kept`` holds prepared photographs by protocol, for those who score the same ones again. Files
    of a folder that are no images are passed over, as in training, and put into ``left_out``; a
    published split is scored as a whole or not at all.
    """
    if data.dataset != "folder":
        left_out = None
    elif left_out is None:
        left_out = []
    photographs = open_photographs(data, split)
    device = next(model.parameters()).device
    for name in settings.protocols:
        yield from score_photographs(
            predictor(model, settings),
            photographs,
            PHOTO_PROTOCOLS[name].at(data.side),
            images=images,
            batch_size=BATCH,
            scores=SCORES[data.dataset],
            device=device,
            kept=None if kept is None else kept.setdefault(name, {}),
            left_out=left_out,
        )


def names_of_tests(data: DataConfig) -> list[str]:
    """The names of the test photographs, by which they are known again where they have moved."""
    photographs = open_photographs(data, "test")
    names = (Path(photographs.name(index)) for index in range(len(photographs)))
    top = Path(data.path or "")
    inside = (path.relative_to(top) if path.is_relative_to(top) else path for path in names)
    return [path.as_posix().encode(errors="replace").decode() for path in inside]


def protocol_name(name: str, data: DataConfig) -> str:
    """Under which name scores of images of this size are kept."""
    return PHOTO_PROTOCOLS[name].at(data.side).name


def score_baseline(
    baseline: Baseline, experiment: Experiment, device: torch.device, *, seed: int
) -> Iterator[Batch]:
    """Scores of labels that take no learning, as :func:`score_photo_model` gives them."""
    data, settings = experiment.data, experiment.evaluate
    features, k = None, settings.k
    if baseline.startswith("k-means"):
        backbone = open_model_backbone(experiment.model, device)
        if backbone is None:
            raise InputError("k-means on features should have a backbone to make them, got none.")
        features = _features(backbone, settings)
    if k == "auto":
        raise InputError("Baselines should be told how many clusters there are, got k=auto.")
    for name in settings.protocols:
        protocol = PHOTO_PROTOCOLS[name].at(data.side)
        size = (protocol.mask_side, protocol.mask_side)

        def predict(x: Tensor, size: tuple[int, int] = size) -> Tensor:
            if features is not None:
                of_length_1 = baseline == "k-means"
                return cluster_features(features(x), k, normalise=of_length_1, seed=seed).labels
            if baseline == "blocks":
                return block_masks(BLOCKS[data.dataset], size).expand(len(x), -1, -1)
            return one_label(len(x), size)

        yield from score_photographs(
            predict,
            open_photographs(data, "test"),
            protocol,
            images=settings.images,
            batch_size=BATCH,
            scores=SCORES[data.dataset],
            device=device,
        )


def count_batches(data: DataConfig, settings: EvaluateConfig) -> int:
    """How many batches :func:`score_photo_model` has for the test images."""
    total = len(open_photographs(data, "test"))
    total = total if settings.images is None else min(settings.images, total)
    return -(-total // BATCH) * len(settings.protocols)


def predictor(model: Model, settings: EvaluateConfig) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Labels on the model's grid, and how unsure each is."""
    if isinstance(model, OnFeatures):
        inner, features = model.autoencoder, _features(model.backbone, settings)
    else:
        inner, features = model, _as_they_are

    @torch.no_grad()
    def predict(x: Tensor) -> tuple[Tensor, Tensor]:
        z = inner(features(x)).z
        if z is None:
            raise InputError("Objects are found by models whose features are vectors.")
        labels, doubt, _ = cluster(
            orientation_map(z, threshold=settings.magnitude_threshold),
            settings.cluster,
            k=settings.k,
            distance_threshold=settings.distance_threshold,
        )
        return labels, doubt

    return predict


def _features(backbone: Backbone, settings: EvaluateConfig) -> Callable[[Tensor], Tensor]:
    """The backbone, or what a cache remembers of it."""
    if settings.feature_cache is None:
        return backbone
    cache = FeatureCache(settings.feature_cache)

    def look_up(x: Tensor) -> Tensor:
        weights = backbone.fingerprint()
        keys = [Key(weights, "none", hash_image(image.cpu())) for image in x]  # as it is given
        return cached(backbone, cache, x, keys)

    return look_up


def _as_they_are(x: Tensor) -> Tensor:
    return x
