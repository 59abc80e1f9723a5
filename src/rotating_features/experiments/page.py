"""The page of results, made from the files of results alone."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any, get_args

import torch
from matplotlib.figure import Figure

from rotating_features._check import InputError
from rotating_features.experiments.config import Experiment, Precision, differences, from_dict
from rotating_features.experiments.plan import RUNS, Plan, short_name
from rotating_features.experiments.provenance import machine_name, short, study_command
from rotating_features.experiments.report import METRICS, cell
from rotating_features.experiments.show import figure, heading, origin, tables
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.study import Study, scaled
from rotating_features.experiments.theory import TITLES

INTRODUCTION = """\
# Results

Made by `rotating-features reproduce page` from [results/](../results); do not edit. ARI-BG and
MBO_i are scored as the paper's released code scores (protocol `rf2023`), and the paper's own
numbers stand beside them. ± is the standard error over seeds. An exclamation mark: our mean is
worse than the paper's by more than two of its standard errors. Runs may have shared their GPU, so
times of training are upper bounds; [benchmarks](benchmarks.md) are taken alone.
"""


OF_THE_CALL = {
    "data.path",
    "train.precision",
    "train.compile",
    "evaluate.images",
    "evaluate.protocols",
}
"""Settings that the command's options and the machine decide, or that say what else was scored."""

NEEDED = {
    "study": {"title", "source", "hardware", "seeds", "cases", "left_out", "scale"},
    "theory": {"command", "commit", "hardware", "device"},
    "experiment": {"seeds", "scores"},
}
"""What a file of each kind has."""


def page(folder: Path, *, where: str = "../results") -> str:
    """All results in the folder as Markdown, for a page from which the folder is ``where``."""
    records = _read_all(folder)
    parts = [INTRODUCTION.replace("../results", where)]
    for name, study in STUDIES.items():
        own = [(stem, record) for stem, record in records.items() if record.get("study") == name]
        own.sort(key=lambda item: -item[1]["scale"])  # the longest runs first
        parts += [_section(stem, record, study, folder, where) for stem, record in own]
    for name, title in TITLES.items():
        if (record := records.get(name)) is not None:
            parts.append(_theory(name, title, record, where))
    runs = {name: record for name, record in records.items() if not {"study", "theory"} & {*record}}
    if runs:
        parts.append(_single_runs(runs, where))
    return "\n".join(parts)


def plots(folder: Path) -> dict[str, Figure]:
    """The figures of all studies in the folder that vary something, as far as they have come."""
    studies = {name: r for name, r in _read_all(folder).items() if r.get("study") in STUDIES}
    drawn = {name: figure(record, STUDIES[record["study"]]) for name, record in studies.items()}
    return {name: plot for name, plot in drawn.items() if plot is not None}


def _section(name: str, record: dict[str, Any], study: Study, folder: Path, where: str) -> str:
    first, *others = tables(record, study)
    there, absent = _rows(record, study)
    lines = [
        f"## {heading(record)}",
        "",
        f"The paper: {study.says[0].lower()}{study.says[1:]}",
        "",
        f"`{study_command(record, there if absent else ())}`, {_made(record)}.",
        "",
        *_markdown(first.head, first.rows),
    ]
    for other in others:
        lines += ["", f"{other.says}:", "", *_markdown(other.head, other.rows)]
    if said := origin(record):
        lines += ["", said]
    if record.get("given"):
        lines += _of_run(record)
    else:
        lines += _since_changed(record, study)
    if absent:
        lines += ["", f"Not run: {', '.join(absent)}."]
    for label, why in record["left_out"].items():
        lines += ["", f"{label} is left out: {why}"]
    for picture in (f"{name}.png", f"{name}-objects.png"):
        if (folder / picture).exists():
            lines += ["", f"![{record['title']}]({where}/{picture})"]
    return "\n".join([*lines, ""])


def _made(record: dict[str, Any]) -> str:
    """At which commits, on what and for how long a study's rows were trained and scored."""
    cases, scored = record["cases"], dict[str, list[str]]()
    commits = list(dict.fromkeys(short(case["commit"]) for case in cases))
    machines = dict[str, None]()
    for case in cases:
        trained = [{"hardware": record["hardware"]} | case, *case.get("also_trained_on", [])]
        machines |= dict.fromkeys(map(machine_name, trained))
        if other := case.get("scored_on"):
            scored.setdefault(machine_name(other), []).append(case["run"])
    scorers = [
        f"{'' if len(runs) == len(cases) else ', '.join(runs) + ' '}scored on {name}"
        for name, runs in scored.items()
    ]
    seconds = sum(case["training_seconds_in_all"] for case in cases)
    took = f"{_time(seconds)} of training" if seconds else "scoring alone"
    return f"commit{'s'[: len(commits) > 1]} {', '.join([*commits, *machines, took, *scorers])}"


