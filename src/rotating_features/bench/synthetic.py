"""Made-up input, where a trained model or a download cannot be assumed."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from rotating_features.data import FourShapes
from rotating_features.data.sample import Sample

NOISE = 0.2
"""Of each coordinate of a direction: k-means then scores 0.97, as on maps of a good model."""


class RandomImages:
    """A dataset of black and white noise or, as feature maps, of normal noise."""

    def __init__(self, shape: tuple[int, int, int, int], *, features: bool) -> None:
        _, self.channels, *size = shape
        self.size = (size[0], size[1])
        self.images = torch.randn(shape) if features else torch.rand(shape).round_()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Sample:
        return self.draw([index]).first()

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        image = self.images[torch.as_tensor(indices)]
        return Sample(image, torch.zeros_like(image[:, 0], dtype=torch.int64))


def orientation_maps(images: int, n: int = 8) -> tuple[Tensor, Tensor]:
    """Orientation maps (b, n, 32, 32) of 4Shapes, and its objects (b, 32, 32).

    They are like a trained model's: a direction for each object with some noise, and exact zeros
    on the background.
    """
    rng = torch.Generator().manual_seed(0)
    instances = FourShapes("test").draw(np.arange(images)).instances
    anyone = torch.randint(1, 5, instances.shape, generator=rng)
    owner = torch.where(instances < 0, anyone, instances)  # overlap goes to either
    directions = torch.randn(images, 5, n, generator=rng)
    where = owner.flatten(1).unsqueeze(2).expand(-1, -1, n)
    points = F.normalize(directions, dim=2).gather(1, where)
    points = F.normalize(points + NOISE * torch.randn(points.shape, generator=rng), dim=2)
    points = points * (owner != 0).flatten(1).unsqueeze(2)
    return points.transpose(1, 2).unflatten(2, instances.shape[1:]).contiguous(), instances


def label_maps(images: int, side: int, labels: int) -> Tensor:
    """Label maps (b, side, side): patches of 40 pixels, and three in ten pixels at random."""
    rng = torch.Generator().manual_seed(0)
    patches = -(-side // 40)
    coarse = torch.randint(labels, (images, patches, patches), generator=rng)
    whole = coarse.repeat_interleave(40, 1).repeat_interleave(40, 2)[:, :side, :side]
    noise = torch.randint(labels, whole.shape, generator=rng)
    return torch.where(torch.rand(whole.shape, generator=rng) < 0.3, noise, whole)


def photograph_masks(images: int, side: int = 320) -> tuple[Tensor, Tensor, Tensor]:
    """Labels of a 14 x 14 grid (b, 14, 14), and instances and classes (b, side, side).

    As in VOC: one to four objects on background, rectangles here, with an unlabelled rim, and one
    of twenty classes each. The grid has four labels, in patches and at random.
    """
    rng = np.random.default_rng(0)
    instances = np.zeros((images, side, side), np.int64)
    classes = np.zeros_like(instances)
    for mask, kind in zip(instances, classes, strict=True):
        for label in range(1, rng.integers(2, 6)):
            (top, left), (h, w) = rng.integers(0, side // 2, 2), rng.integers(side // 8, side, 2)
            inner = np.s_[top + 3 : top + h - 3, left + 3 : left + w - 3]
            for x, name in ((mask, label), (kind, rng.integers(1, 21))):
                x[top : top + h, left : left + w] = -1
                x[inner] = name
    grid = label_maps(images, 14 * 40, 4)[:, ::40, ::40]
    return grid.contiguous(), torch.from_numpy(instances), torch.from_numpy(classes)
