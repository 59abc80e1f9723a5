"""The command line: parse, call, print."""

import dataclasses
import difflib
import errno
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import torch
import tyro
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table
from rich.text import Text

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features._version import __version__
from rotating_features.arguments import (
    BenchArgs,
    DataArgs,
    EvaluateArgs,
    ListArgs,
    Preset,
    SegmentArgs,
    TrainArgs,
)
from rotating_features.bench import BENCHMARKS, obstacle
from rotating_features.bench.growth import draw as draw_growth
from rotating_features.bench.harness import append_rows
from rotating_features.bench.step import VARIANTS, WORKS
from rotating_features.bench.table import table as bench_table
from rotating_features.data import Split, write_npz
from rotating_features.evaluate import PROTOCOLS
from rotating_features.experiments import EXPERIMENTS, Experiment, report, scores
from rotating_features.experiments.folders import find_runs, open_runs, read_run
from rotating_features.experiments.run import (
    check,
    draw_pictures,
    evaluate_run,
    make_dataset,
    resolve,
    train_runs,
)
from rotating_features.models import load
from rotating_features.segment import find_images, segment
from rotating_features.train import Interrupted
from rotating_features.train.machine import pick_device, tune_cpu

PROG = "rotating-features"
console = Console(markup=False, highlight=False)


