"""Pictures: data in, matplotlib ``Figure`` out, and no file names inside."""

from rotating_features.plots.curve import learning_curve
from rotating_features.plots.grid import grid

__all__ = ["grid", "learning_curve"]
