"""Label maps of large images as what they are: a few blocks, each many pixels wide and high."""

from typing import NamedTuple

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from rotating_features.data.resize import sources
from rotating_features.evaluate.smooth import mode_filter
from rotating_features.segment.rle import compress

SMOOTHED = (512, 2048)
"""Shorter and longer side up to which label maps are smoothed."""


class Blocks(NamedTuple):
    """A label map of ``heights.sum()`` by ``widths.sum()`` pixels, by its blocks."""

    labels: np.ndarray  # (r, c) uint8
    uncertainty: np.ndarray  # (r, c) float64
    heights: np.ndarray  # (r,) how many pixels high the blocks of a row are, at least 1
    widths: np.ndarray  # (c,)

    def paint(self) -> np.ndarray:
        """The label map, pixel by pixel."""
        return self._enlarge(self.labels)

    def paint_uncertainty(self) -> np.ndarray:
        """The uncertainty, pixel by pixel, as uint8: 255 for 1 and more."""
        return self._enlarge((255 * self.uncertainty.clip(0, 1)).round().astype(np.uint8))

    def describe(self) -> dict:
        """What the report says of its objects; counted in blocks, exact in pixels."""
        pixels = np.outer(self.heights, self.widths)
        areas, doubts = (
            np.bincount(self.labels.ravel(), weights.ravel(), 256)
            for weights in (pixels, pixels * self.uncertainty)
        )
        there = [int(label) for label in areas.nonzero()[0] if label > 0]
        return {
            "objects": len(there),
            "labels": there,  # resizing can lose a tiny one, so they may have gaps
            "areas": [int(areas[label]) for label in there],
            "boxes": [self._box(label) for label in there],
            "uncertainty": [round(float(doubts[label] / areas[label]), 4) for label in there],
            "masks": self._encode(there),
        }

    def _enlarge(self, values: np.ndarray) -> np.ndarray:
        """Values of the blocks, (r, c), as those of their pixels."""
        return values.repeat(self.widths, 1).repeat(self.heights, 0)

    def _box(self, label: int) -> list[int]:
        """Left, top, width and height."""
        mask = self.labels == label
        spans = []
        for there, sizes in ((mask.any(0), self.widths), (mask.any(1), self.heights)):
            edges, (where,) = _edges(sizes), there.nonzero()
            spans.append((int(edges[where[0]]), int(edges[where[-1] + 1])))
        (left, right), (top, bottom) = spans
        return [left, top, right - left, bottom - top]

    def _encode(self, there: list[int]) -> list[str]:
        """Masks of labels as COCO's strings, from one look at all columns."""
        r, h = len(self.heights), int(self.heights.sum())
        flat = self.labels.repeat(self.widths, 1).ravel(order="F")  # column after column
        starts = np.concatenate([[0], 1 + np.flatnonzero(flat[1:] != flat[:-1]), [len(flat)]])
        column, row = np.divmod(starts, r)
        edges = column * h + _edges(self.heights)[row]  # in pixels
        names = flat[starts[:-1]]
        return [
            compress(edges[:-1][names == label], edges[1:][names == label], int(edges[-1]))
            for label in there
        ]


def make_blocks(
    labels: Tensor, uncertainty: Tensor, size: tuple[int, int], *, smooth: bool
) -> Blocks:
    """The label map of an image of ``size`` from those of a grid, both (h, w).

    Pixels take the nearest label, as in ``discover``.

    Args:
        labels, uncertainty: Of one image, on the CPU.
        size: Height and width of the image.
        smooth: Whether a pixel then takes the label that most of its neighbours have, out of those
            a block away; for grids so coarse that their corners would show. It is done on at most
            ``SMOOTHED`` pixels, for on more it would cost minutes and look the same.
    """
    if smooth:
        (h, w), (gh, gw) = size, labels.shape
        shrink = max(1.0, min(h, w) / SMOOTHED[0], max(h, w) / SMOOTHED[1])
        medium = max(1, round(h / shrink)), max(1, round(w / shrink))
        rows, cols = (sources(n, m) for n, m in zip(labels.shape, medium, strict=True))
        radius = min(medium[0] // gh, medium[1] // gw)
        labels = mode_filter(labels[rows][:, cols].unsqueeze(0), radius).squeeze(0)
        uncertainty = F.interpolate(uncertainty[None, None], medium, mode="bilinear")[0, 0]
    rows, cols = (sources(n, m) for n, m in zip(labels.shape, size, strict=True))
    rows, heights = np.unique(rows.numpy(), return_counts=True)
    cols, widths = np.unique(cols.numpy(), return_counts=True)
    return Blocks(
        labels.numpy()[np.ix_(rows, cols)].astype(np.uint8),
        uncertainty.double().numpy()[np.ix_(rows, cols)],
        heights,
        widths,
    )


def _edges(sizes: np.ndarray) -> np.ndarray:
    """Where blocks start, and where the last one ends."""
    return np.concatenate([[0], sizes.cumsum()])
