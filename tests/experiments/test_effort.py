"""How long training will take, roughly."""

import dataclasses
from pathlib import Path

import pytest
import torch

from rotating_features.experiments import EXPERIMENTS
from rotating_features.experiments.config import DataConfig, Experiment, ModelConfig
from rotating_features.experiments.effort import (
    in_words,
    look_flops,
    machine_flops,
    step_flops,
)
from rotating_features.experiments.photo_run import open_photographs


def test_a_step_of_4shapes_has_58_gflop() -> None:
    """As counted by hand from the architecture table: 576 maps, forward and backward."""
    assert step_flops(Experiment()) / 1e9 == pytest.approx(57.8, rel=0.01)


def test_cost_grows_with_the_rotation_dimension_and_the_batch() -> None:
    few, many = (step_flops(Experiment(model=ModelConfig(rotation_dim=n))) for n in (2, 8))
    assert many / few == pytest.approx(9 / 3, rel=0.02)
    e = Experiment()
    half = dataclasses.replace(e, train=dataclasses.replace(e.train, batch_size=32))
    assert step_flops(half) == pytest.approx(step_flops(e) / 2)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_counted(
    name: str, published: Path, photographs: dict, tiny_backbone: Path
) -> None:
    e = EXPERIMENTS[name]["paper"]
    if name in photographs:
        e = dataclasses.replace(e, model=dataclasses.replace(e.model, backbone=str(tiny_backbone)))
    if e.data.dataset.startswith(("mnist", "clevr")):
        e = dataclasses.replace(e, data=DataConfig(dataset=e.data.dataset, path=str(published)))
    assert step_flops(e) > 1e9


def test_a_backbone_is_counted_once_and_not_thrice(tiny_backbone: Path) -> None:
    e = EXPERIMENTS["folder"]["paper"]
    on_pixels = dataclasses.replace(e, model=dataclasses.replace(e.model, backbone=None))
    on_features = dataclasses.replace(
        e, model=dataclasses.replace(e.model, backbone=str(tiny_backbone))
    )
    assert step_flops(on_pixels) > step_flops(on_features) > 1e9


def test_crops_that_are_kept_are_counted_once_and_not_in_every_step(
    photographs: dict, tiny_backbone: Path
) -> None:
    e = EXPERIMENTS["folder"]["paper"]
    model = dataclasses.replace(e.model, backbone=str(tiny_backbone))
    data = dataclasses.replace(e.data, path=str(photographs["folder"]))
    e = dataclasses.replace(e, model=model, data=data)
    kept = dataclasses.replace(e, data=dataclasses.replace(data, crops=3))
    in_steps = step_flops(e) - step_flops(kept)
    looks = 3 * len(open_photographs(data, "train"))
    assert look_flops(e) == 0
    assert look_flops(kept) == pytest.approx(looks * in_steps / e.train.batch_size)
    on_pixels = dataclasses.replace(kept, model=dataclasses.replace(model, backbone=None))
    assert look_flops(on_pixels) == 0


def test_the_machine_computes_something() -> None:
    assert 1e8 < machine_flops(torch.device("cpu"), torch.float32) < 1e15


@pytest.mark.parametrize(
    ("seconds", "words"), [(12.3, "12 s"), (600, "10 min"), (9000, "2.5 h"), (89, "89 s")]
)
def test_time_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
