"""What others offer, an image at a time."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


def evaluate_peer(maps: Tensor, instances: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """ARI-BG and MBO of each image, by scikit-learn and NumPy."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    settings: dict[str, Any] = {"n_init": 10, "random_state": 0}
    kmeans = KMeans(k, **settings)
    ari, mbo = [], []
    for image, truth in zip(maps.numpy(), instances.numpy(), strict=True):
        points = image.reshape(len(image), -1).T
        labels = kmeans.fit_predict(points).reshape(truth.shape)
        ari.append(adjusted_rand_score(truth[truth > 0], labels[truth > 0]))
        mbo.append(_best_overlap(labels, truth))
    return torch.tensor(ari).double(), torch.tensor(mbo).double()


def photographs_peer(
    grid: Tensor, instances: Tensor, classes: Tensor, radius: int
) -> tuple[Tensor, Tensor, Tensor]:
    """ARI-BG, MBO_i and MBO_c of each photograph, by scikit-learn, scikit-image and NumPy."""
    from sklearn.metrics import adjusted_rand_score

    labels = F.interpolate(grid.unsqueeze(1).float(), instances.shape[1:]).squeeze(1)
    rows = []
    for image, truth, kind in zip(
        smooth_peer(labels, radius).numpy(), instances.numpy(), classes.numpy(), strict=True
    ):
        ari = adjusted_rand_score(truth[truth > 0], image[truth > 0])
        rows.append((ari, _best_overlap(image, truth), _best_overlap(image, kind)))
    ari, mbo_i, mbo_c = torch.tensor(rows).double().unbind(1)
    return ari, mbo_i, mbo_c


def _best_overlap(labels: np.ndarray, truth: np.ndarray) -> float:
    counted = truth != -1
    found = [(labels == j) & counted for j in np.unique(labels)]
    objects = [truth == label for label in np.unique(truth[truth > 0])]
    return float(np.mean([max((o & f).sum() / (o | f).sum() for f in found) for o in objects]))


def smooth_peer(labels: Tensor, radius: int) -> Tensor:
    """The mode filter by scikit-image."""
    from skimage.filters.rank import modal
    from skimage.morphology import disk

    images = labels.numpy().astype(np.uint8)
    return torch.from_numpy(np.stack([modal(image, disk(radius)) for image in images])).long()


def ward_peer(points: Tensor, threshold: float) -> Tensor:
    """Ward's clusters by scikit-learn."""
    from sklearn.cluster import AgglomerativeClustering

    settings: dict[str, Any] = {"n_clusters": None, "distance_threshold": threshold}
    model = AgglomerativeClustering(**settings)
    return torch.from_numpy(np.stack([model.fit_predict(image) for image in points.numpy()]))
