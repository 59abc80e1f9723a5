"""4Shapes in colour: objects of one colour are hard to tell apart, unless there is depth."""

from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
)

_QUICK = {
    "model": ModelConfig(rotation_dim=6),
    "train": TrainConfig(steps=3_000, batch_size=16, lr=4e-3, warmup_steps=400, grad_clip=None),
    "evaluate": EvaluateConfig(images=2_000),
}
_PAPER = {
    "model": ModelConfig(hidden_dim=64),
    "train": TrainConfig(log_every=500, checkpoint_every=10_000, validate_every=10_000),
}

RGB_PAPER = Experiment(data=DataConfig(dataset="4shapes-rgb"), **_PAPER)
RGB_QUICK = Experiment(data=DataConfig(dataset="4shapes-rgb"), **_QUICK)
RGBD_PAPER = Experiment(data=DataConfig(dataset="4shapes-rgbd"), **_PAPER)
RGBD_QUICK = Experiment(data=DataConfig(dataset="4shapes-rgbd"), **_QUICK)
