"""How a study is run here: which settings, where its models live, what is known already."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rotating_features._check import InputError
from rotating_features.data import PHOTOGRAPHS, SPLITS
from rotating_features.data.remote import FILES
from rotating_features.experiments.build import make_dataset
from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    Precision,
    from_dict,
)
from rotating_features.experiments.folders import find_runs, read_run
from rotating_features.experiments.photo_run import (
    check_memory,
    open_model_backbone,
    open_photographs,
)
from rotating_features.experiments.photographs import with_side
from rotating_features.experiments.run import resolve
from rotating_features.experiments.study import Case, Study, scaled, with_model
from rotating_features.train.checkpoint import is_finished

RUNS = Path("runs/reproduce")
"""Where studies keep their models."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a study is run here."""

    seeds: tuple[int, ...]
    scale: float  # of the schedule
    precision: Precision
    images: int | None  # to score; all if None
    path: Path | None  # where published files are
    runs: Path
    device: torch.device
    given: Path | None = None  # a run to be taken as it is, in place of the study's own
    backbone: str | None = None  # another than the paper's
    cases: tuple[str, ...] = ()  # by slug, if not all

    def wants(self, case: Case) -> bool:
        """Whether the case is to be run; what others have found stays as it is."""
        return not self.cases or case.slug in self.cases

    def settings(self, case: Case) -> Experiment:
        """The case's settings on this machine."""
        if self.given is not None:
            evaluate = self.scoring(case.settings.evaluate)
            return dataclasses.replace(case.settings, evaluate=evaluate)
        shorter = scaled(case.settings, self.scale)
        train = dataclasses.replace(shorter.train, precision=self.precision)
        if begun := find_runs(self.folder(case)):  # where "auto" may have meant something else
            t = read_run(begun[0]).experiment.train
            precision = t.precision if self.precision == "auto" else self.precision
            train = dataclasses.replace(train, precision=precision, compile=t.compile)
        experiment = dataclasses.replace(
            shorter, train=train, evaluate=self.scoring(shorter.evaluate), data=self.data(case)
        )
        return resolve(self.with_backbone(experiment), self.device)

    def with_backbone(self, experiment: Experiment) -> Experiment:
        """With the backbone asked for, and images of the size it wants."""
        if self.backbone is None or experiment.model.backbone is None:
            return experiment
        return with_side(with_model(experiment, backbone=self.backbone), self.backbone)

    def scoring(self, evaluate: EvaluateConfig) -> EvaluateConfig:
        few = [count for count in (self.images, evaluate.images) if count is not None]
        return dataclasses.replace(evaluate, images=min(few, default=None))

    def data(self, case: Case, data: DataConfig | None = None) -> DataConfig:
        """The images, read from ``path`` if they are made of published files.

        Files may lie in it or in its folder of the dataset's name.
        """
        data = data or case.settings.data
        kind = data.dataset if not data.dataset.startswith("mnist") else "mnist"
        drawn = kind == "multi-dsprites" and data.path is None
        if self.path is None or drawn or kind not in {**FILES, **PHOTOGRAPHS}:
            return data
        own = self.path / kind
        return dataclasses.replace(data, path=str(own if own.is_dir() else self.path))

    def name(self, case: Case) -> str:
        """Of the case's run, which no other case of a study has."""
        if self.given is not None:
            return str(self.given)
        if self.backbone is None or case.settings.model.backbone is None:
            return case.slug
        return f"{case.slug}-{short_name(self.backbone)}"

    def folder(self, case: Case) -> Path:
        """Where the case's runs live: apart for each length of the schedule and precision."""
        if self.given is not None:
            return self.given
        parts = [self.name(case)]
        if self.scale != 1:
            parts.append(f"x{self.scale:g}")
        if self.precision != "auto":
            parts.append(self.precision)
        return self.runs / "-".join(parts)


def missing(case: Case, plan: Plan) -> str | None:
    """What the case lacks here, images, a backbone or memory to train in, or None."""
    settings = plan.settings(case)
    try:
        for split in SPLITS if case.baseline is None else ("test",):
            if settings.data.dataset in PHOTOGRAPHS:
                open_photographs(settings.data, split)
            else:
                make_dataset(settings.data, split)
        open_model_backbone(settings.model, torch.device("cpu"))
        if case.baseline is None and plan.given is None and not is_here(case, plan):
            check_memory(settings, plan.device)
    except InputError as error:
        return str(error)
    return None