def _rows(record: dict[str, Any], study: Study) -> tuple[list[str], list[str]]:
    """The names of a study's rows that were run, and of those that nobody asked for yet."""
    if record.get("given"):
        return [], []
    own = short_name((record.get("backbone") or "").partition(" (")[0])
    found = {case["run"].removesuffix(f"-{own}") for case in record["cases"]}
    there = [case.slug for case in study.cases if case.slug in found]
    others = [c for c in study.cases if c.slug not in found and c.label not in record["left_out"]]
    return there, [case.slug for case in others]


def _of_run(record: dict[str, Any]) -> list[str]:
    """What trains the run that a figure is of, if a study would train it so now."""
    (row,) = record["cases"]
    settings = from_dict(row["settings"])
    cases = [(name, case) for name, study in STUDIES.items() for case in study.cases]
    for (name, case), plan in itertools.product(cases, _plans(settings)):
        scale = settings.train.steps / case.settings.train.steps
        plan = dataclasses.replace(plan, scale=scale)
        if str(plan.folder(case)) != record["given"]:
            continue
        if not _changes(settings, plan.with_backbone(scaled(case.settings, scale))):
            table = record | {"study": name, "given": None, "images": None}
            table |= {"scale": scale, "backbone": plan.backbone}
            words = "" if plan.precision == "auto" else f" --precision {plan.precision}"
            command = study_command(table, [case.slug])
            return ["", f"Its run is trained by `{command}{words}`."]
    return []


def _plans(settings: Experiment) -> list[Plan]:
    """In what ways a study may have trained a run, but for the length of its schedule."""
    usual = Plan(
        seeds=(),
        scale=1,
        precision="auto",
        images=None,
        path=None,
        runs=RUNS,
        device=torch.device("cpu"),
    )
    return [
        dataclasses.replace(usual, precision=precision, backbone=backbone)
        for precision in get_args(Precision)
        for backbone in (None, settings.model.backbone)
    ]


def _changes(then: Experiment, now: Experiment) -> list[str]:
    """In what the settings of a row differ from those that its study has now."""
    return [each for each in differences(then, now) if each.split()[0] not in OF_THE_CALL]


def _since_changed(record: dict[str, Any], study: Study) -> list[str]:
    """Rows whose settings were others than the command has now, and which."""
    now = {case.slug: scaled(case.settings, record["scale"]) for case in study.cases}
    rows: dict[str, list[str]] = {}
    for case in record["cases"]:
        if (settings := now.get(case["run"])) is None:  # on another backbone than the paper's
            continue
        if named := _changes(from_dict(case["settings"]), settings):
            rows.setdefault(", ".join(named), []).append(case["run"])
    return [
        line
        for change, runs in rows.items()
        for line in ("", f"Run before the study's settings changed ({change}): {', '.join(runs)}.")
    ]


def _theory(name: str, title: str, record: dict[str, Any], where: str) -> str:
    took = f", {_time(record['seconds'])}" if "seconds" in record else ""
    origin = (
        f"`{record['command']}`, commit {short(record['commit'])}, {machine_name(record)}{took}."
    )
    return "\n".join([f"## {title}", "", origin, "", f"![{title}]({where}/{name}.png)", ""])


def _single_runs(runs: dict[str, dict[str, Any]], where: str) -> str:
    metrics = [
        m for m in METRICS if any(m in s for r in runs.values() for s in r["scores"].values())
    ]
    rows = []
    for name, record in runs.items():
        seeds = len(record["seeds"])
        for way, scores in record["scores"].items():
            cells = [cell(metric, scores.get(metric)) for metric in metrics]
            rows.append([f"[{name}]({where}/{name}.json)", way, str(seeds), *cells])
    head = ["run", "scored by", "seeds", *(METRICS[m] for m in metrics)]
    return "\n".join(["## Single runs", "", *_markdown(head, rows), ""])


def _markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)]


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _read_all(folder: Path) -> dict[str, dict[str, Any]]:
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder} with results.\n  Name it with --out.")
    return {path.stem: _read(path) for path in sorted(folder.glob("*.json"))}


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text())
        kind = next(k for k in NEEDED if k in record)
        if lost := NEEDED[kind] - {*record}:
            raise KeyError(*lost)
        return record
    except (OSError, ValueError, TypeError, KeyError, StopIteration) as error:
        raise InputError(
            f"{path} should be a file of results, but cannot be read: {error}"
        ) from error
