"""Labels, orientations and images as colours."""

import numpy as np
import torch
from torch import Tensor

PALETTE = np.array(
    [
        (13, 17, 23),  # background: night
        (86, 180, 233),  # then colours that colour-blind readers can tell apart (Okabe & Ito)
        (230, 159, 0),
        (0, 158, 115),
        (204, 121, 167),
        (240, 228, 66),
        (213, 94, 0),
        (0, 114, 178),
        (153, 153, 153),
        (136, 34, 85),
        (148, 203, 73),
    ],
    dtype=np.uint8,
)
UNLABELLED = np.array((70, 76, 86), dtype=np.uint8)


def color_labels(labels: Tensor) -> np.ndarray:
    """Label maps as RGB, (..., h, w) -> (..., h, w, 3) uint8; negative labels are grey."""
    found = labels.cpu().numpy()
    colors = PALETTE[np.where(found > 0, 1 + (found - 1) % (len(PALETTE) - 1), 0)]
    return np.where((found < 0)[..., None], UNLABELLED, colors)


def color_orientations(orientations: Tensor) -> np.ndarray:
    """Directions in n dimensions as RGB, (b, n, h, w) -> (b, h, w, 3) uint8.

    Every image is seen from the side that shows most: its directions are projected on their
    three principal axes, one a colour channel. Nearby directions get nearby colours; a pixel
    that points nowhere is black.
    """
    pictures = [_project(image) for image in orientations.detach().float().cpu()]
    return np.stack(pictures)


def color_image(image: Tensor) -> np.ndarray:
    """Images as RGB, (b, c, h, w) in [0, 1] -> (b, h, w, 3) uint8; a depth channel is left out."""
    x = image.detach().float().cpu().clamp(0, 1)
    x = x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x[:, :3]
    return (x.movedim(1, -1) * 255).round().byte().numpy()


def _project(directions: Tensor) -> np.ndarray:
    _, h, w = directions.shape
    points = directions.flatten(1).T
    length = points.norm(dim=1, keepdim=True)
    there = length.squeeze(1) > 1e-6
    rgb = torch.zeros(h * w, 3)
    if there.any():
        centered = points[there] - points[there].mean(0)
        axes = torch.linalg.svd(centered.T @ centered).U[:, :3]
        axes = torch.where(axes.sum(0) < 0, -axes, axes)  # an axis has no sign of its own: fix one
        shown = torch.zeros(len(centered), 3)
        shown[:, : axes.shape[1]] = centered @ axes
        reach = shown.abs().amax(0).clamp(min=1e-6)
        rgb[there] = (0.5 + 0.5 * shown / reach).lerp(torch.ones(1), 0.12) * length[there]
    return (rgb.clamp(0, 1).view(h, w, 3) * 255).round().byte().numpy()
