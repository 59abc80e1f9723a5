"""Training: the loop, the step, the files."""

from rotating_features.train.interrupt import Interrupted
from rotating_features.train.loop import Trainee, train
from rotating_features.train.step import Step

__all__ = ["Interrupted", "Step", "Trainee", "train"]
