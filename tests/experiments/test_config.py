import dataclasses
import json

import pytest

from rotating_features.experiments import EXPERIMENTS
from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
    differences,
    from_dict,
    to_dict,
)


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("preset", ["paper", "quick"])
def test_every_experiment_survives_a_trip_through_json(name: str, preset: str) -> None:
    experiment = EXPERIMENTS[name][preset]
    assert from_dict(json.loads(json.dumps(to_dict(experiment)))) == experiment


def test_the_paper_preset_has_the_papers_numbers() -> None:
    """Table of hyperparameters, column 4Shapes."""
    paper = EXPERIMENTS["4shapes"]["paper"]
    t = paper.train
    assert (t.steps, t.batch_size, t.warmup_steps, t.lr, t.grad_clip) == (
        100_000,
        64,
        500,
        0.001,
        0.1,
    )
    assert (paper.model.hidden_dim, paper.model.rotation_dim, paper.evaluate.k) == (32, 8, 5)
    assert paper.evaluate.magnitude_threshold == 0.1
    assert paper.evaluate.images is None


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ModelConfig, {"rotation_dim": 1}),
        (ModelConfig, {"hidden_dim": 0}),
        (TrainConfig, {"steps": 0}),
        (TrainConfig, {"lr": 0.0}),
        (TrainConfig, {"lr": float("nan")}),
        (TrainConfig, {"grad_clip": -1.0}),
        (TrainConfig, {"warmup_steps": -1}),
        (TrainConfig, {"cooldown_steps": -1}),
        (TrainConfig, {"cooldown_steps": 99_501}),
        (DataConfig, {"crops": 0}),
        (DataConfig, {"seed": -1}),
        (DataConfig, {"seed": 2**63}),
        (DataConfig, {"crops": 1_001}),
        (TrainConfig, {"weight_decay": -0.1}),
        (EvaluateConfig, {"k": 0}),
        (EvaluateConfig, {"images": 0}),
        (EvaluateConfig, {"distance_threshold": 0.0}),
        (EvaluateConfig, {"protocols": ("kind",)}),
        (EvaluateConfig, {"protocols": ()}),
    ],
)
def test_settings_out_of_range_are_refused_by_name(kind, wrong) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kind(**wrong)


def test_choices_that_do_not_exist_are_refused() -> None:
    """As a newer version may have written them."""
    values = to_dict(Experiment())
    values["data"]["dataset"] = "5shapes"
    with pytest.raises(ValueError, match=r"dataset should be one of \['4shapes', .*'5shapes'"):
        from_dict(values)


def test_unknown_settings_in_a_file_are_refused() -> None:
    values = to_dict(Experiment())
    values["train"]["momentum"] = 0.9
    with pytest.raises(ValueError, match=r"it has no \['momentum'\]"):
        from_dict(values)


def test_differences_name_what_changed() -> None:
    a = Experiment()
    b = dataclasses.replace(a, train=TrainConfig(steps=7))
    assert differences(a, b) == ["train.steps 100000 -> 7"]
    assert differences(a, a) == []
