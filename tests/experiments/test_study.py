"""Studies as they are declared, before anything runs."""

import pytest

from rotating_features.experiments import EXPERIMENTS
from rotating_features.experiments.config import Experiment, TrainConfig
from rotating_features.experiments.study import scaled


@pytest.mark.parametrize(
    ("scale", "steps", "warmup", "cooldown"),
    [(1, 100_000, 500, 4_000), (0.2, 20_000, 500, 800), (0.005, 500, 250, 20)],
)
def test_a_shorter_schedule_starts_as_gently(
    scale: float, steps: int, warmup: int, cooldown: int
) -> None:
    whole = Experiment(train=TrainConfig(cooldown_steps=4_000))
    shorter = scaled(whole, scale).train
    assert (shorter.steps, shorter.warmup_steps) == (steps, warmup)
    assert shorter.cooldown_steps == cooldown


def test_no_two_cases_share_a_run_unless_they_are_the_same(whole_studies) -> None:
    seen: dict[str, tuple[str, Experiment]] = {}
    for study in whole_studies.values():
        for case in study.cases:
            what = (case.experiment, case.settings)
            assert seen.setdefault(case.slug, what) == what
            assert case.experiment in EXPERIMENTS
