"""Scores of photographs, one by one, however their labels were found."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.data.memory import Memory
from rotating_features.data.photographs import Photograph, Photographs
from rotating_features.data.sample import IGNORE
from rotating_features.data.workers import Problem, in_order
from rotating_features.evaluate.cluster import count_clusters
from rotating_features.evaluate.photo_protocols import (
    PhotoProtocol,
    find_protocol,
    prepare_image,
    prepare_mask,
)

Predict = Callable[[Tensor], Tensor | tuple[Tensor, Tensor]]
"""From images (b, 3, side, side) in [0, 1] to labels of a grid, (b, h, w), counted from 0; or to
these and how unsure each of them is."""
SCORES = ("ari_bg", "mbo_i", "mbo_c")


class Prepared(NamedTuple):
    """A photograph as a protocol wants it, or a batch of them."""

    image: Tensor  # (3, side, side), uint8, or float32 in [0, 1]
    instances: Tensor  # (mask_side, mask_side) int16, all IGNORE if there were none
    classes: Tensor  # the same for classes


def prepare_masks(photograph: Photograph, protocol: PhotoProtocol) -> tuple[Tensor, Tensor]:
    """Instances and classes at the protocol's size, int64; all ``IGNORE`` where there are none.

    What is ignored throughout scores ``nan``.
    """
    masks = photograph.instances, photograph.classes
    nothing = torch.full((protocol.mask_side, protocol.mask_side), IGNORE)
    instances, classes = (nothing if m is None else prepare_mask(m, protocol) for m in masks)
    return instances, classes


@torch.no_grad()
def score_photographs(
    predict: Predict,
    photographs: Photographs,
    protocol: str | PhotoProtocol = "rf2023",
    *,
    images: int | None = None,
    batch_size: int = 32,
    scores: tuple[str, ...] = SCORES,
    device: torch.device | str = "cpu",
    workers: int = 4,
    kept: dict[int, Prepared] | None = None,
    left_out: list[Problem] | None = None,
) -> Iterator[dict[str, dict[str, Tensor]]]:
    """Scores of every photograph, a batch at a time; the last may be smaller, none is dropped.

    Args:
        predict: Finds labels, see ``Predict``.
        photographs: Where they come from.
        protocol: A name out of ``PHOTO_PROTOCOLS``, or a protocol of one's own.
        images: Score only the first so many. Default: all.
        batch_size: Photographs at a time.
        scores: Which to take: photographs with classes alone have ``("mbo_c",)``.
        device: Where images go for ``predict``, and where labels are scored.
        workers: Threads that read photographs while others are scored; up to two batches ahead.
        kept: Prepared photographs by index, which are not read again; those that are read are
            added. Pass the same dict, empty at first, to all calls of one dataset and protocol.
        left_out: Photographs that cannot be read are passed over and added here; without such a
            list the first is an error.

    Yields:
        ``{protocol: {score: (b,) tensor}}`` with the scores asked for, ``clusters``, and
        ``uncertainty`` if ``predict`` tells it; ``image`` says which photographs these are. One
        without objects (or classes) has ``nan``.
    """
    protocol = find_protocol(protocol)
    if unknown := set(scores) - set(SCORES):
        raise InputError(f"scores should be out of {list(SCORES)}, got {sorted(unknown)}.")
    if min(batch_size, workers) < 1:
        raise InputError(
            f"batch_size and workers should be at least 1, got {batch_size}, {workers}."
        )
    total = len(photographs) if images is None else min(images, len(photographs))
    prepare = partial(_prepare, photographs, protocol, kept, left_out, Memory())
    items = in_order(total, prepare, workers, ahead=2 * batch_size)
    for which, batch in _batches(items, batch_size):
        x, instances, classes = (part.to(device) for part in batch)
        told = predict(x if x.is_floating_point() else x.float() / 255)
        labels, doubt = (told, None) if isinstance(told, Tensor) else told
        check_shape("labels", labels, "b h w", b=len(x), hint="One map for each image.")
        labels = labels.to(device)
        found = protocol.score(protocol.fit_labels(labels), instances, classes)
        row = {"image": torch.tensor(which)} | {name: found[name] for name in scores}
        row["clusters"] = count_clusters(labels, int(labels.max()) + 1)
        if doubt is not None:
            row["uncertainty"] = doubt.flatten(1).mean(1).double()
        yield {protocol.name: row}


def _prepare(
    photographs: Photographs,
    protocol: PhotoProtocol,
    kept: dict[int, Prepared] | None,
    left_out: list[Problem] | None,
    memory: Memory,
    index: int,
) -> Prepared | None:
    if kept is not None and index in kept:
        return kept[index]
    with memory.take(photographs.pixels(index)):
        try:
            photograph = photographs[index]
        except InputError as error:
            if left_out is None:
                raise
            left_out.append(Problem(photographs.name(index), str(error)))
            return None
        instances, classes = (mask.to(torch.int16) for mask in prepare_masks(photograph, protocol))
        done = Prepared(prepare_image(photograph.image, protocol), instances, classes)
        del photograph  # before its room is given back
    if kept is not None:
        kept[index] = done
    return done


def _batches(
    items: Iterator[Prepared | None], size: int
) -> Iterator[tuple[tuple[int, ...], Prepared]]:
    """Those that there are, in batches, and their numbers among all."""
    there = ((number, item) for number, item in enumerate(items) if item is not None)
    while batch := list(islice(there, size)):
        numbers, prepared = zip(*batch, strict=True)
        yield numbers, Prepared(*(torch.stack(part) for part in zip(*prepared, strict=True)))
