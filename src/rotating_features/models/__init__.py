"""Models, by name."""

from rotating_features.models.autoencoder import Output, RotatingAutoEncoder
from rotating_features.models.store import load, save

__all__ = ["Output", "RotatingAutoEncoder", "load", "save"]
