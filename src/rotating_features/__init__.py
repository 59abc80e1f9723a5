"""Rotating features: networks whose features are vectors.

The length of a feature says that it is there, its direction to which object it belongs, and
nobody labels anything.
"""

from rotating_features._version import __version__
from rotating_features.evaluate.discover import discover
from rotating_features.models.store import load
from rotating_features.vectors import lift, magnitude

__all__ = ["__version__", "discover", "lift", "load", "magnitude"]
