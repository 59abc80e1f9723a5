"""One experiment from data to scores, for one seed or several."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from rich import get_console
from rich.progress import track

from rotating_features._check import InputError
from rotating_features._commit import commit
from rotating_features.data import PHOTOGRAPHS, SPLITS, ImageDataset
from rotating_features.data.workers import Problem
from rotating_features.evaluate import DEFAULT_PROTOCOL, PHOTO_PROTOCOLS, PROTOCOLS, score
from rotating_features.evaluate.score import suitable_batch_size
from rotating_features.experiments import scores
from rotating_features.experiments.build import make_dataset, make_model
from rotating_features.experiments.config import DataConfig, EvaluateConfig, Experiment, ModelConfig
from rotating_features.experiments.folders import Run
from rotating_features.experiments.left_out import note_left_out, say_left_out
from rotating_features.experiments.photo_run import (
    check_photographs,
    make_feed,
    make_photo_model,
    open_model_backbone,
)
from rotating_features.experiments.photo_scores import (
    Kept,
    count_batches,
    names_of_tests,
    score_photo_model,
)
from rotating_features.experiments.provenance import note_machine
from rotating_features.features import Backbone
from rotating_features.machine import can_compile, pick_compile, pick_precision
from rotating_features.models import AutoEncoder, OnFeatures, load
from rotating_features.train import Trainee, train
from rotating_features.train.batches import Batches
from rotating_features.train.checkpoint import is_finished
from rotating_features.train.photo_feed import PhotoFeed
from rotating_features.train.together import SIDE_BY_SIDE

VALIDATION_IMAGES = 200


def resolve(experiment: Experiment, device: torch.device) -> Experiment:
    """The experiment with every ``auto`` decided for this machine; a resumed run keeps it so."""
    t = experiment.train
    if t.compile == "yes" and not can_compile(device):
        raise InputError(
            f"compile=yes needs {'triton' if device.type == 'cuda' else 'a C++ compiler'}, and "
            "there is none here.\n  Install one, or leave --train.compile at auto."
        )
    precision = pick_precision(device) if t.precision == "auto" else t.precision
    wanted = (
        pick_compile(device, t.steps * t.batch_size) if t.compile == "auto" else t.compile == "yes"
    )
    decided = dataclasses.replace(t, precision=precision, compile="yes" if wanted else "no")
    return dataclasses.replace(experiment, train=decided)


def check(experiment: Experiment) -> None:
    """Find mistakes that would only show once training is under way, before a folder is made."""
    check_scoring(experiment.model, experiment.data, experiment.evaluate)
    if not experiment.model.position_embedding and experiment.model.backbone is None:
        raise InputError(
            "Positions are left out of a backbone's features, got no --model.backbone."
        )
    if experiment.data.dataset in PHOTOGRAPHS:
        pixels = check_photographs(experiment)
    else:
        pixels = _check_images(experiment)
    k = experiment.evaluate.k
    if experiment.evaluate.cluster == "kmeans" and k != "auto" and k > pixels:
        raise InputError(f"k should be at most the number of pixels, {pixels}, got k={k}.")


def check_scoring(model: ModelConfig, data: DataConfig, settings: EvaluateConfig) -> None:
    """Raise ``InputError`` if these images are not scored so."""
    if settings.feature_cache is not None and model.backbone is None:
        raise InputError("feature_cache keeps a backbone's features, and there is no backbone.")
    photographs = data.dataset in PHOTOGRAPHS
    known = PHOTO_PROTOCOLS if photographs else PROTOCOLS
    if odd := sorted(set(settings.protocols) - set(known)):
        raise InputError(
            f"{'Photographs' if photographs else 'Drawn images'} are scored by "
            f"{', '.join(known)}, got {', '.join(odd)}.\n"
            "  Choose with --evaluate.protocols or, for evaluate, with --protocol."
        )


def _check_images(experiment: Experiment) -> int:
    """How many pixels an image has."""
    datasets = [make_dataset(experiment.data, split) for split in SPLITS]
    make_model(experiment.model, datasets[0], seed=0, device=torch.device("cpu"))
    Batches(len(datasets[0]), batch_size=experiment.train.batch_size, seed=0)
    return datasets[0].size[0] * datasets[0].size[1]


def train_runs(runs: list[Run], device: torch.device) -> None:
    """Train until every run's last step is done: side by side on a GPU, else one by one."""
    commit()  # as it is now, for what will be written at the end
    experiment = runs[0].experiment
    runs = [run for run in runs if not is_finished(run.folder, experiment.train.steps)]
    if not runs:
        return
    data, model = experiment.data, experiment.model
    if data.dataset in PHOTOGRAPHS:
        backbone = open_model_backbone(model, device)
        images = make_feed(experiment, backbone, device)
        for run in runs:
            note_left_out(run.folder, images.problems)
        make = partial(make_photo_model, model, data, backbone)
        validate = _photo_validation(experiment, backbone)
    else:
        images = make_dataset(data, "train")
        make = partial(make_model, model, images)
        validate = _validation(experiment)
    at_once = SIDE_BY_SIDE if device.type == "cuda" else 1
    for start in range(0, len(runs), at_once):
        group = runs[start : start + at_once]
        for run in group:
            note_machine(run.folder, device)
        trainees = [
            Trainee(make(seed=run.seed, device=device), run.folder, run.seed) for run in group
        ]
        _train_together(group, trainees, images, validate)


