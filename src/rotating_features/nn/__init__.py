"""Layers of rotating features."""

from rotating_features.nn.conv import RotatingConv2d, RotatingConvTranspose2d
from rotating_features.nn.layer import RotatingLayer
from rotating_features.nn.linear import RotatingLinear
from rotating_features.nn.readout import Readout

__all__ = [
    "Readout",
    "RotatingConv2d",
    "RotatingConvTranspose2d",
    "RotatingLayer",
    "RotatingLinear",
]
