"""Experiments, by name; each has the presets ``paper`` and ``quick``."""

from rotating_features.experiments import four_shapes
from rotating_features.experiments.config import Experiment

EXPERIMENTS: dict[str, dict[str, Experiment]] = {
    "4shapes": {"paper": four_shapes.PAPER, "quick": four_shapes.QUICK},
}

__all__ = ["EXPERIMENTS", "Experiment"]
