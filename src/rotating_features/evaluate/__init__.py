"""From rotating features to objects and scores."""

from rotating_features.evaluate.automatic import kmeans_auto
from rotating_features.evaluate.baselines import block_masks, cluster_features, one_label
from rotating_features.evaluate.cluster import Clusters, cluster
from rotating_features.evaluate.discover import Discovery, ObjectModel, discover
from rotating_features.evaluate.kmeans import kmeans
from rotating_features.evaluate.orientation import orientation_map
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS, PhotoProtocol
from rotating_features.evaluate.photographs import prepare_masks, score_photographs
from rotating_features.evaluate.protocols import DEFAULT_PROTOCOL, PROTOCOLS, Protocol
from rotating_features.evaluate.resize import resize_labels
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
    "PHOTO_PROTOCOLS",
    "PROTOCOLS",
    "Clusters",
    "Discovery",
    "ObjectModel",
    "PhotoProtocol",
    "Protocol",
    "accuracy",
    "block_masks",
    "cluster",
    "cluster_features",
    "dataset_iou",
    "discover",
    "kmeans",
    "kmeans_auto",
    "label_pixels",
    "match_randomly",
    "mode_filter",
    "one_label",
    "orientation_map",
    "prepare_masks",
    "resize_labels",
    "score",
    "score_photographs",
    "semantic_scores",
]
