"""Where a step's images come from."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from rotating_features.data.sample import ImageDataset

CHUNK = 5_000


class Feed:
    """The images of a dataset by index, on a device.

    On the CPU they are drawn when asked for. On a GPU all of them are drawn once and kept there,
    in bytes where that loses nothing, so that a step can gather its batch without the host.
    """

    def __init__(self, dataset: ImageDataset, device: torch.device) -> None:
        self.dataset, self.device = dataset, device
        self.images = _all_images(dataset, device) if device.type == "cuda" else None

    def __call__(self, indices: Tensor) -> Tensor:
        """Images (b, c, h, w) in [0, 1]."""
        if self.images is None:
            return self.dataset.draw(indices.numpy()).image.to(self.device)
        x = self.images.index_select(0, indices)
        return (x if x.is_floating_point() else x / 255).movedim(-1, 1)


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
    for start in range(0, len(dataset), CHUNK):
        indices = np.arange(start, min(start + CHUNK, len(dataset)))
        yield dataset.draw(indices).image.to(device).movedim(1, -1).contiguous()
