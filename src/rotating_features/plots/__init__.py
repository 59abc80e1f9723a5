"""Pictures: data in, matplotlib ``Figure`` out, and no file names inside."""

from rotating_features.plots.curve import learning_curve
from rotating_features.plots.grid import grid
from rotating_features.plots.growth import growth
from rotating_features.plots.semantic import semantic_grid
from rotating_features.plots.theory import binding_effect_figure, hypersphere_figure

__all__ = [
    "binding_effect_figure",
    "grid",
    "growth",
    "hypersphere_figure",
    "learning_curve",
    "semantic_grid",
]