def _train_together(
    runs: list[Run],
    trainees: list[Trainee],
    images: ImageDataset | PhotoFeed,
    validate: Callable[[AutoEncoder], dict[str, float]],
) -> None:
    t = runs[0].experiment.train
    seeds = ", ".join(str(run.seed) for run in runs)
    train(
        trainees,
        images,
        steps=t.steps,
        batch_size=t.batch_size,
        lr=t.lr,
        warmup_steps=t.warmup_steps,
        cooldown_steps=t.cooldown_steps,
        grad_clip=t.grad_clip,
        weight_decay=t.weight_decay,
        precision="bfloat16" if t.precision == "bfloat16" else "float32",
        compiled=t.compile == "yes",
        log_every=t.log_every,
        checkpoint_every=t.checkpoint_every,
        validate_every=t.validate_every,
        validate=validate,
        title=f"{runs[0].name}, seed{'s'[: len(runs) > 1]} {seeds}",
    )


def evaluate_run(
    run: Run,
    settings: EvaluateConfig,
    device: torch.device,
    *,
    data: DataConfig | None = None,
    mark: str = "",
    backbone: str | None = None,
) -> list[dict[str, Any]]:
    """Score the run's model, add the rows to its ``scores.csv``, and give them back.

    Args:
        run: With a trained model in its folder.
        settings: How to score.
        device: Where.
        data: Other test images than the run's own.
        mark: Tells rows of these from those of the run's own, where ``data`` do not.
        backbone: Where the model's backbone is now, if it has moved.
    """
    check_scoring(run.experiment.model, data or run.experiment.data, settings)
    model = load(run.folder, device=device, backbone=backbone)
    which = mark if data is None else scores.describe_data(data, run.experiment.data)
    data = data or run.experiment.data
    left_out: list[Problem] = []
    if data.dataset in PHOTOGRAPHS:
        batches = score_photo_model(
            model, data, settings, images=settings.images, left_out=left_out
        )
        total = count_batches(data, settings)
    else:
        assert isinstance(model, AutoEncoder)
        dataset, batch_size = make_dataset(data, "test"), suitable_batch_size(model)
        batches = score(
            model,
            dataset,
            protocols=settings.protocols,
            images=settings.images,
            batch_size=batch_size,
            **_clustering(settings),
        )
        total = -(-min(len(dataset), settings.images or len(dataset)) // batch_size)
    shown = track(batches, f"scoring seed {run.seed}", total=total)
    rows = scores.to_rows(shown, clustering=scores.describe(settings), data=which)
    say_left_out(left_out, get_console())
    if not rows:
        raise InputError(f"None of the {len(set(left_out))} photographs to score could be read.")
    names = names_of_tests(data) if data.dataset in PHOTOGRAPHS else None
    if names is not None:
        rows = [row | {"name": names[row["image"]]} for row in rows]
    scores.merge(run.folder, rows, scores.describe_protocols(data, settings), names)
    return rows


def _clustering(settings: EvaluateConfig) -> dict[str, Any]:
    return {
        "method": settings.cluster,
        "k": settings.k,
        "distance_threshold": settings.distance_threshold,
        "magnitude_threshold": settings.magnitude_threshold,
    }


def _photo_validation(
    experiment: Experiment, backbone: Backbone | None
) -> Callable[[AutoEncoder], dict[str, float]]:
    data = experiment.data
    settings = dataclasses.replace(
        experiment.evaluate, protocols=experiment.evaluate.protocols[:1], feature_cache=None
    )
    kept: Kept = {}

    def validate(model: AutoEncoder) -> dict[str, float]:
        whole = model
        if backbone is not None:
            whole = OnFeatures(backbone, model, size=(data.side, data.side))
        batches = score_photo_model(
            whole, data, settings, split="val", images=VALIDATION_IMAGES, kept=kept
        )
        names = ("ari_bg", "mbo_i", "mbo_c", "clusters")
        return {
            f"val_{name}": summary[name]
            for summary in scores.summarise(scores.to_rows(batches, clustering="")).values()
            for name in names
            if name in summary
        }

    return validate


def _validation(experiment: Experiment) -> Callable[[AutoEncoder], dict[str, float]]:
    dataset = make_dataset(experiment.data, "val")

    def validate(model: AutoEncoder) -> dict[str, float]:
        batches = score(
            model,
            dataset,
            protocols=(DEFAULT_PROTOCOL,),
            images=VALIDATION_IMAGES,
            **_clustering(experiment.evaluate),
        )
        rows = scores.to_rows(batches, clustering="")
        summary = scores.summarise(rows)[DEFAULT_PROTOCOL, ""]
        kept = ("mse", "ari_bg", "mbo_i", "iou", "accuracy")
        return {f"val_{name}": summary[name] for name in kept if name in summary}

    return validate
