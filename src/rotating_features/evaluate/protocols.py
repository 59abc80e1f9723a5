"""How a score is taken, by name. Scores of different protocols are not comparable."""

from typing import NamedTuple

from torch import Tensor

from rotating_features.data.sample import BACKGROUND, IGNORE
from rotating_features.metrics.ari import ari_of
from rotating_features.metrics.contingency import contingency
from rotating_features.metrics.mbo import mbo_of


class Protocol(NamedTuple):
    """What enters clustering and what enters the score."""

    description: str
    overlap_is_clustered: bool

    def clustering_mask(self, instances: Tensor) -> Tensor | None:
        """Pixels that are clustered, or None for all of them."""
        return None if self.overlap_is_clustered else instances != IGNORE

    def score(self, labels: Tensor, instances: Tensor) -> dict[str, Tensor]:
        """Scores of each image, ``nan`` where it has no objects."""
        return object_scores(labels, instances)


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


def object_scores(labels: Tensor, instances: Tensor) -> dict[str, Tensor]:
    """ARI without background and mean best overlap of each image; ``nan`` where it has no objects.

    Background counts in the unions of MBO alone, ``IGNORE`` nowhere.
    """
    table = contingency(labels, instances)
    return {"ari_bg": ari_of(table, skip=(BACKGROUND, IGNORE)), "mbo_i": mbo_of(table)}