def train_command(argv: list[str]) -> int:
    args = _parse_train(argv)
    device = pick_device(args.device)
    folder = args.runs / (args.name or args.experiment)
    experiment = resolve(args.settings, device)
    check(experiment)
    preset = args.preset or ""
    runs = open_runs(folder, args.experiment, preset, experiment, args.seeds, resume=args.resume)
    t = experiment.train
    console.print(
        f"Training on {device.type} in {t.precision}: {t.steps:,} steps of {t.batch_size} images."
        f" The run lives in {folder}."
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
    console.print("Pictures:", *(f"  {path}" for path in pictures), sep="\n", soft_wrap=True)
    return 0


def evaluate_command(argv: list[str]) -> int:
    args = tyro.cli(EvaluateArgs, args=argv, prog=f"{PROG} evaluate")
    runs = [read_run(folder) for folder in find_runs(args.run)]
    if not runs:
        raise InputError(f"There is no run at {args.run}.\n  See: {PROG} list")
    stored = dataclasses.replace(args, settings=runs[0].experiment.evaluate)
    args = tyro.cli(EvaluateArgs, args=argv, prog=f"{PROG} evaluate", default=stored)
    settings = args.settings
    if args.protocol is not None:
        settings = dataclasses.replace(settings, protocols=(args.protocol,))
    device = pick_device(args.device)
    rows = [evaluate_run(run, settings, device) for run in runs]
    console.print(report.table(runs, report.summarise(rows)))
    files = (f"  {run.folder / scores.FILE}" for run in runs)
    console.print("A row for every image:", *files, sep="\n", soft_wrap=True)
    return 0


def segment_command(argv: list[str]) -> int:
    args = tyro.cli(SegmentArgs, args=argv, prog=f"{PROG} segment")
    model = load(args.model, device=pick_device(args.device))
    images = find_images(args.images)
    results = segment(model, images, args.out, k=args.k, distance_threshold=args.distance_threshold)
    done = list(track(results, "segmenting", total=len(images), console=console))
    problems = [result.problem for result in done if result.problem is not None]
    total = sum(result.objects or 0 for result in done)
    console.print(
        f"{total} objects in {len(done) - len(problems)} images; masks are in {args.out}."
    )
    for problem in problems:
        _complain(problem)
    return 2 if problems else 0


def data_command(argv: list[str]) -> int:
    args = tyro.cli(DataArgs, args=argv, prog=f"{PROG} data")
    config = dataclasses.replace(
        Experiment().data, dataset=args.dataset, seed=args.seed, ring_diameter=args.ring_diameter
    )
    paths: dict[Split, Path] = {split: args.out / f"4Shapes_{split}.npz" for split in args.splits}
    if there := [str(path) for path in paths.values() if path.exists()]:
        raise InputError(
            f"{', '.join(there)} exists already.\n  Remove it first, or write to another --out."
        )
    with Progress(console=console) as bar:
        for split, path in paths.items():
            dataset = make_dataset(Experiment(data=config), split)
            task = bar.add_task(f"drawing {split}", total=len(dataset))
            write_npz(dataset, path, progress=lambda n, task=task: bar.update(task, completed=n))
    console.print("Written:", *(f"  {path}" for path in paths.values()), sep="\n", soft_wrap=True)
    return 0


def list_command(argv: list[str]) -> int:
    args = tyro.cli(ListArgs, args=argv, prog=f"{PROG} list")
    table = Table(
        "experiment", "preset", "n", "steps", "batch", title="Experiments", title_justify="left"
    )
    for name, presets in EXPERIMENTS.items():
        for preset, e in presets.items():
            size = f"{e.train.steps:,}", str(e.train.batch_size)
            table.add_row(name, preset, str(e.model.rotation_dim), *size)
    console.print(table)
    console.print("Protocols", style="italic")
    for name, protocol in PROTOCOLS.items():
        console.print(f"  {name}: {protocol.description}")
    runs = report.run_table(args.runs)
    console.print(runs if runs.row_count else f"No runs in {args.runs} yet.")
    return 0


def bench_command(argv: list[str]) -> int:
    args = tyro.cli(BenchArgs, args=argv, prog=f"{PROG} bench")
    names = _suitable_benchmarks(args)
    with console.status("measuring") as status:
        for name in names:
            step = {"works": args.works, "variants": args.variants}
            options = step if name == "step" else {}
            rows = []
            for part in BENCHMARKS[name](repeats=args.repeats, tell=status.update, **options):
                append_rows(args.out, name, part)
                rows += part
            console.print(bench_table(rows))
            console.print(f"Rows added to {args.out / name}.csv", soft_wrap=True)
            if name == "growth":
                console.print(f"Picture: {draw_growth(rows, args.out)}", soft_wrap=True)
    return 0


COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "train": (train_command, "train a model, score it and draw what it sees"),
    "evaluate": (evaluate_command, "score a run again, perhaps in another way"),
    "segment": (segment_command, "write object masks for image files"),
    "list": (list_command, "show experiments, protocols and runs"),
    "data": (data_command, "write a dataset to files"),
    "bench": (bench_command, "time each thing against its peer"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. A user's mistake gives two lines and status 2."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        if not argv or argv[0] in ("-h", "--help"):
            return _help()
        if argv[0] == "--version":
            console.print(f"{PROG} {__version__}")
            return 0
        if argv[0] not in COMMANDS:
            raise InputError(_unknown("command", argv[0], COMMANDS))
        tune_cpu()  # before any other thread exists, so that all of them inherit it
        return COMMANDS[argv[0]][0](argv[1:])
    except InputError as error:
        _complain(str(error))
        return 2
    except Interrupted as stop:
        console.print(f"Stopped after {stop.done:,} steps, all of them saved. Go on with --resume.")
        return 130
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    except OSError as error:
        _complain(_disk_trouble(error))
        return 2


def _parse_train(argv: list[str]) -> TrainArgs:
    """The arguments, on top of the preset's settings or, to resume, of the run's own."""
    prog = f"{PROG} train"
    asked = tyro.cli(TrainArgs, args=argv, prog=prog)
    if not asked.seeds or len(set(asked.seeds)) < len(asked.seeds) or min(asked.seeds) < 0:
        raise InputError(f"seeds should be different numbers from 0 on, got {[*asked.seeds]}.")
    if asked.experiment not in EXPERIMENTS:
        raise InputError(_unknown("experiment", asked.experiment, EXPERIMENTS))
    folder = asked.runs / (asked.name or asked.experiment)
    if asked.resume and (runs := [read_run(path) for path in find_runs(folder)]):
        first, seeds = runs[0], tuple(run.seed for run in runs)
        base = TrainArgs(preset=cast(Preset, first.preset), seeds=seeds, settings=first.experiment)
    else:
        preset = asked.preset or ("paper" if torch.cuda.is_available() else "quick")
        base = TrainArgs(preset=preset, settings=EXPERIMENTS[asked.experiment][preset])
        if asked.preset is None:
            why = "there is a GPU" if preset == "paper" else "there is no GPU"
            console.print(f"Preset {preset}, since {why}; --preset chooses another.")
    return tyro.cli(TrainArgs, args=argv, prog=prog, default=base)


def _suitable_benchmarks(args: BenchArgs) -> list[str]:
    """The benchmarks asked for, or those that can run here; mistakes are told before any time."""
    if args.repeats < 1:
        raise InputError(f"repeats should be at least 1, got {args.repeats}.")
    for kind, asked, known in (
        ("benchmark", args.names, BENCHMARKS),
        ("work", args.works, WORKS),
        ("variant", args.variants, VARIANTS),
    ):
        for name in asked:
            if name not in known:
                raise InputError(_unknown(kind, name, known))
    suitable = []
    for name in args.names or [name for name in BENCHMARKS if name != "growth"]:
        problem = obstacle(name)
        if problem is None:
            suitable.append(name)
        elif args.names:
            raise InputError(problem)
        else:
            console.print(f"Left out: {problem}")
    if (args.works or args.variants) and "step" not in suitable:
        raise InputError("works and variants should come with the benchmark step.")
    return suitable


def _unknown(kind: str, got: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(got, known, n=1)
    hint = f"\n  Did you mean {close[0]!r}?" if close else ""
    return f"The {kind} should be one of {', '.join(known)}, got {got!r}.{hint}"


def _disk_trouble(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    advice = {
        errno.ENOSPC: "Free some space, then run the command again (with --resume for a run).",
        errno.EROFS: "The disk is read-only: choose a folder that can be written.",
        errno.EACCES: "Choose a folder that you may write.",
    }.get(error.errno or 0, "")
    tail = f"\n  {advice} What was written before is intact." if advice else ""
    return f"Cannot read or write{where}: {error.strerror or error}.{tail}"


def _complain(message: str) -> None:
    text = Text.assemble((f"{PROG}: ", "bold red"), message)
    Console(stderr=True, soft_wrap=True).print(text)


def _help() -> int:
    console.print(f"{PROG} {__version__}: objects in images, found without labels.\n")
    for name, (_, summary) in COMMANDS.items():
        console.print(f"  {PROG} {name:<9} {summary}")
    console.print(f"\nEach has --help. To start: {PROG} train 4shapes")
    return 0
