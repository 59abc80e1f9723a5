"""Studies so small that they run in seconds, and training on photographs by command."""

import dataclasses
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rotating_features.cli import main
from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments.photo_studies import PHOTO_STUDIES
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.study import Case, Study

WHOLE = dict(STUDIES)
FEW = shlex.split("--seeds 0 1 --scale 0.00002 --images 2")
TINY = shlex.split(
    "--train.steps 2 --train.batch-size 2 --train.log-every 1 --train.warmup-steps 1 "
    "--model.hidden-dim 2 --model.rotation-dim 2 --data.side 32"
)


@pytest.fixture(scope="session")
def whole_studies() -> Mapping[str, Study]:
    """Studies with all their cases, of which ``here`` leaves a few."""
    return WHOLE


@pytest.fixture(scope="session")
def small() -> Callable[[Case], Case]:
    """The case with a model and photographs that take no time."""

    def shrink(case: Case) -> Case:
        model = dataclasses.replace(case.settings.model, hidden_dim=2)
        train = dataclasses.replace(case.settings.train, batch_size=2)
        data = dataclasses.replace(case.settings.data, side=32)
        data = data if case.settings.data.dataset in PHOTOGRAPHS else case.settings.data
        settings = dataclasses.replace(case.settings, model=model, train=train, data=data)
        return dataclasses.replace(case, settings=settings, trials=case.trials[::9])

    return shrink


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Callable[[Case], Case]) -> None:
    """An empty folder to work in, and studies of a few small cases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rotating_features.experiments.run.VALIDATION_IMAGES", 2)
    for what in ("machine_flops", "step_flops"):  # which have tests of their own
        monkeypatch.setattr(f"rotating_features.experiments.reproduce.{what}", lambda *_: 1e9)
    for name, study in STUDIES.items():
        few = tuple(small(case) for case in (study.cases[0], *study.cases[1:][-1:]))
        few = tuple(map(small, study.cases)) if name in PHOTO_STUDIES else few
        monkeypatch.setitem(STUDIES, name, dataclasses.replace(study, cases=few))


@pytest.fixture(scope="session")
def reproduce() -> Callable[..., int]:
    """The status of ``reproduce WORDS`` for two seeds, a few steps and two images."""

    def run(*words: str) -> int:
        return main(["reproduce", *words, *FEW])

    return run


@pytest.fixture(scope="session")
def result() -> Callable[[str], dict[str, Any]]:
    """What ``reproduce`` found, by the name of its file."""

    def read(name: str) -> dict[str, Any]:
        return json.loads(Path("results", f"{name}-x2e-05-2-images.json").read_text())

    return read


@pytest.fixture(scope="session")
def train() -> Callable[..., int]:
    """The status of ``train`` on photographs for two steps: runs, dataset, path, backbone."""

    def run(runs: Path, dataset: str, path: Path | str, backbone: Path | str, *words: str) -> int:
        where = ["--runs", str(runs), "--data.path", str(path), "--model.backbone", str(backbone)]
        return main(["train", dataset, "--preset", "quick", *where, *TINY, *words])

    return run
