"""Pictures: data in, matplotlib ``Figure`` out, and no file names inside."""

from rotating_features.plots.curve import learning_curve
from rotating_features.plots.grid import grid
from rotating_features.plots.growth import growth

__all__ = ["grid", "growth", "learning_curve"]
