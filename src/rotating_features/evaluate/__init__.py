"""From rotating features to objects and scores."""

from rotating_features.evaluate.cluster import Clusters, cluster
from rotating_features.evaluate.discover import Discovery, discover
from rotating_features.evaluate.kmeans import kmeans
from rotating_features.evaluate.orientation import orientation_map
from rotating_features.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, Protocol
from rotating_features.evaluate.score import score
from rotating_features.evaluate.semantic import (
    accuracy,
    dataset_iou,
    label_pixels,
    match_randomly,
    semantic_scores,
)
from rotating_features.evaluate.smooth import mode_filter

__all__ = [
    "DEFAULT_PROTOCOL",
    "PROTOCOLS",
    "Clusters",
    "Discovery",
    "Protocol",
    "accuracy",
    "cluster",
    "dataset_iou",
    "discover",
    "kmeans",
    "label_pixels",
    "match_randomly",
    "mode_filter",
    "orientation_map",
    "score",
    "semantic_scores",
]
