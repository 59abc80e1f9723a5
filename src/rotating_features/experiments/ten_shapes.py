"""10Shapes, and how many objects its models can hold apart.

``nshapes`` has as many shapes in the dataset as in each image, ``six-of-ten`` six of ten in each.
"""

import dataclasses

from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
)

PAPER = Experiment(
    data=DataConfig(dataset="10shapes"),
    model=ModelConfig(rotation_dim=10),
    train=TrainConfig(log_every=500, checkpoint_every=10_000, validate_every=10_000),
    evaluate=EvaluateConfig(k=11),
)
QUICK = dataclasses.replace(
    PAPER,
    train=TrainConfig(steps=3_000, batch_size=16, lr=4e-3, warmup_steps=400, grad_clip=None),
    evaluate=EvaluateConfig(k=11, images=1_000),
)


def of_shapes(experiment: Experiment, shapes: int, rotation_dim: int = 10) -> Experiment:
    """The experiment on images of the first ``shapes`` shapes."""
    return dataclasses.replace(
        experiment,
        data=dataclasses.replace(experiment.data, shapes=shapes),
        model=dataclasses.replace(experiment.model, rotation_dim=rotation_dim),
        evaluate=dataclasses.replace(experiment.evaluate, k=shapes + 1),
    )


def of_objects(experiment: Experiment, objects: int) -> Experiment:
    """The experiment on images of ``objects`` random ones of the ten shapes."""
    return dataclasses.replace(
        experiment,
        data=dataclasses.replace(experiment.data, objects=objects),
        evaluate=dataclasses.replace(experiment.evaluate, k=objects + 1),
    )


NSHAPES_PAPER, NSHAPES_QUICK = of_shapes(PAPER, 6), of_shapes(QUICK, 6)
SIX_PAPER, SIX_QUICK = of_objects(PAPER, 6), of_objects(QUICK, 6)
