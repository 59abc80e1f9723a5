"""Layers of rotating features, and of the complex and standard ones they are compared with."""

from rotating_features.nn.complex import ComplexConv2d, ComplexConvTranspose2d, ComplexLinear
from rotating_features.nn.conv import RotatingConv2d, RotatingConvTranspose2d
from rotating_features.nn.layer import RotatingLayer
from rotating_features.nn.linear import RotatingLinear
from rotating_features.nn.readout import Readout
from rotating_features.nn.stacked import StackedLayer
from rotating_features.nn.standard import StandardConv2d, StandardConvTranspose2d, StandardLinear

__all__ = [
    "ComplexConv2d",
    "ComplexConvTranspose2d",
    "ComplexLinear",
    "Readout",
    "RotatingConv2d",
    "RotatingConvTranspose2d",
    "RotatingLayer",
    "RotatingLinear",
    "StackedLayer",
    "StandardConv2d",
    "StandardConvTranspose2d",
    "StandardLinear",
]
