"""Labels that take no learning, to hold a model's scores against."""

import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features._check import InputError, check_shape
from rotating_features.evaluate.cluster import Clusters, cluster


def one_label(b: int, size: tuple[int, int]) -> Tensor:
    """One object everywhere, (b, h, w): on photographs of single objects not even a bad ARI-BG."""
    return torch.zeros(b, *size, dtype=torch.int64)


def block_masks(blocks: int, size: tuple[int, int]) -> Tensor:
    """The image cut into blocks, (h, w): as many in each column, what is left over in the last.

    There are 2 columns for fewer than 9 blocks, 3 for up to 15, else 4. Columns are equally wide,
    and the blocks of a column equally high, up to a pixel.

    Args:
        blocks: How many.
        size: Height and width.

    Example:
        >>> block_masks(5, (6, 4))
        tensor([[0, 0, 2, 2],
                [0, 0, 2, 2],
                [0, 0, 3, 3],
                [1, 1, 3, 3],
                [1, 1, 4, 4],
                [1, 1, 4, 4]])
    """
    if blocks < 1:
        raise InputError(f"There should be at least 1 block, got {blocks}.")
    h, w = size
    columns = min(blocks, 2 if blocks < 9 else 3 if blocks < 16 else 4)
    each = blocks // columns
    last = blocks - each * (columns - 1)
    if h < last or w < columns:
        raise InputError(f"{blocks} blocks should have at least {last} x {columns} pixels.")
    column = _cut(w, columns)
    rows = torch.where(column == columns - 1, _cut(h, last).unsqueeze(1), _cut(h, each)[:, None])
    return each * column + rows


def cluster_features(
    features: Tensor, k: int, *, normalise: bool = True, seed: int = 0
) -> Clusters:
    """k-means on a backbone's features themselves, (b, c, h, w) -> labels (b, h, w).

    Args:
        features: Feature maps.
        k: Number of clusters.
        normalise: Whether features are first brought to length 1, as DINOSAUR's authors do unless
            told otherwise; which of both their published numbers have is not said.
        seed: Decides where k-means starts.
    """
    check_shape("features", features, "b c h w")
    points = F.normalize(features.float(), dim=1) if normalise else features.float()
    return cluster(points, "kmeans", k=k, seed=seed)


def _cut(n: int, parts: int) -> Tensor:
    """Which part each of ``n`` pixels is in, (n,)."""
    return torch.arange(n) * parts // n
