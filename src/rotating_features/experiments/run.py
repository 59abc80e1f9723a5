"""One experiment from data to pictures, for one seed or several."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.progress import track

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data import DATASETS, SPLITS, ImageDataset, NpzDataset, Split
from rotating_features.evaluate import DEFAULT_PROTOCOL, cluster, orientation_map, score
from rotating_features.evaluate.discover import sort_labels
from rotating_features.evaluate.score import suitable_batch_size
from rotating_features.experiments import scores
from rotating_features.experiments.config import EvaluateConfig, Experiment, to_dict
from rotating_features.experiments.folders import Run
from rotating_features.models import RotatingAutoEncoder, load
from rotating_features.plots import grid, learning_curve
from rotating_features.train import Trainee, train
from rotating_features.train.batches import Batches
from rotating_features.train.checkpoint import read_metrics, steps_done
from rotating_features.train.machine import can_compile, pick_compile, pick_precision
from rotating_features.train.together import SIDE_BY_SIDE

VALIDATION_IMAGES = 200
PICTURES = 8


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


def make_dataset(experiment: Experiment, split: Split) -> ImageDataset:
    """The experiment's images, drawn or read."""
    data = experiment.data
    if data.path is not None:
        return NpzDataset(Path(data.path) / f"4Shapes_{split}.npz")
    return DATASETS[data.dataset](split, seed=data.seed, ring_diameter=data.ring_diameter)


def check(experiment: Experiment) -> None:
    """Find mistakes that would only show once training is under way, before a folder is made."""
    datasets = [make_dataset(experiment, split) for split in SPLITS]
    Batches(len(datasets[0]), batch_size=experiment.train.batch_size, seed=0)
    pixels = datasets[0].size[0] * datasets[0].size[1]
    if experiment.evaluate.cluster == "kmeans" and experiment.evaluate.k > pixels:
        raise InputError(
            f"k should be at most the number of pixels, {pixels}, got k={experiment.evaluate.k}."
        )


def train_runs(runs: list[Run], device: torch.device) -> None:
    """Train until every run's last step is done: side by side on a GPU, else one by one."""
    at_once = SIDE_BY_SIDE if device.type == "cuda" else 1
    for start in range(0, len(runs), at_once):
        _train_together(runs[start : start + at_once], device)


def _train_together(runs: list[Run], device: torch.device) -> None:
    experiment, t = runs[0].experiment, runs[0].experiment.train
    dataset = make_dataset(experiment, "train")
    seeds = ", ".join(str(run.seed) for run in runs)
    train(
        [Trainee(_new_model(run, dataset, device), run.folder, run.seed) for run in runs],
        dataset,
        steps=t.steps,
        batch_size=t.batch_size,
        lr=t.lr,
        warmup_steps=t.warmup_steps,
        grad_clip=t.grad_clip,
        weight_decay=t.weight_decay,
        precision="bfloat16" if t.precision == "bfloat16" else "float32",
        compiled=t.compile == "yes",
        log_every=t.log_every,
        checkpoint_every=t.checkpoint_every,
        validate_every=t.validate_every,
        validate=_validation(experiment),
        title=f"{runs[0].name}, seed{'s'[: len(runs) > 1]} {seeds}",
    )


def _new_model(run: Run, dataset: ImageDataset, device: torch.device) -> RotatingAutoEncoder:
    torch.manual_seed(run.seed)  # decides the weights' start; nothing later is drawn from it
    return RotatingAutoEncoder(
        channels=dataset.channels, size=dataset.size, **to_dict(run.experiment.model)
    ).to(device)


def evaluate_run(run: Run, settings: EvaluateConfig, device: torch.device) -> list[dict[str, Any]]:
    """Score the run's model, add the rows to its ``scores.csv``, and give them back."""
    model = load(run.folder, device=device)
    dataset = make_dataset(run.experiment, "test")
    batch_size = suitable_batch_size(model)
    batches = score(
        model,
        dataset,
        protocols=settings.protocols,
        images=settings.images,
        batch_size=batch_size,
        **_clustering(settings),
    )
    total = len(dataset) if settings.images is None else min(settings.images, len(dataset))
    shown = track(batches, f"scoring seed {run.seed}", total=-(-total // batch_size))
    rows = scores.to_rows(shown, clustering=scores.describe(settings))
    scores.merge(run.folder, rows)
    return rows


@torch.no_grad()
def draw_pictures(run: Run, device: torch.device) -> list[Path]:
    """The run's pictures: what the model sees, and how it learned."""
    model = load(run.folder, device=device)
    dataset = make_dataset(run.experiment, "test")
    image, truth, _ = dataset.draw(range(min(PICTURES, len(dataset))))
    settings = _clustering(run.experiment.evaluate)
    output = model(image.to(device))
    orientations = orientation_map(output.z, threshold=settings.pop("magnitude_threshold"))
    labels, uncertainty, centers = cluster(orientations, **settings)
    figures = {
        "objects.png": grid(
            image,
            truth,
            output.reconstruction,
            sort_labels(labels, centers),
            uncertainty,
            orientations,
            title=f"{run.title}: unseen test images after {steps_done(run.folder):,} steps",
        ),
        "learning-curve.png": learning_curve(read_metrics(run.folder), title=run.title),
    }
    paths = []
    for name, figure in figures.items():
        with replacing(run.folder / "figures" / name) as partial:
            figure.savefig(partial, format="png")
        paths.append(run.folder / "figures" / name)
    return paths


def _clustering(settings: EvaluateConfig) -> dict[str, Any]:
    return {
        "method": settings.cluster,
        "k": settings.k,
        "distance_threshold": settings.distance_threshold,
        "magnitude_threshold": settings.magnitude_threshold,
    }


def _validation(experiment: Experiment) -> Callable[[RotatingAutoEncoder], dict[str, float]]:
    dataset = make_dataset(experiment, "val")

    def validate(model: RotatingAutoEncoder) -> dict[str, float]:
        batches = score(
            model,
            dataset,
            protocols=(DEFAULT_PROTOCOL,),
            images=VALIDATION_IMAGES,
            **_clustering(experiment.evaluate),
        )
        rows = scores.to_rows(batches, clustering="")
        summary = scores.summarise(rows)[DEFAULT_PROTOCOL, ""]
        return {
            "val_mse": summary["mse"],
            "val_ari_bg": summary["ari_bg"],
            "val_mbo_i": summary["mbo_i"],
        }

    return validate
