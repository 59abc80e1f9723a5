"""Adjusted Rand index."""

import torch
from torch import Tensor

from rotating_features.metrics.contingency import Table, contingency


def adjusted_rand_index(pred: Tensor, target: Tensor, *, skip: tuple[int, ...] = ()) -> Tensor:
    r"""Adjusted Rand index of each image (Hubert & Arabie, 1985).

    With :math:`n_{ij}` pixels in true object :math:`i` and predicted cluster :math:`j`,

    .. math::
        \mathrm{ARI} = \frac{J - E}{\tfrac12(R + C) - E}, \qquad
        E = \frac{R\,C}{\binom{N}{2}}

    where :math:`J, R, C` count the pixel pairs that share a cell, a row and a column.

    Args:
        pred, target: Integer labels, shape ``(b, h, w)``.
        skip: Target labels left out of the score, e.g. ``(BACKGROUND, IGNORE)``.

    Returns:
        ``(b,)`` float64. 1 is a perfect match, 0 is chance. An image with nothing left to
        score gives ``nan``: it is for the caller to drop it, in the open.

    Example:
        >>> labels = torch.tensor([[[1, 1], [2, 2]]])
        >>> adjusted_rand_index(1 - labels, labels)
        tensor([1.], dtype=torch.float64)
    """
    return ari_of(contingency(pred, target), skip=skip)


def ari_of(table: Table, *, skip: tuple[int, ...] = ()) -> Tensor:
    """The same from a table of counts."""
    n = table.without(skip)  # float64: pairs outgrow float32
    joint = _pairs(n).sum((1, 2))
    rows, cols = _pairs(n.sum(2)).sum(1), _pairs(n.sum(1)).sum(1)
    total = n.sum((1, 2))
    chance = rows * cols / _pairs(total).clamp(min=1)
    best = (rows + cols) / 2
    ari = (joint - chance) / (best - chance)
    ari = torch.where(best == chance, 1.0, ari)  # one cluster each, or every pixel its own
    return torch.where(total == 0, torch.nan, ari)


def _pairs(n: Tensor) -> Tensor:
    return n * (n - 1) / 2
