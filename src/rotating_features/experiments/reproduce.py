"""A table or figure of the paper, from our own runs: trained, scored, written down, resumable."""

import dataclasses
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console

from rotating_features._check import InputError
from rotating_features._commit import commit
from rotating_features._files import replacing
from rotating_features._lock import locked
from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments import report, scores
from rotating_features.experiments.build import make_dataset
from rotating_features.experiments.config import DataConfig, EvaluateConfig
from rotating_features.experiments.effort import (
    SHARE,
    in_words,
    look_flops,
    machine_flops,
    step_flops,
)
from rotating_features.experiments.folders import Run, find_runs, open_runs, read_run
from rotating_features.experiments.photo_scores import (
    names_of_tests,
    protocol_name,
    score_baseline,
)
from rotating_features.experiments.plan import (
    Plan,
    is_known,
    known_cases,
    missing,
    place,
    result_path,
)
from rotating_features.experiments.provenance import provenance, settings_for_others, short
from rotating_features.experiments.run import check, check_scoring, evaluate_run, train_runs
from rotating_features.experiments.study import Case, Study
from rotating_features.features import about
from rotating_features.train.checkpoint import is_finished, steps_done

WHERE = ("commit", "device", "hardware", "also_trained_on", "scored_on")
"""What of a case says where it was found, not what."""


def cost(study: Study, plan: Plan, known: dict[str, dict[str, Any]]) -> str:
    """What is still to be trained and how long that may take here, before any of it is."""
    models, steps, work, dtype, lacking = 0, 0, 0.0, torch.float32, 0
    for case in study.cases:
        if case.baseline or not plan.wants(case):
            continue
        if is_known(case, plan, known):
            continue
        if missing(case, plan) is not None:
            lacking += 1
            continue
        settings = plan.settings(case)
        t = settings.train
        done = [steps_done(plan.folder(case) / f"seed-{seed}") for seed in plan.seeds]
        left = [t.steps - min(t.steps, taken) for taken in done]
        models += sum(each > 0 for each in left)
        steps += sum(left)
        if any(left):
            work += sum(left) * step_flops(settings) + look_flops(settings)
        dtype = torch.bfloat16 if t.precision == "bfloat16" else dtype
    rows = f"{lacking} row{'s'[: lacking > 1]}"
    without = f" {rows} cannot be trained here, see below." if lacking else ""
    if not models:
        return f"There is nothing to train, scoring is all that is left.{without}"
    seconds = work / machine_flops(plan.device, dtype) / SHARE[plan.device.type]
    return (
        f"To train: {models} models, {steps:,} steps in all, roughly {in_words(seconds)} here."
        f" Stop at any time; the same command goes on.{without}"
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
        **provenance(argv, plan.device),
        "scale": plan.scale,
        "images": plan.images,
        "seeds": [*plan.seeds],
        "backbone": None if plan.backbone is None else about(plan.backbone),
        "given": None if plan.given is None else str(plan.given),
    }
    left_out: dict[str, str] = {}
    mine: dict[str, dict[str, Any]] = {}
    for case in study.cases:
        own = plan.name(case)
        if not plan.wants(case):
            continue
        if is_known(case, plan, found):
            console.print(f"{case.label}: as found at commit {short(found[own]['commit'])}")
        elif (problem := missing(case, plan)) is not None:
            console.print(f"{case.label} is left out: {problem}", soft_wrap=True)
            left_out[own] = problem.splitlines()[0]
        else:
            run = _run_case if case.baseline is None else _run_baseline
            mine[own] = _newer(found.get(own), run(case, plan, console))
            found = known_cases(path, study, plan) | mine  # others may have found rows meanwhile
        record["left_out"] = {
            c.label: left_out[plan.name(c)]
            for c in study.cases
            if plan.name(c) in left_out and plan.name(c) not in found
        }
        record["cases"] = [  # of whose places the file may have an older wording
            found[n] | place(c) for c in study.cases if (n := plan.name(c)) in found
        ]
        if record["cases"]:
            _write(path, record)
    if not record["cases"]:
        raise InputError(f"No case of {name} could run; see above for what is missing.")
    return record


