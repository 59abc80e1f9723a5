"""The command line: parse, call, print."""

import dataclasses
import difflib
import errno
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from rotating_features._version import __version__
from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data import SPLITS, Split, write_npz
from rotating_features.evaluate import PROTOCOLS
from rotating_features.experiments import EXPERIMENTS, Experiment, report, scores
from rotating_features.experiments.config import EvaluateConfig
from rotating_features.experiments.run import (
    Run,
    draw_pictures,
    evaluate_run,
    find_runs,
    make_dataset,
    open_runs,
    read_run,
    resolve,
    train_run,
)
from rotating_features.models import load
from rotating_features.segment import find_images, segment
from rotating_features.train import Interrupted
from rotating_features.train.checkpoint import steps_done
from rotating_features.train.machine import pick_device, tune_cpu

PROG = "rotating-features"
Preset = Literal["paper", "quick"]
console = Console()


@dataclass(frozen=True, kw_only=True)
class TrainArgs:
    """Train a model, score it on unseen images and draw what it sees."""

    experiment: tyro.conf.Positional[str] = "4shapes"
    """See: rotating-features list"""
    preset: Preset | None = None
    """The paper's numbers, or minutes on a CPU. Default: paper with a GPU, quick without."""
    seeds: tuple[int, ...] = (0,)
    """One model is trained for each."""
    name: str | None = None
    """Folder of the run inside --runs; the experiment's name if not given."""
    runs: Path = Path("runs")
    """Where runs live."""
    resume: bool = False
    """Continue the run where it stopped, with the settings it has."""
    device: str | None = None
    """cpu, cuda, cuda:1, ...; the best there is if not given."""
    settings: Annotated[Experiment, tyro.conf.arg(name="")] = field(default_factory=Experiment)


@dataclass(frozen=True, kw_only=True)
class EvaluateArgs:
    """Score the models of a run again, perhaps in another way; scores taken otherwise are kept."""

    run: tyro.conf.Positional[Path]
    """Folder of a run or of one of its seeds."""
    protocol: Literal["blind", "rf2023"] | None = None
    """How scores are taken. Default: as in training."""
    device: str | None = None
    settings: Annotated[EvaluateConfig, tyro.conf.arg(name="")] = field(
        default_factory=EvaluateConfig
    )


@dataclass(frozen=True, kw_only=True)
class SegmentArgs:
    """Write object masks for image files."""

    images: tyro.conf.Positional[tuple[Path, ...]]
    """Image files and folders of them."""
    model: Path
    """A run's folder or a model file."""
    out: Path
    """Folder for the masks."""
    k: int | None = None
    """Number of clusters, background included, for k-means."""
    distance_threshold: float | None = None
    """For agglomerative clustering, which finds the number itself. Default: 5."""
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataArgs:
    """Write a dataset to npz files in the published format."""

    dataset: tyro.conf.Positional[Literal["4shapes"]]
    out: Path
    """Folder for 4Shapes_train.npz, 4Shapes_val.npz and 4Shapes_test.npz."""
    splits: tuple[Split, ...] = SPLITS
    seed: int = 0
    ring_diameter: Literal[11, 23] = 23


@dataclass(frozen=True, kw_only=True)
class ListArgs:
    """Show what can be run, and what has been."""

    runs: Path = Path("runs")
    """Where runs live."""


def train_command(argv: list[str]) -> int:
    args = _parse_train(argv)
    preset = args.preset or _default_preset()
    device = pick_device(args.device)
    if args.preset is None and not args.resume:
        where = torch.cuda.get_device_name() if device.type == "cuda" else "no GPU here"
        console.print(f"Preset [bold]{preset}[/bold] ({where}); choose with --preset.")
    folder = args.runs / (args.name or args.experiment)
    experiment = resolve(args.settings, device)
    runs = open_runs(folder, args.experiment, preset, experiment, args.seeds, resume=args.resume)
    t = experiment.train
    compiled = ", compiled" if t.compile == "yes" else ""
    console.print(
        f"Training on {device.type} in {t.precision}{compiled}: {t.steps:,} steps of "
        f"{t.batch_size} images. Everything is kept in {folder}."
    )
    if t.compile == "yes":
        console.print("The first step compiles, which takes up to a minute.")
    rows = []
    for run in runs:
        train_run(run, device)
        rows.append(evaluate_run(run, experiment.evaluate, device))
    summary = report.summarise(runs, rows)
    with replacing(folder / "summary.json") as partial:
        partial.write_text(
            json.dumps(report.record(runs, summary, ["train", *argv]), indent=2) + "\n"
        )
    pictures = [path for run in runs for path in draw_pictures(run, device)]
    console.print(report.table(runs, summary))
    console.print("Pictures:", *(f"  {path}" for path in pictures), sep="\n")
    return 0


