"""What can be said of rotating features without training any."""

from rotating_features.theory.binding import BindingEffect, binding_effect
from rotating_features.theory.hypersphere import (
    Objective,
    hypersphere_capacity,
    optimal_cosine,
)

__all__ = [
    "BindingEffect",
    "Objective",
    "binding_effect",
    "hypersphere_capacity",
    "optimal_cosine",
]