def result_path(name: str, plan: Plan, out: Path) -> Path:
    """Where the result is written: apart for each backbone, length of the schedule, and images."""
    parts = [name]
    if plan.given is not None:
        parts.append(plan.given.resolve().name)
    if plan.backbone is not None:
        parts.append(short_name(plan.backbone))
    if plan.scale != 1:
        parts.append(f"x{plan.scale:g}")
    if plan.images is not None:
        parts.append(f"{plan.images}-images")
    return out / f"{'-'.join(parts)}.json"


def short_name(backbone: str) -> str:
    """Of a backbone, for names of files."""
    return Path(backbone).name


def known_cases(path: Path, study: Study, plan: Plan) -> dict[str, dict[str, Any]]:
    """The study's cases that earlier calls have written down, by the name of their run.

    Those of its own file, and those that another study in the same folder shares with it.
    """
    return _of_others(path, study, plan) | _of_own(path, plan)


def _of_others(path: Path, study: Study, plan: Plan) -> dict[str, dict[str, Any]]:
    found = {}
    for other in sorted(path.parent.glob("*.json")):
        try:
            record = json.loads(other.read_text())
            same = tuple(record["seeds"]) == plan.seeds and record["scale"] == plan.scale
            cases = {case["run"]: case for case in record["cases"] if same}
        except (KeyError, TypeError, ValueError):
            continue  # not a study's, or damaged, which is not this study's concern
        for case in study.cases:
            if (name := plan.name(case)) in cases and not case.trials:
                shared = {name: cases[name] | {"trials": []} | place(case)}
                found |= shared if is_known(case, plan, shared) else {}
    return found


def _of_own(path: Path, plan: Plan) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text())
        seeds, cases = record["seeds"], {case["run"]: case for case in record["cases"]}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} should be the result of a study, but is damaged: {error!r}.\n"
            "  Move it away, or write to another --out."
        ) from error
    given = record.get("given")
    if plan.given is not None and (given is None or Path(given).resolve() != plan.given.resolve()):
        raise InputError(
            f"{path} has results of the run {given}, and {plan.given} is asked for.\n"
            "  Write to another --out."
        )
    if tuple(seeds) != plan.seeds:
        raise InputError(
            f"{path} has results of seeds {seeds}, and {[*plan.seeds]} are asked for.\n"
            "  Ask for the same, or write to another --out."
        )
    return cases


def is_here(case: Case, plan: Plan) -> bool:
    """Whether all models of the case are trained and in their folders; a baseline has none."""
    if case.baseline is not None:
        return False
    steps = plan.settings(case).train.steps
    return all(is_finished(plan.folder(case) / f"seed-{seed}", steps) for seed in plan.seeds)


def is_known(case: Case, plan: Plan, known: dict[str, dict[str, Any]]) -> bool:
    """Whether an earlier call did the case as it would be done now, and its models are gone."""
    before = known.get(plan.name(case))
    if before is None or is_here(case, plan):
        return False
    now = plan.settings(case)
    try:
        then = from_dict(before["settings"])
    except (InputError, TypeError, ValueError):
        return False
    published = (then.data.path is not None, now.data.path is not None)
    if now.data.dataset == "multi-dsprites" and published[0] != published[1]:
        return False  # drawn sprites are other images
    # Where files were says nothing of what is in them, nor compiling of what was learned.
    then = dataclasses.replace(
        then,
        data=dataclasses.replace(then.data, path=now.data.path),
        train=dataclasses.replace(then.train, compile=now.train.compile),
    )
    trials = [(trial.label, trial.x) for trial in case.trials]
    return then == now and trials == [(trial["label"], trial["x"]) for trial in before["trials"]]


def place(case: Case) -> dict[str, Any]:
    """Where the case stands in its study, and what the paper has there."""
    return {
        "label": case.label,
        "group": case.group,
        "x": case.x,
        "paper": {metric: claim._asdict() for metric, claim in case.paper.items()},
    }
