"""A table or figure of the paper, from our own runs: trained, scored, written down, resumable."""

import dataclasses
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from rotating_features._check import InputError
from rotating_features._commit import commit
from rotating_features._files import replacing
from rotating_features._version import __version__
from rotating_features.data import SPLITS
from rotating_features.data.remote import FILES
from rotating_features.experiments import report, scores
from rotating_features.experiments.build import make_dataset
from rotating_features.experiments.config import (
    DataConfig,
    EvaluateConfig,
    Experiment,
    Precision,
    to_dict,
)
from rotating_features.experiments.effort import SHARE, in_words, machine_flops, step_flops
from rotating_features.experiments.folders import Run, find_runs, open_runs, read_run
from rotating_features.experiments.run import check, evaluate_run, resolve, train_runs
from rotating_features.experiments.study import Case, Study, scaled
from rotating_features.train.checkpoint import steps_done
from rotating_features.train.machine import describe


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

    def settings(self, case: Case) -> Experiment:
        """The case's settings on this machine."""
        if self.given is not None:
            evaluate = self.scoring(case.settings.evaluate)
            return dataclasses.replace(case.settings, evaluate=evaluate)
        shorter = scaled(case.settings, self.scale)
        train = dataclasses.replace(shorter.train, precision=self.precision)
        begun = find_runs(self.folder(case))
        if begun and self.precision == "auto":  # which may mean something else where it began
            t = read_run(begun[0]).experiment.train
            train = dataclasses.replace(train, precision=t.precision, compile=t.compile)
        experiment = dataclasses.replace(
            shorter, train=train, evaluate=self.scoring(shorter.evaluate), data=self.data(case)
        )
        return resolve(experiment, self.device)

    def scoring(self, evaluate: EvaluateConfig) -> EvaluateConfig:
        few = [count for count in (self.images, evaluate.images) if count is not None]
        return dataclasses.replace(evaluate, images=min(few, default=None))

    def data(self, case: Case, data: DataConfig | None = None) -> DataConfig:
        """The images, read from ``path`` if they are made of published files.

        Files may lie in it or in its folder of the dataset's name. Multi-dSprites is drawn unless
        there is such a folder.
        """
        data = data or case.settings.data
        kind = data.dataset if not data.dataset.startswith("mnist") else "mnist"
        if self.path is None or kind not in FILES:
            return data
        own = self.path / kind
        if kind == "multi-dsprites" and not own.is_dir():
            return data
        return dataclasses.replace(data, path=str(own if own.is_dir() else self.path))

    def name(self, case: Case) -> str:
        """Of the case's run, which no other case of a study has."""
        return case.slug if self.given is None else str(self.given)

    def folder(self, case: Case) -> Path:
        """Where the case's runs live: apart for each length of the schedule and precision."""
        if self.given is not None:
            return self.given
        parts = [case.slug]
        if self.scale != 1:
            parts.append(f"x{self.scale:g}")
        if self.precision != "auto":
            parts.append(self.precision)
        return self.runs / "-".join(parts)


def missing(case: Case, plan: Plan) -> str | None:
    """What the case's images lack here, or None."""
    data = plan.settings(case).data
    try:
        for split in SPLITS:
            make_dataset(data, split)
    except InputError as error:
        return str(error)
    return None


def result_path(name: str, plan: Plan, out: Path) -> Path:
    """Where the study's result is written: apart for each length of the schedule."""
    return out / (f"{name}.json" if plan.scale == 1 else f"{name}-x{plan.scale:g}.json")


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
                shared = {name: cases[name] | {"trials": []} | _place(case)}
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
    if tuple(seeds) != plan.seeds:
        raise InputError(
            f"{path} has results of seeds {seeds}, and {[*plan.seeds]} are asked for.\n"
            "  Ask for the same, or write to another --out."
        )
    return cases


def is_here(case: Case, plan: Plan) -> bool:
    """Whether all models of the case are trained and in their folders."""
    steps = plan.settings(case).train.steps
    return all(steps_done(plan.folder(case) / f"seed-{seed}") >= steps for seed in plan.seeds)


def is_known(case: Case, plan: Plan, known: dict[str, dict[str, Any]]) -> bool:
    """Whether an earlier call did the case as it would be done now, and its models are gone."""
    before = known.get(plan.name(case))
    if before is None or is_here(case, plan):
        return False
    same = before["settings"] == json.loads(json.dumps(to_dict(plan.settings(case))))
    return same and len(before["trials"]) == len(case.trials)


def cost(study: Study, plan: Plan, known: dict[str, dict[str, Any]]) -> str:
    """What is still to be trained and how long that may take here, before any of it is."""
    models, steps, work, dtype = 0, 0, 0.0, torch.float32
    for case in study.cases:
        if is_known(case, plan, known) or missing(case, plan) is not None:
            continue
        settings = plan.settings(case)
        t = settings.train
        for seed in plan.seeds:
            left = t.steps - min(t.steps, steps_done(plan.folder(case) / f"seed-{seed}"))
            models += left > 0
            steps += left
            work += left * step_flops(settings)
        dtype = torch.bfloat16 if t.precision == "bfloat16" else dtype
    if not models:
        return "All models are trained; what is left is scoring."
    seconds = work / machine_flops(plan.device, dtype) / SHARE[plan.device.type]
    return (
        f"To train: {models} models, {steps:,} steps in all, roughly {in_words(seconds)} here."
        " Stop at any time; the same command goes on."
    )


