"""Datasets, by name."""

from rotating_features.data.four_shapes import FourShapes
from rotating_features.data.npz import NpzDataset, write_npz
from rotating_features.data.sample import (
    BACKGROUND,
    IGNORE,
    SPLITS,
    ImageDataset,
    Sample,
    Split,
)

DATASETS = {"4shapes": FourShapes}

__all__ = [
    "BACKGROUND",
    "DATASETS",
    "IGNORE",
    "SPLITS",
    "FourShapes",
    "ImageDataset",
    "NpzDataset",
    "Sample",
    "Split",
    "write_npz",
]
