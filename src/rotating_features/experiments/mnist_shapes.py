"""A digit beside one or two shapes: pixels labelled by a model that never saw a pixel's label."""

import dataclasses

from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
)

ONE_PAPER = Experiment(
    data=DataConfig(dataset="mnist1shape"),
    model=ModelConfig(kind="classifier", rotation_dim=6, hidden_dim=64),
    train=TrainConfig(steps=10_000, log_every=500, checkpoint_every=2_000, validate_every=2_000),
    evaluate=EvaluateConfig(k=3),
)
ONE_QUICK = dataclasses.replace(
    ONE_PAPER,
    model=ModelConfig(kind="classifier", rotation_dim=6),
    train=TrainConfig(steps=3_000, batch_size=16, lr=4e-3, warmup_steps=400, grad_clip=None),
    evaluate=EvaluateConfig(k=3, images=2_000),
)


def _with_two(experiment: Experiment) -> Experiment:
    return dataclasses.replace(
        experiment,
        data=DataConfig(dataset="mnist2shape"),
        evaluate=dataclasses.replace(experiment.evaluate, k=4),
    )


TWO_PAPER, TWO_QUICK = _with_two(ONE_PAPER), _with_two(ONE_QUICK)
