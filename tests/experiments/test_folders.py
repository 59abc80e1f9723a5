"""Folders of runs: which run may go on in one."""

import dataclasses
from pathlib import Path

import pytest

from rotating_features._check import InputError
from rotating_features.experiments import folders
from rotating_features.experiments.config import DataConfig, Experiment, ModelConfig, TrainConfig
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
        with open_runs(tmp_path, "4shapes", "", Experiment(train=train), (0,), resume=True):
            pass

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
    with open_runs(tmp_path, "4shapes", "", experiment, (0,), resume=False):
        pass
    (tmp_path / "seed-0" / folders.TRAINER_FILE).touch()
    monkeypatch.setattr(folders, "steps_done", lambda folder: 6)
    with open_runs(tmp_path, "4shapes", "", longer, (0,), resume=True):
        pass


def begin(
    folder: Path,
    seeds: tuple[int, ...],
    *,
    resume=False,
    name="4shapes",
    steps=9,
    path=None,
    **model,
) -> None:
    train = TrainConfig(steps=steps, warmup_steps=1)
    data = DataConfig(dataset="folder" if path else "4shapes", path=path)
    experiment = Experiment(data=data, model=ModelConfig(**model), train=train)
    with open_runs(folder, name, "quick", experiment, seeds, resume=resume):
        pass


def test_seeds_of_one_folder_are_of_one_model(tmp_path: Path) -> None:
    begin(tmp_path, (0,))
    with pytest.raises(InputError, match=r"seed-0 has other settings: model.rotation_dim 8 -> 4"):
        begin(tmp_path, (1,), rotation_dim=4)
    with pytest.raises(InputError, match="name 4shapes -> 10shapes"):
        begin(tmp_path, (1,), name="10shapes")
    with pytest.raises(InputError, match=r"train.steps 9 -> 7.*\n.*--resume and --seeds"):
        begin(tmp_path, (1,), steps=7)
    assert [path.name for path in tmp_path.iterdir()] == ["seed-0"]
    begin(tmp_path, (0, 1), steps=12, resume=True)
    with pytest.raises(InputError, match="steps 12 -> 9"):
        begin(tmp_path, (2,))


def test_photographs_may_move_only_where_somebody_looks_at_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path, (0,), path="here")
    (tmp_path / "seed-0" / folders.TRAINER_FILE).touch()
    with pytest.raises(InputError, match=r"data\.path here -> there"):
        begin(tmp_path, (1,), path="there")
    monkeypatch.setattr(folders, "steps_done", lambda folder: 9)
    with pytest.raises(InputError, match=r"data\.path here -> there"):
        begin(tmp_path, (0,), path="there", resume=True)
    begin(tmp_path, (0,), path="there", steps=10, resume=True)


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
