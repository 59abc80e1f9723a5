"""Results of several seeds, beside the paper's."""

import math
import shlex
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.table import Table

from rotating_features._check import InputError
from rotating_features._commit import commit
from rotating_features._version import __version__
from rotating_features.experiments import scores
from rotating_features.experiments.config import Experiment, to_dict
from rotating_features.experiments.folders import Run, find_runs, read_run
from rotating_features.experiments.paper import FOUR_SHAPES, FOUR_SHAPES_WITHOUT_BINDING, Claim
from rotating_features.train.checkpoint import read_metrics, steps_done
from rotating_features.train.machine import describe
from rotating_features.train.together import SIDE_BY_SIDE

METRICS = {"ari_bg": "ARI-BG", "mbo_i": "MBO_i", "mse": "MSE"}


def published(experiment: Experiment) -> dict[str, Claim]:
    """What the paper prints for this model; empty if it does not print it."""
    if experiment.model.hidden_dim != 32 or experiment.data.ring_diameter != 23:
        return {}
    table = FOUR_SHAPES if experiment.model.binding else FOUR_SHAPES_WITHOUT_BINDING
    return table.get(experiment.model.rotation_dim, {})


def summarise(rows: list[list[scores.Row]]) -> dict[str, dict[str, Any]]:
    """Mean and standard error over seeds, by protocol and clustering; a list of rows a seed."""
    by_seed = [scores.summarise(group) for group in rows]
    return {
        f"{protocol}, {clustering}": {
            "images": [seed[protocol, clustering]["images"] for seed in by_seed],
            "dropped": [seed[protocol, clustering]["dropped"] for seed in by_seed],
            **{
                name: _statistics([seed[protocol, clustering][name] for seed in by_seed])
                for name in METRICS
            },
        }
        for protocol, clustering in by_seed[0]
    }


def record(
    runs: list[Run], summary: dict[str, dict[str, Any]], argv: list[str], device: torch.device
) -> dict[str, Any]:
    """All that a claimed number needs: what was run, on what, and what came out."""
    seconds = [_seconds(run.folder) for run in runs]
    return {
        "experiment": runs[0].name,
        "preset": runs[0].preset,
        "command": "rotating-features " + shlex.join(argv),
        "commit": commit(),
        "version": __version__,
        "device": str(device),
        "hardware": describe(),
        "seeds": [run.seed for run in runs],
        "training_seconds": seconds,
        "training_seconds_in_all": _in_all(seconds, device),
        "settings": to_dict(runs[0].experiment),
        "scores": summary,
        "paper": {name: claim._asdict() for name, claim in published(runs[0].experiment).items()},
    }


def table(runs: list[Run], summary: dict[str, dict[str, Any]]) -> Table:
    """A row for each way of scoring, the paper's last."""
    model = runs[0].experiment.model
    seeds = len(runs)
    shown = Table(
        title=f"{runs[0].name}, n={model.rotation_dim}, {seeds} seed{'s'[: seeds > 1]}",
        title_justify="left",
        box=box.SIMPLE,
        collapse_padding=True,  # 80 columns must do
        pad_edge=False,
    )
    shown.add_column("scored by")
    shown.add_column("images", justify="right")
    for name in METRICS.values():
        shown.add_column(name, justify="right")
    for way, values in summary.items():
        images, dropped = values["images"][0], sum(values["dropped"])
        count = f"{images:,}" + (f" ({dropped} without objects dropped)" if dropped else "")
        shown.add_row(way, count, *(_cell(name, values[name]) for name in METRICS))
    if claims := published(runs[0].experiment):
        shown.add_section()
        cells = [_cell(name, claims[name]._asdict()) if name in claims else "-" for name in METRICS]
        shown.add_row("the paper (rf2023)", "10,000", *cells)
    return shown


def run_table(runs: Path) -> Table:
    """A row for every seed of every run in the folder."""
    shown = Table(
        "run", "experiment", "n", "steps done", "ARI-BG", title="Runs", title_justify="left"
    )
    for folder in (f for path in sorted(runs.glob("*")) for f in find_runs(path)):
        name = str(folder.relative_to(runs))
        try:
            run = read_run(folder)
        except InputError as error:
            shown.add_row(name, str(error).splitlines()[0])
            continue
        found = scores.summarise(scores.read(folder))
        best = [f"{values['ari_bg']:.3f} {', '.join(way)}" for way, values in found.items()]
        done = f"{steps_done(folder):,} of {run.experiment.train.steps:,}"
        n = str(run.experiment.model.rotation_dim)
        shown.add_row(name, run.name, n, done, "\n".join(best) or "not scored yet")
    return shown


def _statistics(values: list[float]) -> dict[str, Any]:
    mean = sum(values) / len(values)
    if len(values) > 1:
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return {"mean": mean, "sem": math.sqrt(variance / len(values)), "per_seed": values}
    return {"mean": mean, "sem": None, "per_seed": values}


def _cell(name: str, values: dict[str, Any]) -> str:
    form, error_form = ("{:.2e}", "{:.0e}") if name == "mse" else ("{:.3f}", "{:.3f}")
    sem = "" if values["sem"] is None else " ± " + error_form.format(values["sem"])
    return form.format(values["mean"]) + sem


def _in_all(seconds: list[float], device: torch.device) -> float:
    """On a GPU models train side by side, so the time of one is the time of its group."""
    if device.type != "cuda":
        return sum(seconds)
    groups = range(0, len(seconds), SIDE_BY_SIDE)
    return sum(max(seconds[start : start + SIDE_BY_SIDE]) for start in groups)


def _seconds(folder: Path) -> float:
    return max((row.get("seconds", 0.0) for row in read_metrics(folder)), default=0.0)
