"""Objects in images, found by a trained model."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate.cluster import cluster, count_clusters, sort_labels
from rotating_features.evaluate.images import Images, as_batch
from rotating_features.evaluate.orientation import THRESHOLD, orientation_map
from rotating_features.models import AutoEncoder


@dataclass(frozen=True)
class Discovery:
    """What a model sees in images; each tensor has the batch in front unless there was one image.

    All maps have the size of the images that were given.
    """

    labels: Tensor
    """(b, h, w) int64: 0 for background, 1.. for objects, the largest first."""
    uncertainty: Tensor
    """(b, h, w): distance to the nearest cluster centre, 0 for a pixel beyond doubt."""
    orientations: Tensor
    """(b, n, h, w): where each pixel points; zero where the model sees nothing."""
    reconstruction: Tensor
    """(b, c, h, w): the image as the model draws it."""

    @property
    def objects(self) -> Tensor:
        """(b,) int64: how many objects were found. None is an answer, too."""
        objects = self.labels.reshape(-1, *self.labels.shape[-2:]) - 1  # background is now -1
        return count_clusters(objects, int(objects.max()) + 1).view(self.labels.shape[:-2])


@torch.no_grad()
def discover(
    model: AutoEncoder,
    images: Images,
    *,
    k: int | None = None,
    distance_threshold: float | None = None,
    magnitude_threshold: float = THRESHOLD,
    seed: int = 0,
) -> Discovery:
    """Objects in one image or many, with no labels and no training.

    Images of another size than the model's are resized for it, and its answer is resized back.

    Args:
        model: A trained model, for instance from :func:`rotating_features.load`.
        images: Torch (c, h, w), NumPy (h, w, c), uint8 or float in [0, 1], or PIL; a batch of
            them, or a list.
        k: Number of clusters, background included, for k-means.
        distance_threshold: For agglomerative clustering, which finds the number of objects.
            This is the default, with a threshold of 5.
        magnitude_threshold: Features shorter than this have no say.
        seed: Decides where k-means starts.

    Example:
        >>> from rotating_features.models import RotatingAutoEncoder
        >>> model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=4, rotation_dim=3)
        >>> found = discover(model, torch.rand(1, 32, 32), k=3)
        >>> found.labels.shape
        torch.Size([32, 32])
    """
    if k is not None and distance_threshold is not None:
        raise InputError("Pass either k (k-means) or distance_threshold (agglomerative), not both.")
    if not model.rotation_dim:
        raise InputError(
            "discover should get a model whose features point somewhere, "
            f"got a {type(model).__name__}, whose features are plain numbers.\n"
            "  Train a rotating or a complex one."
        )
    x, single = as_batch(images, model.channels)
    was_training = model.training
    model.eval()
    try:
        device = next(model.parameters()).device
        given = x.shape[-2:]
        if given != model.size:
            x = F.interpolate(x, model.size, mode="bilinear", antialias=True).clamp(0, 1)
        reconstruction, z = model(x.to(device))
    finally:
        model.train(was_training)

    orientations = orientation_map(z, threshold=magnitude_threshold)
    if k is not None:
        labels, uncertainty, centers = cluster(orientations, "kmeans", k=k, seed=seed)
    else:
        threshold = 5.0 if distance_threshold is None else distance_threshold
        labels, uncertainty, centers = cluster(
            orientations, "agglomerative", distance_threshold=threshold
        )
    maps = (
        _resize(sort_labels(labels, centers).unsqueeze(1).float(), given).squeeze(1).long(),
        _resize(uncertainty.unsqueeze(1), given).squeeze(1),
        _resize(orientations, given),
        F.interpolate(reconstruction, given, mode="bilinear", antialias=True)
        if given != model.size
        else reconstruction,
    )
    return Discovery(*(m.squeeze(0) if single else m for m in maps))


def _resize(x: Tensor, size: tuple[int, int] | torch.Size) -> Tensor:
    return x if x.shape[-2:] == size else F.interpolate(x, size, mode="nearest")
