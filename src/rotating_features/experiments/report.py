"""Results of several seeds, beside the paper's."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.table import Table

from rotating_features._check import InputError
from rotating_features.experiments import scores
from rotating_features.experiments.config import Experiment, turns
from rotating_features.experiments.folders import Run, find_runs, read_run
from rotating_features.experiments.paper import Claim
from rotating_features.experiments.provenance import (
    machine,
    machine_name,
    noted_machines,
    provenance,
    settings_for_others,
)
from rotating_features.experiments.studies import STUDIES
from rotating_features.features import about
from rotating_features.train.checkpoint import read_metrics, steps_done
from rotating_features.train.together import SIDE_BY_SIDE

METRICS = {
    "ari_bg": "ARI-BG",
    "mbo_i": "MBO_i",
    "mbo_c": "MBO_c",
    "mse": "MSE",
    "iou": "IoU",
    "iou_random": "IoU, random",
    "accuracy": "accuracy",
}


def published(experiment: Experiment) -> Mapping[str, Claim]:
    """What the paper prints for this model on this dataset; empty if it does not print it."""
    cases = [case for study in STUDIES.values() for case in study.cases]
    for case in [case for case in cases if case.baseline is None]:
        data = dataclasses.replace(experiment.data, path=None)
        if case.settings.model == experiment.model and case.settings.data == data:
            return case.paper
    return {}


def summarise(rows: list[list[scores.Row]]) -> dict[str, dict[str, Any]]:
    """Mean and standard error over seeds, by way of scoring; a list of rows a seed."""
    by_seed = [scores.summarise(group) for group in rows]
    return {
        ", ".join(way): {
            "images": [seed[way]["images"] for seed in by_seed],
            "dropped": [seed[way]["dropped"] for seed in by_seed],
            **{
                name: statistics([seed[way][name] for seed in by_seed])
                for name in METRICS
                if all(name in seed[way] for seed in by_seed)
            },
        }
        for way in by_seed[0]
    }


def record(
    runs: list[Run], summary: dict[str, dict[str, Any]], argv: list[str], device: torch.device
) -> dict[str, Any]:
    """All that a claimed number needs: what was run, on what, and what came out."""
    backbone = runs[0].experiment.model.backbone
    return {
        "experiment": runs[0].name,
        "preset": runs[0].preset,
        **provenance(argv, device),
        "seeds": [run.seed for run in runs],
        **training(runs, device),
        "settings": settings_for_others(runs[0].experiment),
        "backbone": None if backbone is None else about(backbone),
        "protocols": scores.describe_protocols(
            runs[0].experiment.data, runs[0].experiment.evaluate
        ),
        "scores": summary,
        "paper": {name: claim._asdict() for name, claim in published(runs[0].experiment).items()},
    }


def table(runs: list[Run], summary: dict[str, dict[str, Any]]) -> Table:
    """A row for each way of scoring, the paper's last."""
    model = runs[0].experiment.model
    kind = f"n={model.rotation_dim}" if turns(model) else f"{model.kind} features"
    seeds = len(runs)
    shown = Table(
        title=f"{runs[0].name}, {kind}, {seeds} seed{'s'[: seeds > 1]}",
        title_justify="left",
        box=box.SIMPLE,
        collapse_padding=True,  # 80 columns must do
        pad_edge=False,
    )
    shown.add_column("scored by")
    shown.add_column("images", justify="right")
    metrics = [name for name in METRICS if any(name in values for values in summary.values())]
    for name in metrics:
        shown.add_column(METRICS[name], justify="right")
    for way, values in summary.items():
        images, dropped = values["images"][0], sum(values["dropped"])
        count = f"{images:,}" + (f" ({dropped} without objects dropped)" if dropped else "")
        shown.add_row(way, count, *(cell(name, values.get(name)) for name in metrics))
    if claims := published(runs[0].experiment):
        shown.add_section()
        cells = [cell(name, claims[name]._asdict() if name in claims else None) for name in metrics]
        shown.add_row("the paper (rf2023)", "", *cells)
    return shown


