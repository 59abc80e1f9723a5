"""The paper's tables and figures, from our own runs."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import tyro
from matplotlib.figure import Figure

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.arguments import ReproduceArgs
from rotating_features.commands.screen import PROG, console, unknown
from rotating_features.experiments import show
from rotating_features.experiments.config import check_seeds
from rotating_features.experiments.folders import check_writable, find_runs, read_run
from rotating_features.experiments.four_shapes_studies import sweep
from rotating_features.experiments.page import INTRODUCTION, page, plots
from rotating_features.experiments.plan import Plan, is_here, known_cases, result_path
from rotating_features.experiments.reproduce import cost, run_study
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.study import Case, Study
from rotating_features.experiments.theory import THEORY
from rotating_features.machine import pick_device
from rotating_features.train.checkpoint import steps_done

PAGE = Path("docs/results.md")
OF_ANY_RUN: dict[str, Callable[[Case], Case]] = {
    "figure-clustering": sweep,
    "figure-uncertainty": lambda case: case,
}
"""Figures that need not be of 4Shapes, and what they do with a case."""


def reproduce_command(argv: list[str]) -> int:
    args = tyro.cli(ReproduceArgs, args=argv, prog=f"{PROG} reproduce")
    if args.name == "page":
        return _write_page(args)
    if args.name not in {**STUDIES, **THEORY}:
        raise InputError(unknown("study", args.name, [*STUDIES, *THEORY, "page"]))
    check_seeds(args.seeds)
    device = pick_device(args.device)
    if args.name in THEORY:
        if args.scale != 1 or any((args.images, args.path, args.run, args.backbone, args.cases)):
            raise InputError(
                f"{args.name} trains nothing. "
                "Leave --scale, --images, --path, --run, --backbone and --cases."
            )
        if args.seeds != ReproduceArgs.seeds or args.precision != ReproduceArgs.precision:
            raise InputError(
                f"{args.name} has seeds and a precision of its own. Leave --seeds and --precision."
            )
        check_writable(args.out)
        console.print("Seconds on a GPU, up to a minute or two on a CPU.")
        path, drawn = THEORY[args.name](args.out, ["reproduce", *argv], device)
        console.print("Written:", f"  {path}", *_save({args.name: drawn}, args.out), sep="\n")
        return 0
    study = STUDIES[args.name]
    if args.backbone and all(case.settings.model.backbone is None for case in study.cases):
        raise InputError(f"{args.name} has no backbone. Leave --backbone.")
    plan = Plan(
        seeds=args.seeds,
        scale=args.scale,
        precision=args.precision,
        images=args.images,
        path=args.path,
        runs=args.runs,
        device=device,
        backbone=args.backbone,
        cases=args.cases,
    )
    names = [case.slug for case in study.cases]
    if odd := [name for name in args.cases if name not in names]:
        raise InputError(unknown(f"case of {args.name}", odd[0], names))
    if args.run is not None:
        study, plan = _of_run(args, study, plan)
    console.print(f"{study.title} ({study.source})", style="bold")
    path = result_path(args.name, plan, args.out)
    console.print(cost(study, plan, known_cases(path, study, plan)))
    check_writable(args.out)
    record = run_study(
        args.name, study, plan, out=args.out, argv=["reproduce", *argv], console=console
    )
    console.print(*show.terminal_tables(record, study))
    if said := show.origin(record):
        console.print(said, soft_wrap=True)
    drawn = {path.stem: show.figure(record, study)}
    name = f"{path.stem}-objects"
    shown = [c for c in study.cases if plan.wants(c) and c.label not in record["left_out"]]
    whole = all(is_here(case, plan) for case in shown if case.baseline is None)
    if shown and (whole or not (args.out / f"{name}.png").exists()):  # never fewer than there were
        there = tuple(c for c in study.cases if c.label not in record["left_out"])
        drawn[name] = show.pictures(dataclasses.replace(study, cases=there), plan)
    console.print("Written:", f"  {path}", *_save(drawn, args.out), sep="\n", soft_wrap=True)
    return 0


def _write_page(args: ReproduceArgs) -> int:
    if args != ReproduceArgs(name="page", out=args.out):
        raise InputError("page shows what is in --out. Leave the other options.")
    where = os.path.relpath(args.out, PAGE.parent)
    _check_page(where)
    drawn = _save(plots(args.out), args.out)  # first: the page shows the pictures there are
    text = page(args.out, where=where)
    with replacing(PAGE) as partial:
        partial.write_text(text)
    console.print("Written:", f"  {PAGE}", *drawn, sep="\n", soft_wrap=True)
    return 0


def _check_page(where: str) -> None:
    """A page may be replaced that was made of the results in the same folder."""
    ours = INTRODUCTION.partition("(../results)")[0]
    if not PAGE.exists():
        return
    text = PAGE.read_text(errors="replace")
    if not text.startswith(ours):
        problem = "is not from here"
    elif not text.startswith(f"{ours}({where})"):
        problem = f"shows another folder than {os.path.normpath(PAGE.parent / where)}"
    else:
        return
    raise InputError(
        f"{PAGE} would be overwritten, and it {problem}.\n"
        "  Move it away, or make the page in another folder."
    )


def _of_run(args: ReproduceArgs, study: Study, plan: Plan) -> tuple[Study, Plan]:
    """The figure of a run that the user names, as it is."""
    assert args.run is not None
    if args.name not in OF_ANY_RUN:
        raise InputError(f"--run should come with {' or '.join(OF_ANY_RUN)}, got {args.name}.")
    runs = [read_run(folder) for folder in find_runs(args.run)]
    if not runs:
        raise InputError(f"There is no run at {args.run}.\n  See: {PROG} list")
    as_it_is = ReproduceArgs(name=args.name)
    for option in ("scale", "seeds", "path", "precision", "cases"):
        if getattr(args, option) != getattr(as_it_is, option):
            raise InputError(f"--run takes a run as it is. Leave --{option}.")
    wanted = runs[0].experiment.train.steps
    if any(steps_done(run.folder) < wanted for run in runs):
        raise InputError(
            f"{args.run} should be trained to its end, {wanted:,} steps, but is not.\n"
            f"  Go on with: {PROG} train {runs[0].name} --resume --name {args.run.name}"
        )
    if len(runs) == 1 and runs[0].folder == args.run:
        raise InputError(
            f"--run should be a run's folder, the one with seeds in it: {args.run.parent}"
        )
    settings = runs[0].experiment
    if settings.data.dataset == "folder":
        raise InputError(f"{args.run} was trained on a folder without masks, so nothing is scored.")
    evaluate = dataclasses.replace(settings.evaluate, protocols=("rf2023",))
    settings = dataclasses.replace(settings, evaluate=evaluate)
    own = dataclasses.replace(study.cases[0], label=args.run.name, settings=settings, paper={})
    case = OF_ANY_RUN[args.name](own)
    seeds = tuple(run.seed for run in runs)
    return (
        dataclasses.replace(study, cases=(case,)),
        dataclasses.replace(plan, seeds=seeds, given=args.run),
    )


def _save(figures: Mapping[str, Figure | None], folder: Path) -> list[str]:
    lines = []
    for name, figure in figures.items():
        if figure is not None:
            with replacing(folder / f"{name}.png") as partial:
                figure.savefig(partial, format="png")
            lines.append(f"  {folder / name}.png")
    return lines
