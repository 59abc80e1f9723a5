"""Mean best overlap."""

import torch
from torch import Tensor

from rotating_features.metrics.contingency import Table, contingency, not_in


def mean_best_overlap(
    pred: Tensor,
    target: Tensor,
    *,
    background: tuple[int, ...] = (0,),
    ignore: tuple[int, ...] = (-1,),
) -> Tensor:
    r"""Mean best overlap of each image (Pont-Tuset et al., 2016).

    Every true object takes the predicted mask that overlaps it best, and their IoU values are
    averaged:

    .. math:: \mathrm{MBO} = \frac1k \sum_i \max_j \frac{|t_i \cap p_j|}{|t_i \cup p_j|}

    Args:
        pred, target: Integer labels, shape ``(b, h, w)``.
        background: Target labels that are no object but count in the unions.
        ignore: Target labels whose pixels do not count at all.

    Returns:
        ``(b,)`` float64; ``nan`` for an image without objects.

    Example:
        >>> target = torch.tensor([[[0, 0], [1, 1]]])
        >>> mean_best_overlap(torch.zeros_like(target), target)  # one mask over everything
        tensor([0.5000], dtype=torch.float64)
    """
    return mbo_of(contingency(pred, target), background=background, ignore=ignore)


def mbo_of(
    table: Table, *, background: tuple[int, ...] = (0,), ignore: tuple[int, ...] = (-1,)
) -> Tensor:
    """The same from a table of counts."""
    n = table.without(ignore)
    true, found = n.sum(2), n.sum(1)
    iou = n / (true.unsqueeze(2) + found.unsqueeze(1) - n).clamp(min=1)
    present = (true > 0) & not_in(table.rows, background)
    best = iou.amax(2) * present
    return torch.where(present.any(1), best.sum(1) / present.sum(1), torch.nan)
