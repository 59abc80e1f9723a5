"""Datasets, by name."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.clevr import Clevr
from rotating_features.data.food_seg import FoodSeg103
from rotating_features.data.four_shapes import ColoredFourShapes, FourShapes
from rotating_features.data.image_folder import ImageFolder
from rotating_features.data.mnist_shapes import MnistShapes
from rotating_features.data.multi_dsprites import MultiDSprites, PublishedMultiDSprites
from rotating_features.data.npz import NpzDataset, npz_name, write_npz
from rotating_features.data.pascal_voc import PascalVoc
from rotating_features.data.photographs import Photograph, PhotographFiles, Photographs
from rotating_features.data.sample import (
    BACKGROUND,
    IGNORE,
    SPLITS,
    ImageDataset,
    Labelled,
    Sample,
    Split,
)
from rotating_features.data.ten_shapes import TenShapes

FOLDER = Path("data")
"""Where published files are looked for unless a folder is given."""


def multi_dsprites(
    split: Split,
    *,
    seed: int = 0,
    path: str | Path | None = None,
    progress: Callable[[int], object] | None = None,
) -> ImageDataset:
    """Multi-dSprites drawn by us or, if there is a folder, as published."""
    if path is None:
        return MultiDSprites(split, seed=seed)
    return PublishedMultiDSprites(split, folder=path, progress=progress)


def clevr(
    split: Split,
    *,
    path: str | Path | None = None,
    progress: Callable[[int], object] | None = None,
) -> ImageDataset:
    """CLEVR as published, in ``data/clevr`` by default."""
    return Clevr(split, folder=FOLDER / "clevr" if path is None else path, progress=progress)


DATASETS: dict[str, Callable[..., ImageDataset]] = {
    "4shapes": FourShapes,
    "4shapes-rgb": partial(ColoredFourShapes, depth=False, depth_from_zero=True),
    "4shapes-rgbd": partial(ColoredFourShapes, depth=True),
    "10shapes": TenShapes,
    "mnist1shape": partial(MnistShapes, shapes=1),
    "mnist2shape": partial(MnistShapes, shapes=2),
    "multi-dsprites": multi_dsprites,
    "clevr": clevr,
}


def folder(split: Split, folder: str | Path | None = None) -> ImageFolder:  # noqa: ARG001 (one split)
    """All photographs of a folder, whatever they are wanted for."""
    if folder is None:
        raise InputError("A folder of photographs should be named, got none: --data.path FOLDER.")
    return ImageFolder(folder)


PHOTOGRAPHS: dict[str, Callable[..., PhotographFiles]] = {
    "pascal-voc": PascalVoc,
    "foodseg103": FoodSeg103,
    "folder": folder,
}
"""Datasets of photographs, whose sizes differ, so that they are resized by whoever uses them."""

__all__ = [
    "BACKGROUND",
    "DATASETS",
    "IGNORE",
    "PHOTOGRAPHS",
    "SPLITS",
    "Clevr",
    "ColoredFourShapes",
    "FoodSeg103",
    "FourShapes",
    "ImageDataset",
    "ImageFolder",
    "Labelled",
    "MnistShapes",
    "MultiDSprites",
    "NpzDataset",
    "PascalVoc",
    "Photograph",
    "PhotographFiles",
    "Photographs",
    "PublishedMultiDSprites",
    "Sample",
    "Split",
    "TenShapes",
    "npz_name",
    "write_npz",
]
