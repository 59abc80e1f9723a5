"""Scores of models and baselines on photographs, under protocols of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data import Split
from rotating_features.data.workers import Problem
from rotating_features.evaluate import cluster
from rotating_features.evaluate.baselines import block_masks, cluster_features, one_label
from rotating_features.evaluate.orientation import orientation_map
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS
from rotating_features.evaluate.photographs import Prepared, score_photographs
from rotating_features.experiments.config import DataConfig, EvaluateConfig, Experiment
from rotating_features.experiments.photo_run import open_model_backbone, open_photographs
from rotating_features.experiments.study import Baseline
from rotating_features.features import Backbone, FeatureCache, Key, cached, hash_image
from rotating_features.models import Model, OnFeatures

SCORES: dict[str, tuple[str, ...]] = {
    "pascal-voc": ("ari_bg", "mbo_i", "mbo_c"),
    "foodseg103": ("mbo_c",),
    "folder": (),
}
"""What a dataset's masks allow to be scored."""
BATCH = 32
BLOCKS = {"pascal-voc": 6, "foodseg103": 5}
"""Of the block masks: as many as give the paper's scores; it does not say."""

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
