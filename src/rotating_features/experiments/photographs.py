"""Photographs: Pascal VOC and FoodSeg103 with the paper's settings, and any folder of them.

``paper`` reconstructs the features of DINO ViT-B/16, for 30,000 steps of 64 images. ``quick`` takes
a small network that comes as a package, and fewer and smaller steps.
"""

import dataclasses

from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
)
from rotating_features.features import BACKBONES

PASCAL_PAPER = Experiment(
    data=DataConfig(dataset="pascal-voc", resize="nearest"),
    model=ModelConfig(rotation_dim=10, hidden_dim=128, backbone="dino-vitb16"),
    train=TrainConfig(
        steps=30_000,
        warmup_steps=5_000,
        weight_decay=1e-6,
        log_every=500,
        checkpoint_every=3_000,
        validate_every=3_000,
    ),
    evaluate=EvaluateConfig(protocols=("rf2023", "dinosaur", "spot"), k=4),
)
PASCAL_QUICK = dataclasses.replace(
    PASCAL_PAPER,
    model=ModelConfig(rotation_dim=6, hidden_dim=32, backbone="efficientnet-lite0-s16"),
    train=TrainConfig(steps=2_000, batch_size=16, warmup_steps=400, weight_decay=1e-6),
    evaluate=EvaluateConfig(protocols=("rf2023",), k=4, images=200),
)


def _of(experiment: Experiment, data: DataConfig, k: int) -> Experiment:
    evaluate = dataclasses.replace(experiment.evaluate, k=k, protocols=("rf2023",))
    return dataclasses.replace(experiment, data=data, evaluate=evaluate)


_FOOD = DataConfig(dataset="foodseg103", resize="nearest")
FOOD_PAPER, FOOD_QUICK = _of(PASCAL_PAPER, _FOOD, 5), _of(PASCAL_QUICK, _FOOD, 5)

_FOLDER = DataConfig(dataset="folder")
FOLDER_PAPER, FOLDER_QUICK = _of(PASCAL_PAPER, _FOLDER, 4), _of(PASCAL_QUICK, _FOLDER, 4)


def with_side(experiment: Experiment, backbone: str) -> Experiment:
    """The experiment with images of the size that the backbone wants for a grid of 14 x 14."""
    if backbone not in BACKBONES:
        return experiment
    data = dataclasses.replace(experiment.data, side=BACKBONES[backbone].side)
    return dataclasses.replace(experiment, data=data)
