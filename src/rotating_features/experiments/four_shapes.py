"""4Shapes, the paper's first experiment: tell a square, a ring and two triangles apart.

``paper`` has the paper's numbers: 100,000 steps of 64 images, n=8. ``quick`` sees 130 times fewer
images and takes minutes on two CPU cores. What makes that enough: fewer rotation dimensions,
smaller batches, a larger rate and gradients left unclipped.
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
    train=TrainConfig(steps=3_000, batch_size=16, lr=4e-3, warmup_steps=400, grad_clip=None),
    evaluate=EvaluateConfig(images=2_000),
)
