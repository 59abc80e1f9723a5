"""Objects in images, found by a trained model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.evaluate.cluster import Count, cluster, count_clusters, sort_labels
from rotating_features.evaluate.images import Images, as_batch
from rotating_features.evaluate.orientation import THRESHOLD, orientation_map
from rotating_features.evaluate.resize import resize_labels
from rotating_features.evaluate.smooth import mode_filter
from rotating_features.models import OnFeatures


class ObjectModel(Protocol):
    """What looks for objects: an autoencoder of images, or one of features with its backbone.

    Called with images (b, channels, *size) it gives what it reconstructs and its features ``z``,
    (b, n, c, h, w), on a grid that may be coarser than the images.
    """

    channels: int
    size: tuple[int, int]
    rotation_dim: int
    training: bool

    def __call__(self, x: Tensor, /) -> Any: ...
    def eval(self) -> Any: ...
    def train(self, mode: bool = ..., /) -> Any: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...


DISTANCE = 5.0
"""The threshold of agglomerative clustering where nothing is asked for. It suits grids of some
32 x 32 places: Ward's distances grow with their number."""
PHOTOGRAPH_CLUSTERS = 4
"""Of k-means, where nothing is asked of a model of features: the paper's for Pascal VOC."""


@dataclass(frozen=True)
class Discovery:
    """What a model sees in images; each tensor has the batch in front unless there was one image.

    All maps have the size of the images that were given, but for a reconstruction of features.
    """

    labels: Tensor
    """(b, h, w) int64: 0 for background, 1.. for objects, the largest first."""
    uncertainty: Tensor
    """(b, h, w): distance to the nearest cluster centre, 0 for a pixel beyond doubt."""
    orientations: Tensor
    """(b, n, h, w): where each pixel points; zero where the model sees nothing."""
    reconstruction: Tensor
    """(b, c, h, w): the image as the model draws it, or the features, on their own grid."""

    @property
    def objects(self) -> Tensor:
        """(b,) int64: how many objects were found. None is an answer, too."""
        objects = self.labels.reshape(-1, *self.labels.shape[-2:]) - 1  # background is now -1
        return count_clusters(objects, int(objects.max()) + 1).view(self.labels.shape[:-2])


@torch.no_grad()
def discover(
    model: ObjectModel,
    images: Images,
    *,
    k: Count | None = None,
    distance_threshold: float | None = None,
    magnitude_threshold: float = THRESHOLD,
    smooth: bool | int = True,
    seed: int = 0,
) -> Discovery:
    """Objects in one image or many, with no labels and no training.

    Images of another size than the model's are resized for it, and its answer is resized back. A
    model of features answers on a grid coarser than its images: then the labels go from the grid
    to the images in one step and their stairs are smoothed, and the uncertainty between the grid's
    points is interpolated.

    Args:
        model: A trained model, for instance from :func:`rotating_features.load`.
        images: Torch (c, h, w), NumPy (h, w, c), uint8 or float in [0, 1], or PIL; a batch of
            them, or a list.
        k: Number of clusters, background included, for k-means; or ``"auto"`` to find it. 4 is the
            default for a model of features.
        distance_threshold: For agglomerative clustering, which finds the number of objects. This
            is the default for a model of images, with a threshold of 5.
        magnitude_threshold: Features shorter than this have no say.
        smooth: Whether the labels of a coarse grid are smoothed, by a mode filter with the radius
            of a grid cell; or the radius in pixels, for any model.
        seed: Decides where k-means starts.

    Example:
        >>> from rotating_features.models import RotatingAutoEncoder
        >>> model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=4, rotation_dim=3)
        >>> found = discover(model, torch.rand(1, 32, 32), k=3)
        >>> found.labels.shape
        torch.Size([32, 32])
    """
    k, distance_threshold = choose_clusters(model, k, distance_threshold)
    x, single = as_batch(images, model.channels)
    given = x.shape[-2:]
    if given != model.size:
        x = F.interpolate(x, model.size, mode="bilinear", antialias=True).clamp(0, 1)
    reconstruction, orientations = look(model, x, magnitude_threshold=magnitude_threshold)
    labels, uncertainty = group(orientations, k=k, distance_threshold=distance_threshold, seed=seed)
    labels = resize_labels(labels, (given[0], given[1]))
    grid = orientations.shape[-2:]
    coarse = grid != model.size
    if radius := _radius(smooth, given, grid, coarse):
        labels = mode_filter(labels, radius)
    if not coarse and given != model.size:
        reconstruction = F.interpolate(reconstruction, given, mode="bilinear", antialias=True)
    doubt = uncertainty.unsqueeze(1)
    maps = (
        labels,
        (_bilinear(doubt, given) if coarse else _resize(doubt, given)).squeeze(1),
        _resize(orientations, given),
        reconstruction,
    )
    return Discovery(*(m.squeeze(0) if single else m for m in maps))


