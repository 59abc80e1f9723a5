"""Models, by name."""

from rotating_features.models.autoencoder import AutoEncoder, Output
from rotating_features.models.classifier import Classification, RotatingClassifier
from rotating_features.models.flavours import (
    ComplexAutoEncoder,
    RotatingAutoEncoder,
    StandardAutoEncoder,
)
from rotating_features.models.kinds import MODELS
from rotating_features.models.on_features import OnFeatures
from rotating_features.models.store import Model, load, save
from rotating_features.models.trained import TRAINED

__all__ = [
    "MODELS",
    "TRAINED",
    "AutoEncoder",
    "Classification",
    "ComplexAutoEncoder",
    "Model",
    "OnFeatures",
    "Output",
    "RotatingAutoEncoder",
    "RotatingClassifier",
    "StandardAutoEncoder",
    "load",
    "save",
]
