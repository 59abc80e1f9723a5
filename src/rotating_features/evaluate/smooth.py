"""Label maps without specks: every pixel takes the label that most of its neighbours have."""

import math

import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.metrics.contingency import place_labels

FEW = 8
"""Up to so many labels it is quicker to count the votes of all than to see which an image has."""


def mode_filter(labels: Tensor, radius: int) -> Tensor:
    """The most frequent label in a disk around each pixel, (b, h, w) -> (b, h, w).

    The disk has all pixels whose centres are at most ``radius`` away, and those inside the image
    vote. Of equally frequent labels the smallest wins. Pixels with a negative label, which took no
    part in clustering, have no vote and stay as they are.

    Args:
        labels: Integer labels.
        radius: In pixels; 0 changes nothing.

    Example:
        >>> speck = torch.tensor([[[1, 1, 1], [1, 7, 1], [1, 1, -1]]])
        >>> mode_filter(speck, radius=1)
        tensor([[[ 1,  1,  1],
                 [ 1,  1,  1],
                 [ 1,  1, -1]]])
    """
    check_shape("labels", labels, "b h w")
    if labels.is_floating_point() or labels.dtype == torch.bool:
        raise InputError(f"labels should be integers, got {labels.dtype}. Convert with .long().")
    if radius < 0:
        raise InputError(f"radius should be at least 0, got {radius}.")
    _, h, w = labels.shape
    low, high = torch.stack(labels.aminmax()).tolist()
    names, place = place_labels(labels, low, high)
    at_once = max(1, _at_once(labels.device) // (h * w * len(names)))
    parts = zip(labels.split(at_once), place.split(at_once), strict=True)
    if low >= 0 and len(names) <= FEW:
        everyone = _votes(torch.ones_like(labels[:1], dtype=torch.int16), 1, radius)[0]
        done = [_smooth_few(names, where, radius, everyone) for _, where in parts]
    else:
        done = [_smooth(part, names, where, radius) for part, where in parts]
    return torch.cat(done).to(labels.dtype)


def _smooth_few(names: Tensor, place: Tensor, radius: int, everyone: Tensor) -> Tensor:
    """All pixels vote, so the last label has the votes that the others leave of ``everyone``'s."""
    ranks = place.to(torch.int16) + 1
    votes = list(_votes(ranks, len(names) - 1, radius)) if len(names) > 1 else []
    last = everyone.repeat(len(place), 1, 1)
    for plane in votes:
        last -= plane
    winner = _first_largest([*votes, last])
    return names.index_select(0, winner.flatten().long()).view_as(place)


def _smooth(labels: Tensor, names: Tensor, place: Tensor, radius: int) -> Tensor:
    """``place`` says which of ``names`` a label is. Only those that an image has cost time."""
    b, place = len(labels), place.long()
    occurs = torch.zeros(b, len(names), dtype=torch.bool, device=labels.device)
    occurs.scatter_(1, place.flatten(1), True).logical_and_(names >= 0)
    rank = occurs.cumsum(1).masked_fill_(~occurs, 0)  # from 1; 0 for pixels without a vote
    most = max(1, int(rank.max()))
    ranks = rank.gather(1, place.flatten(1)).view_as(place).to(torch.int16)
    winner = _first_largest(list(_votes(ranks, most, radius)))
    own = rank.new_zeros(b, most + 1).scatter_(1, rank, names.long().expand(b, -1))  # names by rank
    chosen = own.gather(1, winner.flatten(1).long() + 1).view_as(labels)
    return torch.where(labels < 0, labels.long(), chosen)


def _votes(ranks: Tensor, most: int, radius: int) -> Tensor:
    """How many pixels of a disk have each rank from 1 to ``most``, (b, h, w) -> (most, b, h, w).

    All planes lie one after the other in one long row, with ``radius`` zeros after each of their
    rows and columns. So a shift in space is a shift along that row, and every step one addition:
    differences of a running sum give the sums over 2a+1 pixels in a line, and a disk is made of
    such lines, each with the ``a`` that its distance from the centre leaves.
    """
    b, h, w = ranks.shape
    pitch, rows = w + radius, h + radius
    size, margin = most * b * rows * pitch, radius * pitch + radius + 1
    dtype = torch.int16 if 4 * radius**2 < 2**15 else torch.int32  # sums may wrap, votes may not
    flat = torch.zeros(margin + size + margin, dtype=dtype, device=ranks.device)
    planes = flat[margin : margin + size].view(most, b, rows, pitch)[:, :, :h, :w]
    names = torch.arange(1, most + 1, dtype=ranks.dtype, device=ranks.device)
    torch.eq(ranks, names.view(-1, 1, 1, 1), out=planes)

    total = flat.cumsum(0, dtype=dtype)
    line, votes = flat, torch.zeros_like(flat[:size])  # ``flat`` has served, its room is used again
    first, last = radius + 1, len(flat) - radius
    made = None
    for distance in range(radius + 1):
        a = math.isqrt(radius**2 - distance**2)
        if a != made:
            right, left = total[first + a : last + a], total[first - a - 1 : last - a - 1]
            torch.sub(right, left, out=line[first:last])
            made = a
        for shift in {distance * pitch, -distance * pitch}:
            votes += line[margin + shift : margin + shift + size]
    return votes.view(most, b, rows, pitch)[:, :, :h, :w]


def _first_largest(planes: list[Tensor]) -> Tensor:
    """Which plane is the largest at each pixel, the first of equals; the last one is destroyed."""
    best = planes[-1]
    winner = torch.full_like(best, len(planes) - 1)
    hit = torch.empty_like(best)  # numbers, not bool, which is far slower on the CPU
    for rank in range(len(planes) - 2, -1, -1):
        torch.ge(planes[rank], best, out=hit)
        winner += hit.mul_(rank - winner)
        torch.maximum(best, planes[rank], out=best)
    return winner


def _at_once(device: torch.device) -> int:
    """How many votes to count at a time: what a CPU's cache holds, or what keeps a GPU busy."""
    return 2**20 if device.type == "cpu" else 2**28
