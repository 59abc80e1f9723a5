"""4Shapes, the paper's first experiment: tell a square, a ring and two triangles apart.

``paper`` has the paper's numbers: 100,000 steps of 64 images, n=8. ``quick`` sees 160 times fewer
images, with fewer rotation dimensions, smaller batches and a larger rate, and takes minutes
on two CPU cores.
"""

from rotating_features.experiments.config import (
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
)

PAPER = Experiment(
    train=TrainConfig(log_every=500, checkpoint_every=10_000, validate_every=10_000),
)

QUICK = Experiment(
    model=ModelConfig(rotation_dim=6),
    train=TrainConfig(steps=2_500, batch_size=16, lr=4e-3, warmup_steps=400),
    evaluate=EvaluateConfig(images=2_000),
)
