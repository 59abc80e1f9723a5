"""Scores of predicted objects: per image, in float64, batched, on any device."""

from rotating_features.metrics.ari import adjusted_rand_index
from rotating_features.metrics.iou import ClassOverlap, class_overlap, mean_iou
from rotating_features.metrics.mbo import mean_best_overlap

__all__ = [
    "ClassOverlap",
    "adjusted_rand_index",
    "class_overlap",
    "mean_best_overlap",
    "mean_iou",
]
