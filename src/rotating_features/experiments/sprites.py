"""Multi-dSprites and CLEVR, the field's usual images of coloured objects."""

import dataclasses

from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
)

DSPRITES_PAPER = Experiment(
    data=DataConfig(dataset="multi-dsprites"),
    model=ModelConfig(rotation_dim=10, hidden_dim=128),
    train=TrainConfig(
        batch_size=16,
        warmup_steps=5_000,
        log_every=500,
        checkpoint_every=10_000,
        validate_every=10_000,
    ),
    evaluate=EvaluateConfig(k=6),
)
DSPRITES_QUICK = dataclasses.replace(
    DSPRITES_PAPER,
    model=ModelConfig(rotation_dim=6),
    train=TrainConfig(steps=3_000, batch_size=16, lr=4e-3, warmup_steps=400, grad_clip=None),
)
CLEVR_PAPER = dataclasses.replace(
    DSPRITES_PAPER,
    data=DataConfig(dataset="clevr"),
    train=dataclasses.replace(DSPRITES_PAPER.train, steps=30_000, batch_size=64),
    evaluate=EvaluateConfig(k=5),
)
CLEVR_QUICK = dataclasses.replace(
    DSPRITES_QUICK, data=DataConfig(dataset="clevr"), evaluate=EvaluateConfig(k=5)
)