def _newer(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """What was found now, unless it was found before: that keeps its commit and machine."""
    if before is None:
        return now
    found, again = (
        {key: value for key, value in each.items() if key not in WHERE}
        for each in (before, json.loads(json.dumps(now)))
    )
    return before if found == again else now


def _run_case(case: Case, plan: Plan, console: Console) -> dict[str, Any]:
    settings = plan.settings(case)
    check(settings)
    folder = plan.folder(case)
    ours = plan.given is None  # else only its scores are
    with ExitStack() as opened:
        if ours:
            runs = opened.enter_context(
                open_runs(folder, case.experiment, "paper", settings, plan.seeds, resume=True)
            )
        else:
            runs = [read_run(path) for path in find_runs(folder)]
            opened.enter_context(locked(run.folder for run in runs))
        if not all(is_finished(run.folder, settings.train.steps) for run in runs):
            console.print(f"{case.label}: {settings.train.steps:,} steps, in {folder}")
            train_runs(runs, plan.device)
        summary = report.summarise([_scored(run, settings.evaluate, plan.device) for run in runs])
        trials = []
        for trial in case.trials:
            evaluate = plan.scoring(trial.evaluate)
            data = None if trial.data is None else plan.data(case, trial.data)
            rows = [_scored(run, evaluate, plan.device, data) for run in runs]
            trials.append({"label": trial.label, "x": trial.x, "scores": report.summarise(rows)})
    return _found(case, plan, summary, trials, runs if ours else [])


def _run_baseline(case: Case, plan: Plan, console: Console) -> dict[str, Any]:
    """Scores of labels that take no learning; only those of k-means depend on the seed."""
    assert case.baseline is not None
    settings = plan.settings(case)
    check_scoring(settings.model, settings.data, settings.evaluate)
    console.print(f"{case.label}: scoring")
    seeds = plan.seeds if case.baseline.startswith("k-means") else (0,)
    rows = []
    with TemporaryDirectory() as folder:  # a backbone's features are the same for all seeds
        evaluate = dataclasses.replace(settings.evaluate, feature_cache=folder)
        settings = dataclasses.replace(settings, evaluate=evaluate)
        for seed in seeds:
            batches = score_baseline(case.baseline, settings, plan.device, seed=seed)
            rows.append(scores.to_rows(batches, clustering=case.baseline))
    return _found(case, plan, report.summarise(rows), [], [])


def _found(
    case: Case,
    plan: Plan,
    summary: dict[str, Any],
    trials: list[dict[str, Any]],
    trained: list[Run],
) -> dict[str, Any]:
    return {
        **place(case),
        "run": plan.name(case),
        "commit": commit(),
        **report.training(trained, plan.device),
        "settings": settings_for_others(settings := plan.settings(case)),
        "protocols": scores.describe_protocols(settings.data, settings.evaluate),
        "scores": summary,
        "trials": trials,
    }


def _scored(
    run: Run, evaluate: EvaluateConfig, device: torch.device, data: DataConfig | None = None
) -> list[scores.Row]:
    """Rows of the run under these settings, taken now unless its file has them."""
    if data == run.experiment.data:
        data = None
    which = "" if data is None else scores.describe_data(data, run.experiment.data)
    shown = data or run.experiment.data
    photographs = names_of_tests(shown) if shown.dataset in PHOTOGRAPHS else None
    wanted = len(make_dataset(shown, "test") if photographs is None else photographs)
    wanted = min(wanted, evaluate.images or wanted)
    way, protocols = scores.describe(evaluate), evaluate.protocols
    if photographs is not None:
        protocols = tuple(protocol_name(name, shown) for name in protocols)

    def there() -> list[scores.Row]:
        return [
            row
            for row in scores.read(run.folder)
            if (row["data"], row["clustering"]) == (which, way)
            and row["protocol"] in protocols
            and row["image"] < wanted
            and not scores.is_stale(row, photographs)
        ]

    if len(rows := there()) == wanted * len(protocols):
        return rows
    evaluate_run(run, evaluate, device, data=data)
    return there()  # as the file has them, lest a digit change when they are read again


def _write(path: Path, record: dict[str, Any]) -> None:
    """Unless the file says the same, which then keeps its commit and machine."""
    if path.exists():
        before = json.loads(path.read_text())
        if all(before.get(key) == record[key] for key in ("cases", "left_out")):
            return
    with replacing(path) as partial:
        partial.write_text(json.dumps(record, indent=2) + "\n")
