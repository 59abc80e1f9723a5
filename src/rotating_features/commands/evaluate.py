"""Score runs, and show what there is."""

import dataclasses
from pathlib import Path

import tyro
from rich.table import Table

from rotating_features._check import InputError
from rotating_features._lock import locked
from rotating_features.arguments import EvaluateArgs, ListArgs
from rotating_features.commands.screen import PROG, console, without_help
from rotating_features.data import PHOTOGRAPHS
from rotating_features.evaluate import PROTOCOLS
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS
from rotating_features.experiments import EXPERIMENTS, report, scores
from rotating_features.experiments.config import turns
from rotating_features.experiments.folders import Run, find_runs, read_run
from rotating_features.experiments.photo_scores import names_of_tests
from rotating_features.experiments.run import evaluate_run
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.theory import TITLES
from rotating_features.features import BACKBONES
from rotating_features.machine import pick_device
from rotating_features.models import TRAINED


def evaluate_command(argv: list[str]) -> int:
    asked = without_help(argv)
    args = tyro.cli(EvaluateArgs, args=asked or argv, prog=f"{PROG} evaluate")
    runs = [read_run(folder) for folder in find_runs(args.run)]
    if not runs:
        raise InputError(f"There is no run at {args.run}.\n  See: {PROG} list")
    stored = dataclasses.replace(args, settings=runs[0].experiment.evaluate)
    args = tyro.cli(EvaluateArgs, args=argv, prog=f"{PROG} evaluate", default=stored)
    settings = args.settings
    if args.protocol is not None:
        settings = dataclasses.replace(settings, protocols=(args.protocol,))
    moved = runs if args.path is None else [_moved(run, args.path) for run in runs]
    device = pick_device(args.device)
    with locked(run.folder for run in runs):
        mark = "" if args.path is None else _mark_others(runs, moved)
        rows = [
            evaluate_run(run, settings, device, mark=mark, backbone=args.backbone) for run in moved
        ]
    console.print(report.table(runs, report.summarise(rows)))
    if said := report.features_of(runs[0].experiment):
        console.print(said, soft_wrap=True)
    files = (f"  {run.folder / scores.FILE}" for run in runs)
    console.print("A row for every image:", *files, sep="\n", soft_wrap=True)
    return 0


def _moved(run: Run, path: str) -> Run:
    """The run, its images at ``path``."""
    if run.experiment.data.path is None and run.experiment.data.dataset not in PHOTOGRAPHS:
        raise InputError(f"{run.folder} was trained on drawn images. Leave --path.")
    data = dataclasses.replace(run.experiment.data, path=path)
    return dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, data=data))


def _mark_others(runs: list[Run], moved: list[Run]) -> str:
    """What tells scores of ``moved`` from the runs' own; nothing if those are of the same images.

    Photographs are the same if their names are. Where the runs' own are no longer in their place,
    these names are those of all that they have been scored on.
    """
    own, data = runs[0].experiment.data, moved[0].experiment.data
    if data.dataset not in PHOTOGRAPHS:
        return ""
    names = names_of_tests(data)
    try:
        same = names_of_tests(own) == names
    except InputError:
        wanted = runs[0].experiment.evaluate.images
        same = all(scores.are_of(run.folder, names, wanted) for run in runs)
    where = str(Path(data.path or "").resolve()).encode(errors="replace").decode()
    return "" if same else f"path={where}"


def list_command(argv: list[str]) -> int:
    args = tyro.cli(ListArgs, args=argv, prog=f"{PROG} list")
    table = Table(
        "experiment", "preset", "n", "steps", "batch", title="Experiments", title_justify="left"
    )
    for name, presets in EXPERIMENTS.items():
        for preset, e in presets.items():
            size = f"{e.train.steps:,}", str(e.train.batch_size)
            n = str(e.model.rotation_dim) if turns(e.model) else e.model.kind
            table.add_row(name, preset, n, *size)
    console.print(table)
    console.print("Studies", style="italic")
    for name, study in STUDIES.items():
        console.print(f"  {name}: {study.title} ({study.source})")
    for name, title in TITLES.items():
        console.print(f"  {name}: {title}")
    console.print("Protocols for drawn images", style="italic")
    for name, protocol in PROTOCOLS.items():
        console.print(f"  {name}: {protocol.description}")
    console.print("Protocols for photographs", style="italic")
    for name, protocol in PHOTO_PROTOCOLS.items():
        console.print(f"  {name}: {protocol.description}")
    console.print("Backbones for photographs", style="italic")
    for name, backbone in BACKBONES.items():
        console.print(f"  {name}: {backbone.about}")
    console.print("Trained models that come along, for segment", style="italic")
    for name, about in TRAINED.items():
        console.print(f"  {name}: {about}")
    runs = report.run_table(args.runs)
    console.print(runs if runs.row_count else f"No runs in {args.runs} yet.")
    return 0
