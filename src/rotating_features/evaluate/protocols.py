"""How a score is taken, by name. Scores of different protocols are not comparable."""

from typing import NamedTuple

from torch import Tensor

from rotating_features.data.sample import BACKGROUND, IGNORE
from rotating_features.metrics import adjusted_rand_index, mean_best_overlap


class Protocol(NamedTuple):
    """What enters clustering and what enters the score."""

    description: str
    overlap_is_clustered: bool

    def clustering_mask(self, instances: Tensor) -> Tensor | None:
        """Pixels that are clustered, or None for all of them."""
        return None if self.overlap_is_clustered else instances != IGNORE

    def score(self, labels: Tensor, instances: Tensor) -> dict[str, Tensor]:
        """Scores of each image, ``nan`` where it has no objects."""
        return {
            "ari_bg": adjusted_rand_index(labels, instances, skip=(BACKGROUND, IGNORE)),
            "mbo_i": mean_best_overlap(labels, instances),
        }


PROTOCOLS = {
    "blind": Protocol(
        "Every pixel is clustered, and no ground truth is used before scoring. "
        "Pixels where objects overlap are left out of the score.",
        overlap_is_clustered=True,
    ),
    "rf2023": Protocol(
        "As in the paper's released code: pixels where objects overlap are taken out, with the "
        "help of the ground truth, before clustering, and left out of the score.",
        overlap_is_clustered=False,
    ),
}
DEFAULT_PROTOCOL = "blind"
