"""Models by the name of their kind."""

from rotating_features._check import InputError
from rotating_features.models.autoencoder import AutoEncoder
from rotating_features.models.classifier import RotatingClassifier
from rotating_features.models.flavours import (
    ComplexAutoEncoder,
    RotatingAutoEncoder,
    StandardAutoEncoder,
)

MODELS: dict[str, type[AutoEncoder]] = {
    "rotating": RotatingAutoEncoder,
    "complex": ComplexAutoEncoder,
    "standard": StandardAutoEncoder,
    "classifier": RotatingClassifier,
}


def kind_of(model: AutoEncoder) -> str:
    """The name under which ``MODELS`` has the model's class."""
    for kind, model_class in MODELS.items():
        if type(model) is model_class:
            return kind
    raise InputError(
        f"The model should be of a known kind, {', '.join(MODELS)}, got a {type(model).__name__}.\n"
        "  Its file could not be read back."
    )
