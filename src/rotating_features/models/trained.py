"""Models that come along, trained by us: for whoever has images and no time to train."""

from pathlib import Path

TRAINED = {
    "voc-small": "objects in photographs: rotating features (n=8, d=64) trained on Pascal VOC 2012 "
    "without its labels, on features of efficientnet-lite0-s32, which was trained with ImageNet's; "
    "needs rotating_features[cnn]",
}
"""Names that :func:`rotating_features.load` knows, and what they are."""


def folder_of(name: str) -> Path:
    """Where a model of ``TRAINED`` lives: as a run does, settings beside weights."""
    return Path(__file__).parents[1] / "trained" / name
