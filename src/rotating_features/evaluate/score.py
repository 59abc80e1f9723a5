"""A model's scores on a dataset, image by image."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.sample import ImageDataset, Labelled
from rotating_features.evaluate.cluster import Count, Method, cluster, count_clusters, sort_labels
from rotating_features.evaluate.orientation import THRESHOLD, orientation_map
from rotating_features.evaluate.protocols import PROTOCOLS
from rotating_features.evaluate.semantic import (
    accuracy,
    label_pixels,
    match_randomly,
    semantic_scores,
)
from rotating_features.models import AutoEncoder, RotatingClassifier


@torch.no_grad()
def score(
    model: AutoEncoder,
    dataset: ImageDataset,
    *,
    protocols: tuple[str, ...],
    images: int | None = None,
    batch_size: int | None = None,
    method: Method = "kmeans",
    k: Count | None = None,
    distance_threshold: float | None = None,
    magnitude_threshold: float = THRESHOLD,
    seed: int = 0,
) -> Iterator[dict[str, dict[str, Tensor]]]:
    """Scores of every image under each protocol, a batch at a time.

    Args:
        model: A trained model, in eval mode.
        dataset: Where the images come from; the last batch may be smaller, none is dropped.
        protocols: Names out of ``PROTOCOLS``.
        images: Score only the first so many. Default: all.
        batch_size: Images at a time; it does not change the scores. Default: what suits the model
            and its device.
        method, k, distance_threshold, seed: As in :func:`cluster`.
        magnitude_threshold: As in :func:`orientation_map`.

    Yields:
        ``{protocol: {score: (b,) tensor}}``, with the scores ``mse``, ``ari_bg``, ``mbo_i``,
        ``clusters`` and ``uncertainty``. A model without vectors finds no objects and has
        ``mse`` alone. A classifier on images with classes also has ``iou``, ``iou_random`` (the
        baseline) and ``accuracy``.
    """
    if unknown := set(protocols) - set(PROTOCOLS):
        raise InputError(f"A protocol should be one of {list(PROTOCOLS)}, got {sorted(unknown)}.")
    device = next(model.parameters()).device
    batch_size = suitable_batch_size(model) if batch_size is None else batch_size
    total = len(dataset) if images is None else min(images, len(dataset))
    for start in range(0, total, batch_size):
        indices = np.arange(start, min(start + batch_size, total))
        x, instances, classes = dataset.draw(indices)
        x, instances = x.to(device), instances.to(device)
        reconstruction, z = model(x)
        shared = {"mse": (reconstruction - x).double().square().mean((1, 2, 3))}
        if z is None:
            yield dict.fromkeys(protocols, shared)
            continue
        orientations = orientation_map(z, threshold=magnitude_threshold)
        told = None
        if isinstance(model, RotatingClassifier) and classes is not None:
            told, classes = model.classify(x), classes.to(device)
            present = told.probabilities > 0.5
            by_class = label_pixels(
                orientations, told.z, present, magnitude_threshold=magnitude_threshold
            )
            shared["iou"] = semantic_scores(by_class, classes, model.classes)["iou"]
            if isinstance(dataset, Labelled):
                labels = dataset.draw_labels(indices).to(device)
                shared["accuracy"] = accuracy(told.probabilities, labels)
        rows = {}
        for name in protocols:
            protocol = PROTOCOLS[name]
            labels, uncertainty, centers = cluster(
                orientations,
                method,
                k=k,
                distance_threshold=distance_threshold,
                mask=protocol.clustering_mask(instances),
                seed=seed,
            )
            rows[name] = {
                **shared,
                **protocol.score(labels, instances),
                "clusters": count_clusters(labels, centers.shape[1]),
                "uncertainty": uncertainty.mean((1, 2)).double(),
            }
            if told is not None and classes is not None:
                found = sort_labels(labels, centers)
                lots = match_randomly(found, told.probabilities > 0.5, seed=seed, images=indices)
                rows[name]["iou_random"] = semantic_scores(lots, classes, told.z.shape[2])["iou"]
        yield rows


def suitable_batch_size(model: AutoEncoder) -> int:
    """How many images :func:`score` takes at a time: enough to keep a GPU busy, if there is one."""
    if next(model.parameters()).device.type == "cpu":
        return 100
    h, w = model.size
    widest = max(model.channels * h * w, 2 * model.hidden_dim * h * w // 4)
    return max(1, min(1000, 2**27 // ((model.rotation_dim + 1) * widest)))
