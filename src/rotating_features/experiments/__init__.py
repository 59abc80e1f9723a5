"""Experiments, by name; each has the presets ``paper`` and ``quick``."""

from rotating_features.experiments import (
    colored_shapes,
    four_shapes,
    mnist_shapes,
    photographs,
    sprites,
    ten_shapes,
)
from rotating_features.experiments.config import Experiment

EXPERIMENTS: dict[str, dict[str, Experiment]] = {
    "4shapes": {"paper": four_shapes.PAPER, "quick": four_shapes.QUICK},
    "4shapes-rgb": {"paper": colored_shapes.RGB_PAPER, "quick": colored_shapes.RGB_QUICK},
    "4shapes-rgbd": {"paper": colored_shapes.RGBD_PAPER, "quick": colored_shapes.RGBD_QUICK},
    "10shapes": {"paper": ten_shapes.PAPER, "quick": ten_shapes.QUICK},
    "nshapes": {"paper": ten_shapes.NSHAPES_PAPER, "quick": ten_shapes.NSHAPES_QUICK},
    "six-of-ten": {"paper": ten_shapes.SIX_PAPER, "quick": ten_shapes.SIX_QUICK},
    "mnist1shape": {"paper": mnist_shapes.ONE_PAPER, "quick": mnist_shapes.ONE_QUICK},
    "mnist2shape": {"paper": mnist_shapes.TWO_PAPER, "quick": mnist_shapes.TWO_QUICK},
    "multi-dsprites": {"paper": sprites.DSPRITES_PAPER, "quick": sprites.DSPRITES_QUICK},
    "pascal-voc": {"paper": photographs.PASCAL_PAPER, "quick": photographs.PASCAL_QUICK},
    "foodseg103": {"paper": photographs.FOOD_PAPER, "quick": photographs.FOOD_QUICK},
    "folder": {"paper": photographs.FOLDER_PAPER, "quick": photographs.FOLDER_QUICK},
    "clevr": {"paper": sprites.CLEVR_PAPER, "quick": sprites.CLEVR_QUICK},
}

__all__ = ["EXPERIMENTS", "Experiment"]