def choose_clusters(
    model: ObjectModel, k: Count | None = None, distance_threshold: float | None = None
) -> tuple[Count | None, float | None]:
    """``k`` and ``distance_threshold`` as asked for, or what suits the model; one of them is None.

    Raises ``InputError`` for what no image could answer.
    """
    if k is not None and distance_threshold is not None:
        raise InputError("Pass either k (k-means) or distance_threshold (agglomerative), not both.")
    if not model.rotation_dim:
        raise InputError(
            "discover should get a model whose features point somewhere, "
            f"got a {type(model).__name__}, whose features are plain numbers.\n"
            "  Train a rotating or a complex one."
        )
    h, w = model.autoencoder.size if isinstance(model, OnFeatures) else model.size
    if isinstance(k, int) and not 1 <= k <= h * w:
        raise InputError(f"k should lie between 1 and the {h * w} places of a map, got {k}.")
    if distance_threshold is not None and not distance_threshold > 0:
        raise InputError(f"distance_threshold should be above 0, got {distance_threshold}.")
    if k is None and distance_threshold is None:
        return (PHOTOGRAPH_CLUSTERS, None) if isinstance(model, OnFeatures) else (None, DISTANCE)
    return k, distance_threshold


@torch.no_grad()
def look(
    model: ObjectModel, x: Tensor, *, magnitude_threshold: float = THRESHOLD
) -> tuple[Tensor, Tensor]:
    """What the model draws, and where each place of its grid points: the half before clustering.

    Args:
        model: As in :func:`discover`.
        x: Images of the model's size, (b, c, h, w) in [0, 1].
        magnitude_threshold: As in :func:`discover`.
    """
    was_training = model.training
    model.eval()
    try:
        reconstruction, z = model(x.to(next(model.parameters()).device))
    finally:
        model.train(was_training)
    return reconstruction, orientation_map(z, threshold=magnitude_threshold)


def group(
    orientations: Tensor, *, k: Count | None, distance_threshold: float | None, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Labels, named as in :class:`Discovery`, and uncertainty: the half after the model.

    Args:
        orientations: From :func:`look`, (b, n, h, w); the answers are (b, h, w).
        k, distance_threshold: From :func:`choose_clusters`.
        seed: As in :func:`discover`.
    """
    if k is not None:
        labels, uncertainty, centers = cluster(orientations, "kmeans", k=k, seed=seed)
    else:
        labels, uncertainty, centers = cluster(
            orientations, "agglomerative", distance_threshold=distance_threshold
        )
    return sort_labels(labels, centers), uncertainty


def _radius(smooth: bool | int, given: torch.Size, grid: torch.Size, coarse: bool) -> int:
    """Of the mode filter: a cell of the grid in pixels, for models that see coarsely."""
    if isinstance(smooth, bool):
        return min(given[0] // grid[0], given[1] // grid[1]) if smooth and coarse else 0
    return smooth


def _bilinear(x: Tensor, size: torch.Size) -> Tensor:
    return F.interpolate(x, size, mode="bilinear")


def _resize(x: Tensor, size: tuple[int, int] | torch.Size) -> Tensor:
    return x if x.shape[-2:] == size else F.interpolate(x, size, mode="nearest")