def run_study(
    name: str,
    study: Study,
    plan: Plan,
    *,
    out: Path,
    argv: Sequence[str],
    console: Console,
) -> dict[str, Any]:
    """Train and score all cases; the result is written after each of them.

    What was trained or scored before is not done again, and what an earlier call found stays in the
    file until something replaces it. A case whose data are not here is left out in the open.
    """
    path = result_path(name, plan, out)
    found = known_cases(path, study, plan)
    if plan.path is not None and all(plan.data(case) == case.settings.data for case in study.cases):
        raise InputError(
            f"--path {plan.path} should have published files that {name} needs, but has none.\n"
            "  Leave it: what can be drawn is drawn."
        )
    record: dict[str, Any] = {
        "study": name,
        "title": study.title,
        "source": study.source,
        "command": "rotating-features " + shlex.join(argv),
        "commit": commit(),
        "version": __version__,
        "device": plan.device.type,
        "hardware": describe(),
        "scale": plan.scale,
        "seeds": [*plan.seeds],
    }
    left_out: dict[str, str] = {}
    for case in study.cases:
        if is_known(case, plan, found):
            console.print(
                f"{case.label}: as found at commit {found[plan.name(case)]['commit'][:7]}"
            )
        elif (problem := missing(case, plan)) is not None:
            console.print(f"{case.label} is left out: {problem}", soft_wrap=True)
            left_out[plan.name(case)] = problem.splitlines()[0]
        else:
            found[plan.name(case)] = _run_case(case, plan, console)
        record["left_out"] = {
            c.label: left_out[plan.name(c)]
            for c in study.cases
            if plan.name(c) in left_out and plan.name(c) not in found
        }
        record["cases"] = [found[n] for n in map(plan.name, study.cases) if n in found]
        if record["cases"]:
            _write(path, record)
    if not record["cases"]:
        raise InputError(f"No case of {name} could run; see above for what is missing.")
    return record


def _run_case(case: Case, plan: Plan, console: Console) -> dict[str, Any]:
    settings = plan.settings(case)
    check(settings)
    folder = plan.folder(case)
    if plan.given is None:
        runs = open_runs(folder, case.experiment, "paper", settings, plan.seeds, resume=True)
    else:
        runs = [read_run(path) for path in find_runs(folder)]
    unfinished = [run for run in runs if steps_done(run.folder) < settings.train.steps]
    if unfinished:
        console.print(f"{case.label}: {settings.train.steps:,} steps, in {folder}")
        for run in unfinished:
            (run.folder / scores.FILE).unlink(missing_ok=True)  # of a model less trained
        train_runs(runs, plan.device)
    summary = report.summarise([_scored(run, settings.evaluate, plan.device) for run in runs])
    trials = []
    for trial in case.trials:
        evaluate = plan.scoring(trial.evaluate)
        data = None if trial.data is None else plan.data(case, trial.data)
        rows = [_scored(run, evaluate, plan.device, data) for run in runs]
        trials.append({"label": trial.label, "x": trial.x, "scores": report.summarise(rows)})
    seconds = [report.training_seconds(run.folder) for run in runs]
    return {
        **_place(case),
        "run": plan.name(case),
        "commit": commit(),
        "hardware": describe(),
        "settings": to_dict(settings),
        "training_seconds": seconds,
        "training_seconds_in_all": report.seconds_in_all(seconds, plan.device),
        "scores": summary,
        "trials": trials,
    }


def _place(case: Case) -> dict[str, Any]:
    """Where the case stands in its study, and what the paper has there."""
    return {
        "label": case.label,
        "group": case.group,
        "x": case.x,
        "paper": {metric: claim._asdict() for metric, claim in case.paper.items()},
    }


def _scored(
    run: Run, evaluate: EvaluateConfig, device: torch.device, data: DataConfig | None = None
) -> list[scores.Row]:
    """Rows of the run under these settings, taken now unless its file has them."""
    if data == run.experiment.data:
        data = None
    which = "" if data is None else scores.describe_data(data, run.experiment.data)
    way, wanted = scores.describe(evaluate), len(make_dataset(data or run.experiment.data, "test"))
    wanted = min(wanted, evaluate.images or wanted)

    def there() -> list[scores.Row]:
        return [
            row
            for row in scores.read(run.folder)
            if (row["data"], row["clustering"]) == (which, way)
            and row["protocol"] in evaluate.protocols
            and row["image"] < wanted
        ]

    if len(rows := there()) == wanted * len(evaluate.protocols):
        return rows
    evaluate_run(run, evaluate, device, data=data)
    return there()  # as the file has them, lest a digit change when they are read again


def worse(metric: str, ours: dict[str, Any], claim: dict[str, float] | None) -> bool:
    """Whether our mean is worse than the paper's by more than two of its standard errors."""
    if claim is None or metric == "iou_random":  # a baseline has no better or worse
        return False
    sign, digits = (-1, 9) if metric == "mse" else (1, 3)  # as many as the paper prints
    return sign * (claim["mean"] - round(ours["mean"], digits)) > 2 * claim["sem"] + 1e-9


def _write(path: Path, record: dict[str, Any]) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps(record, indent=2) + "\n")