def evaluate_command(argv: list[str]) -> int:
    target = next((word for word in argv if not word.startswith("-")), None)
    folders = find_runs(Path(target)) if target else []
    stored = read_run(folders[0]).experiment.evaluate if folders else EvaluateConfig()
    args = tyro.cli(
        EvaluateArgs,
        args=argv,
        prog=f"{PROG} evaluate",
        default=EvaluateArgs(run=Path(target), settings=stored) if folders else None,
    )
    if not find_runs(args.run):
        raise InputError(f"There is no run at {args.run}.\n  See: {PROG} list")
    settings = args.settings
    if args.protocol is not None:
        settings = dataclasses.replace(settings, protocols=(args.protocol,))
    device = pick_device(args.device)
    runs = [read_run(folder) for folder in find_runs(args.run)]
    rows = [evaluate_run(run, settings, device) for run in runs]
    console.print(report.table(runs, report.summarise(runs, rows)))
    console.print(
        f"A row for every image: {', '.join(str(run.folder / scores.FILE) for run in runs)}"
    )
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
    for split in args.splits:
        dataset = make_dataset(Experiment(data=config), split)
        path = args.out / f"4Shapes_{split}.npz"
        if path.exists():
            raise InputError(
                f"{path} exists already.\n  Remove it first, or write to another --out."
            )
        for _ in track(
            write_npz(dataset, path), f"drawing {split}", total=-(-len(dataset) // 2_000)
        ):
            pass
        console.print(f"{len(dataset):,} images: {path}")
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
    console.print("[italic]Protocols[/italic]")
    for name, protocol in PROTOCOLS.items():
        console.print(f"  [bold]{name}[/bold]  {protocol.description}")
    table = Table(
        "run", "experiment", "n", "steps done", "ARI-BG", title="Runs", title_justify="left"
    )
    for path in sorted(p for p in args.runs.glob("*") if p.is_dir()):
        for folder in find_runs(path):
            table.add_row(*_describe_run(folder))
    console.print(table if table.row_count else f"No runs in {args.runs} yet.")
    return 0


COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "train": (train_command, "train a model, score it and draw what it sees"),
    "evaluate": (evaluate_command, "score a run again, perhaps in another way"),
    "segment": (segment_command, "write object masks for image files"),
    "list": (list_command, "show experiments, protocols and runs"),
    "data": (data_command, "write a dataset to files"),
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
    name = argv[0] if argv and not argv[0].startswith("-") else "4shapes"
    if name not in EXPERIMENTS:
        raise InputError(_unknown("experiment", name, EXPERIMENTS))
    argv = argv if argv and argv[0] == name else [name, *argv]
    preset = _option(argv, "--preset") or _default_preset()
    if preset not in EXPERIMENTS[name]:
        raise InputError(_unknown("preset", preset, EXPERIMENTS[name]))
    base = TrainArgs(experiment=name, settings=EXPERIMENTS[name][preset])
    if "--resume" in argv:
        folder = Path(_option(argv, "--runs") or "runs") / (_option(argv, "--name") or name)
        existing = [read_run(path) for path in find_runs(folder)]
        if existing:
            seeds = tuple(run.seed for run in existing)
            base = dataclasses.replace(
                base, seeds=seeds, preset=existing[0].preset, settings=existing[0].experiment
            )
    return tyro.cli(TrainArgs, args=argv, prog=f"{PROG} train", default=base)


def _option(argv: list[str], name: str) -> str | None:
    """The value that follows an option, before the whole line is parsed."""
    for word, following in zip(argv, [*argv[1:], None], strict=True):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _default_preset() -> Preset:
    return "paper" if torch.cuda.is_available() else "quick"


def _describe_run(folder: Path) -> tuple[str, ...]:
    try:
        run: Run = read_run(folder)
    except InputError as error:
        return str(folder), f"[red]{str(error).splitlines()[0]}[/red]"
    found = scores.summarise(scores.read(folder))
    best = [f"{values['ari_bg']:.3f} ({protocol})" for (protocol, _), values in found.items()]
    done = f"{steps_done(folder):,} of {run.experiment.train.steps:,}"
    n = str(run.experiment.model.rotation_dim)
    return str(folder), run.name, n, done, ", ".join(best) or "not scored yet"


def _unknown(kind: str, got: str, known: dict[str, object]) -> str:
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
    Console(stderr=True, soft_wrap=True).print(
        f"[bold red]{PROG}:[/bold red]", message, highlight=False, markup=True
    )


def _help() -> int:
    console.print(f"[bold]{PROG}[/bold] {__version__}: objects in images, found without labels.\n")
    for name, (_, summary) in COMMANDS.items():
        console.print(f"  {PROG} {name:<9} {summary}", highlight=False)
    console.print(f"\nEach has --help. To start: [bold]{PROG} train 4shapes[/bold]")
    return 0


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="torch")
    sys.exit(main())
