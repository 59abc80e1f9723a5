"""Folders of runs: which run may go on in one."""

import dataclasses
from pathlib import Path

import pytest

from rotating_features._check import InputError
from rotating_features.experiments import folders
from rotating_features.experiments.config import Experiment, ModelConfig, TrainConfig
from rotating_features.experiments.folders import open_runs


@pytest.mark.parametrize(
    ("done", "before", "wanted", "goes_on"),
    [
        (4, 6, 9, True),
        (5, 6, 9, True),
        (6, 6, 9, False),
        (6, 9, 7, True),
        (7, 9, 7, False),
        (5, 6, 6, True),
        (6, 6, 6, True),
    ],
)
def test_a_rate_that_falls_settles_the_number_of_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int, before: int, wanted: int, goes_on
) -> None:
    """Over the last two steps: with another number of them it would have fallen elsewhere."""

    def begin(steps: int) -> None:
        train = TrainConfig(steps=steps, warmup_steps=1, cooldown_steps=2)
        open_runs(tmp_path, "4shapes", "", Experiment(train=train), (0,), resume=True)

    begin(before)
    (tmp_path / "seed-0" / folders.TRAINER_FILE).touch()
    monkeypatch.setattr(folders, "steps_done", lambda folder: done)
    if goes_on:
        begin(wanted)
    else:
        with pytest.raises(InputError, match=f"done {done} of {before} steps, over the last 2"):
            begin(wanted)


def test_a_constant_rate_settles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment(train=TrainConfig(steps=6))
    longer = dataclasses.replace(experiment, train=TrainConfig(steps=9))
    open_runs(tmp_path, "4shapes", "", experiment, (0,), resume=False)
    (tmp_path / "seed-0" / folders.TRAINER_FILE).touch()
    monkeypatch.setattr(folders, "steps_done", lambda folder: 6)
    open_runs(tmp_path, "4shapes", "", longer, (0,), resume=True)


def begin(folder: Path, seeds: tuple[int, ...], *, resume: bool = False, name="4shapes", **model):
    experiment = Experiment(model=ModelConfig(**model))
    return open_runs(folder, name, "quick", experiment, seeds, resume=resume)


def test_seeds_of_one_folder_are_of_one_model(tmp_path: Path) -> None:
    begin(tmp_path, (0,))
    with pytest.raises(InputError, match=r"seed-0 has other settings: model.rotation_dim 8 -> 4"):
        begin(tmp_path, (1,), rotation_dim=4)
    with pytest.raises(InputError, match="name 4shapes -> 10shapes"):
        begin(tmp_path, (1,), name="10shapes")
    assert [path.name for path in tmp_path.iterdir()] == ["seed-0"]
    begin(tmp_path, (1,))


def test_a_run_keeps_its_name_even_before_its_first_checkpoint(tmp_path: Path) -> None:
    """Its settings are those of the folder, so another name would be a wrong one."""
    begin(tmp_path, (0,))
    with pytest.raises(InputError, match="name 4shapes -> 10shapes"):
        begin(tmp_path, (0,), name="10shapes", resume=True)
    begin(tmp_path, (0,), rotation_dim=4, resume=True)  # nothing has been learned yet


def test_a_trained_model_is_not_begun_anew(tmp_path: Path) -> None:
    begin(tmp_path, (0,))
    (tmp_path / "seed-0" / folders.MODEL_FILE).touch()
    with pytest.raises(InputError, match=r"trained model, but no trainer\.pt to go on from"):
        begin(tmp_path, (0,), resume=True)
