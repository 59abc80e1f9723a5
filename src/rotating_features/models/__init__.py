"""Models, by name."""

from rotating_features.models.autoencoder import Output, RotatingAutoEncoder
from rotating_features.models.store import load, parameter_count, save

__all__ = ["Output", "RotatingAutoEncoder", "load", "parameter_count", "save"]