def features_of(experiment: Experiment) -> str:
    """Whose features the model takes, in a line to stand under its table; empty for pixels."""
    backbone = experiment.model.backbone
    return "" if backbone is None else f"On features of {about(backbone)}."


def run_table(runs: Path) -> Table:
    """A row for every seed of every run in the folder."""
    shown = Table(
        "run", "experiment", "n", "steps done", "ARI-BG", title="Runs", title_justify="left"
    )
    for folder in (f for path in sorted(runs.glob("*")) for f in find_runs(path)):
        name = str(folder.relative_to(runs))
        try:
            run, found = read_run(folder), scores.summarise(scores.read(folder))
        except InputError as error:
            shown.add_row(name, str(error).splitlines()[0])
            continue
        best = [
            f"{values['ari_bg']:.3f} {', '.join(way)}"
            for way, values in found.items()
            if "ari_bg" in values
        ]
        done = f"{steps_done(folder):,} of {run.experiment.train.steps:,}"
        model = run.experiment.model
        n = str(model.rotation_dim) if turns(model) else model.kind
        nothing = "-" if found else "not scored yet"
        shown.add_row(name, run.name, n, done, "\n".join(best) or nothing)
    return shown


def statistics(values: list[float]) -> dict[str, Any]:
    mean = sum(values) / len(values)
    if len(values) > 1:
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return {"mean": mean, "sem": math.sqrt(variance / len(values)), "per_seed": values}
    return {"mean": mean, "sem": None, "per_seed": values}


def cell(name: str, values: dict[str, Any] | None) -> str:
    """Mean and error of a metric as text."""
    if values is None:
        return "-"
    form, error_form = ("{:.2e}", "{:.0e}") if name == "mse" else ("{:.3f}", "{:.3f}")
    sem = "" if values["sem"] is None else " ± " + error_form.format(values["sem"])
    return form.format(values["mean"]) + sem


def worse(metric: str, ours: dict[str, Any], claim: dict[str, Any] | None) -> bool:
    """Whether our mean is worse than the paper's by more than two of its standard errors."""
    if claim is None or metric == "iou_random":  # a baseline has no better or worse
        return False
    sign, digits = (-1, 9) if metric == "mse" else (1, 3)  # as many as the paper prints
    return sign * (claim["mean"] - round(ours["mean"], digits)) > 2 * (claim["sem"] or 0) + 1e-9


def training(runs: Sequence[Run], device: torch.device) -> dict[str, Any]:
    """On which machines the runs were trained, and for how long, in seconds.

    ``device`` is the one that scores. It stands under ``scored_on`` if the runs say that others
    trained them, and counts as the one that did if they do not say.
    """
    here = machine(device)
    trained = [noted_machines(run.folder) or [here] for run in runs]
    first, *others = _distinct(itertools.chain(*trained)) or [here]
    elsewhere = machine_name(here) not in map(machine_name, (first, *others))
    seconds = [training_seconds(run.folder) for run in runs]
    return {
        **first,
        **({"also_trained_on": others} if others else {}),
        **({"scored_on": here} if elsewhere else {}),
        "training_seconds": seconds,
        "training_seconds_in_all": _in_all(seconds, [each[-1]["device"] for each in trained]),
    }


def _distinct(machines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({json.dumps(each, sort_keys=True): each for each in machines}.values())


def _in_all(seconds: list[float], devices: list[str]) -> float:
    """On a GPU models train side by side, so the time of one is the time of its group."""
    there = list(zip(seconds, devices, strict=True))
    together = [taken for taken, device in there if device == "cuda"]
    groups = range(0, len(together), SIDE_BY_SIDE)
    return sum(taken for taken, device in there if device != "cuda") + sum(
        max(together[start : start + SIDE_BY_SIDE]) for start in groups
    )


def training_seconds(folder: Path) -> float:
    """How long the run has trained."""
    return max((row.get("seconds", 0.0) for row in read_metrics(folder)), default=0.0)
