"""Train a model."""

import json
from typing import cast

import torch
import tyro

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.arguments import Preset, TrainArgs
from rotating_features.commands.screen import PROG, console, unknown, without_help
from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments import EXPERIMENTS, report
from rotating_features.experiments.config import check_seeds
from rotating_features.experiments.folders import find_runs, open_runs, read_run
from rotating_features.experiments.photo_run import check_memory
from rotating_features.experiments.photographs import with_side
from rotating_features.experiments.pictures import draw_pictures
from rotating_features.experiments.run import check, evaluate_run, resolve, train_runs
from rotating_features.machine import pick_device
from rotating_features.train.checkpoint import steps_done


def train_command(argv: list[str]) -> int:
    args = _parse_train(argv)
    device = pick_device(args.device)
    folder = args.runs / (args.name or args.experiment)
    experiment = resolve(args.settings, device)
    check(experiment)
    done = [steps_done(folder / f"seed-{seed}") for seed in args.seeds]
    if min(done) < experiment.train.steps:
        check_memory(experiment, device)
    preset = args.preset or ""
    opened = open_runs(folder, args.experiment, preset, experiment, args.seeds, resume=args.resume)
    with opened as runs:
        t = experiment.train
        console.print(
            f"Training on {device.type} in {t.precision}: {t.steps:,} steps of {t.batch_size} "
            f"images. The run lives in {folder}."
        )
        if t.compile == "yes":
            console.print("The first step is compiled, which takes up to a minute.")
        train_runs(runs, device)
        rows = [evaluate_run(run, experiment.evaluate, device) for run in runs]
        summary = report.summarise(rows)
        result = report.record(runs, summary, ["train", *argv], device)
        with replacing(folder / "summary.json") as partial:
            partial.write_text(json.dumps(result, indent=2) + "\n")
        pictures = [path for run in runs for path in draw_pictures(run, device)]
    console.print(report.table(runs, summary))
    if said := report.features_of(runs[0].experiment):
        console.print(said, soft_wrap=True)
    console.print("Pictures:", *(f"  {path}" for path in pictures), sep="\n", soft_wrap=True)
    return 0


def _parse_train(argv: list[str]) -> TrainArgs:
    """The arguments, on top of the preset's settings or, to resume, of the run's own."""
    prog = f"{PROG} train"
    asked = tyro.cli(TrainArgs, args=without_help(argv), prog=prog)
    check_seeds(asked.seeds)
    if asked.experiment not in EXPERIMENTS:
        raise InputError(unknown("experiment", asked.experiment, EXPERIMENTS))
    folder = asked.runs / (asked.name or asked.experiment)
    runs = [read_run(path) for path in find_runs(folder)] if asked.resume else []
    if asked.resume and not runs:
        console.print(f"There is no run in {folder} yet, so this begins one.", soft_wrap=True)
    if runs:
        first, seeds = runs[0], tuple(run.seed for run in runs)
        base = TrainArgs(preset=cast(Preset, first.preset), seeds=seeds, settings=first.experiment)
    else:
        preset = asked.preset or ("paper" if torch.cuda.is_available() else "quick")
        settings = EXPERIMENTS[asked.experiment][preset]
        backbone = asked.settings.model.backbone
        if backbone is not None and settings.data.dataset in PHOTOGRAPHS:
            settings = with_side(settings, backbone)
        base = TrainArgs(preset=preset, settings=settings)
        if asked.preset is None and argv == without_help(argv):
            why = "there is a GPU" if preset == "paper" else "there is no GPU"
            console.print(f"Preset {preset}, since {why}; --preset chooses another.")
    return tyro.cli(TrainArgs, args=argv, prog=prog, default=base)
