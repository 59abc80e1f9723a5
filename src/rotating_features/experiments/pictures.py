"""Pictures of runs: what a model sees in a few test images, and how it learned."""

from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from rotating_features._files import replacing
from rotating_features.data import PHOTOGRAPHS, ImageDataset, Sample
from rotating_features.evaluate import cluster, label_pixels, match_randomly, orientation_map
from rotating_features.evaluate.cluster import sort_labels
from rotating_features.experiments.build import make_dataset
from rotating_features.experiments.config import EvaluateConfig
from rotating_features.experiments.folders import Run
from rotating_features.experiments.photo_pictures import photo_sheet
from rotating_features.models import AutoEncoder, OnFeatures, RotatingClassifier, load
from rotating_features.plots import grid, learning_curve, semantic_grid
from rotating_features.plots.colors import color_image
from rotating_features.plots.grid import sheet
from rotating_features.train.checkpoint import read_metrics, steps_done

COLUMNS = 8


class Objects(NamedTuple):
    """What a model of vectors finds."""

    labels: Tensor
    uncertainty: Tensor
    orientations: Tensor


class Seen(NamedTuple):
    """What a model makes of images."""

    reconstruction: Tensor
    objects: Objects | None
    classes: tuple[Tensor, Tensor] | None  # by the classifier, and the baseline's


@torch.no_grad()
def look(model: AutoEncoder, image: Tensor, settings: EvaluateConfig) -> Seen:
    """The model's answer to the first images of a dataset."""
    x = image.to(next(model.parameters()).device)
    reconstruction, z = model(x)
    if z is None:
        return Seen(reconstruction, None, None)
    orientations = orientation_map(z, threshold=settings.magnitude_threshold)
    labels, uncertainty, centers = cluster(
        orientations,
        settings.cluster,
        k=settings.k,
        distance_threshold=settings.distance_threshold,
    )
    objects = Objects(sort_labels(labels, centers), uncertainty, orientations)
    classes = None
    if isinstance(model, RotatingClassifier):
        probabilities, z_class = model.classify(x)
        present = probabilities > 0.5
        lots = match_randomly(objects.labels, present, seed=0, images=range(len(x)))
        classes = label_pixels(orientations, z_class, present), lots
    return Seen(reconstruction, objects, classes)


def first_images(dataset: ImageDataset, count: int) -> Sample:
    return dataset.draw(range(min(count, len(dataset))))


def draw_pictures(run: Run, device: torch.device) -> list[Path]:
    """Draw the run's pictures into its folder; their paths."""
    model = load(run.folder, device=device)
    title = f"{run.title}: test images after {steps_done(run.folder):,} steps"
    if isinstance(model, OnFeatures) or run.experiment.data.dataset in PHOTOGRAPHS:
        data, evaluate = run.experiment.data, run.experiment.evaluate
        figures = {"objects.png": photo_sheet({"prediction": model}, data, evaluate, title)}
    else:
        figures = _figures(model, run, title)
    figures["learning-curve.png"] = learning_curve(read_metrics(run.folder), title=run.title)
    paths = []
    for name, figure in figures.items():
        with replacing(run.folder / "figures" / name) as partial:
            figure.savefig(partial, format="png")
        paths.append(run.folder / "figures" / name)
    return paths


def _figures(model: AutoEncoder, run: Run, title: str) -> dict[str, Figure]:
    dataset = make_dataset(run.experiment.data, "test")
    sample = first_images(dataset, COLUMNS)
    seen = look(model, sample.image, run.experiment.evaluate)
    figures = {"objects.png": _objects(sample, seen, title)}
    if seen.classes is not None and sample.classes is not None:
        figures["classes.png"] = semantic_grid(
            sample.image,
            sample.classes,
            *seen.classes,
            names=getattr(dataset, "class_names", ()),
            title=title,
        )
    return figures


def _objects(sample: Sample, seen: Seen, title: str) -> Figure:
    if seen.objects is None:
        pairs = {"input": sample.image, "reconstruction": seen.reconstruction}
        return sheet({name: color_image(x) for name, x in pairs.items()}, title=title)
    return grid(sample.image, sample.instances, seen.reconstruction, *seen.objects, title=title)
