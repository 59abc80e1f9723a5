"""What is tried after training, by what was trained on."""

import pytest

from rotating_features.experiments.four_shapes_studies import FIGURE_CLUSTERING, sweep
from rotating_features.experiments.photo_studies import PHOTO_STUDIES


def thresholds(trials) -> list[float]:
    return [t.x for t in trials if t.evaluate.cluster == "agglomerative"]


def test_photographs_are_swept_over_shorter_distances() -> None:
    """Ward's grow with the number of points; what suits 32 x 32 joins all of 14 x 14."""
    drawn = FIGURE_CLUSTERING.cases[0]
    photographs = sweep(PHOTO_STUDIES["table-pascal"].cases[-1])
    assert max(thresholds(photographs.trials)) < max(thresholds(drawn.trials)) / 2


@pytest.mark.parametrize(
    "case", [FIGURE_CLUSTERING.cases[0], PHOTO_STUDIES["table-pascal"].cases[-1]]
)
def test_the_runs_own_k_is_among_those_tried(case) -> None:
    tried = [t.x for t in sweep(case).trials if t.evaluate.cluster == "kmeans"]
    assert case.settings.evaluate.k in tried
