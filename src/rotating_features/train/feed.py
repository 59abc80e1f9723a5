"""Where a step's images come from, and the labels of those models that need them."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.sample import ImageDataset, Labelled

CHUNK = 5_000


class Feed:
    """The images of a dataset by index, on a device.

    On the CPU they are drawn when asked for. On a GPU all of them are drawn once and kept there,
    in bytes where that loses nothing, so that a step can gather its batch without the host.

    Args:
        dataset: The images.
        device: Where they are wanted.
        labels: Whether labels will be asked for, too.
    """

    def __init__(
        self, dataset: ImageDataset, device: torch.device, *, labels: bool = False
    ) -> None:
        self.dataset, self.device = dataset, device
        self._labelled = _labelled(dataset) if labels else None
        kept = device.type == "cuda"
        self.images = _all_images(dataset, device) if kept else None
        self._labels = (
            torch.cat([self._labelled.draw_labels(part).to(device) for part in _chunks(dataset)])
            if kept and self._labelled is not None
            else None
        )

    def __call__(self, indices: Tensor) -> Tensor:
        """Images (b, c, h, w) in [0, 1]."""
        if self.images is None:
            return self.dataset.draw(indices.numpy()).image.to(self.device)
        x = self.images.index_select(0, indices)
        return (x if x.is_floating_point() else x / 255).movedim(-1, 1)

    def labels(self, indices: Tensor) -> Tensor:
        """Which classes are in these images, (b, classes); for a feed that was made with labels."""
        if self._labelled is None:
            raise InputError("A feed should be made with labels=True before it is asked for them.")
        if self._labels is None:
            return self._labelled.draw_labels(indices.numpy()).to(self.device)
        return self._labels.index_select(0, indices)

    def batch(self, indices: Tensor, *, labels: bool) -> tuple[Tensor, ...]:
        """The images, and the labels if they are wanted."""
        return (self(indices), self.labels(indices)) if labels else (self(indices),)


def _labelled(dataset: ImageDataset) -> Labelled:
    if isinstance(dataset, Labelled):
        return dataset
    raise InputError(
        "The model learns from classes, so its dataset should have a method draw_labels, "
        f"got a {type(dataset).__name__} without.\n"
        "  Train it on a dataset with classes, or train a model that needs none."
    )


def _all_images(dataset: ImageDataset, device: torch.device) -> Tensor:
    """Channels last, as layers want them."""
    small = []
    for part in _parts(dataset, device):
        byte = part.mul(255).round_().to(torch.uint8)
        if not torch.equal(byte / 255, part):
            return torch.cat(list(_parts(dataset, device)))
        small.append(byte)
    return torch.cat(small)


def _parts(dataset: ImageDataset, device: torch.device) -> Iterator[Tensor]:
    """Drawn by several threads, a few parts at a time, so that none piles up."""
    workers = min(8, os.cpu_count() or 1)
    chunks = list(_chunks(dataset))
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(chunks), workers):
            for sample in pool.map(dataset.draw, chunks[start : start + workers]):
                yield sample.image.to(device).movedim(1, -1).contiguous()


def _chunks(dataset: ImageDataset) -> Iterator[np.ndarray]:
    for start in range(0, len(dataset), CHUNK):
        yield np.arange(start, min(start + CHUNK, len(dataset)))
