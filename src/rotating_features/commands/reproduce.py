"""The paper's tables and figures, from our own runs."""

import dataclasses
from pathlib import Path

import tyro
from matplotlib.figure import Figure

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.arguments import ReproduceArgs
from rotating_features.commands.screen import PROG, console, unknown
from rotating_features.experiments import show
from rotating_features.experiments.folders import find_runs, read_run
from rotating_features.experiments.page import page
from rotating_features.experiments.reproduce import Plan, cost, run_study
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.study import Study
from rotating_features.experiments.theory import THEORY
from rotating_features.train.machine import pick_device

PAGE = Path("docs/results.md")


def reproduce_command(argv: list[str]) -> int:
    args = tyro.cli(ReproduceArgs, args=argv, prog=f"{PROG} reproduce")
    if args.name == "page":
        with replacing(PAGE) as partial:
            partial.write_text(page(args.out))
        console.print(f"Written: {PAGE}")
        return 0
    if args.name not in {**STUDIES, **THEORY}:
        raise InputError(unknown("study", args.name, [*STUDIES, *THEORY, "page"]))
    if not args.seeds or len(set(args.seeds)) < len(args.seeds) or min(args.seeds) < 0:
        raise InputError(f"seeds should be different numbers from 0 on, got {[*args.seeds]}.")
    device = pick_device(args.device)
    if args.name in THEORY:
        path, drawn = THEORY[args.name](args.out, ["reproduce", *argv], device)
        console.print("Written:", f"  {path}", *_save({args.name: drawn}, args.out), sep="\n")
        return 0
    study = STUDIES[args.name]
    plan = Plan(
        seeds=args.seeds,
        scale=args.scale,
        precision=args.precision,
        images=args.images,
        path=args.path,
        runs=args.runs,
        device=device,
    )
    if args.run is not None:
        study, plan = _of_run(args, study, plan)
    console.print(f"{study.title} ({study.source})", style="bold")
    console.print(cost(study, plan))
    record = run_study(
        args.name, study, plan, out=args.out, argv=["reproduce", *argv], console=console
    )
    console.print(show.table(record, study.metrics))
    drawn = {
        args.name: show.figure(record, study),
        f"{args.name}-objects": show.pictures(study, plan),
    }
    console.print("Written:", f"  {args.out / args.name}.json", *_save(drawn, args.out), sep="\n")
    return 0


def _of_run(args: ReproduceArgs, study: Study, plan: Plan) -> tuple[Study, Plan]:
    """The sweep over a run that the user names, as it is."""
    if args.name != "figure-clustering":
        raise InputError(f"--run should come with figure-clustering, got {args.name}.")
    runs = [read_run(folder) for folder in find_runs(args.run or Path())]
    if not runs:
        raise InputError(f"There is no run at {args.run}.\n  See: {PROG} list")
    case = dataclasses.replace(
        study.cases[0], label=runs[0].name, settings=runs[0].experiment, paper={}
    )
    seeds = tuple(run.seed for run in runs)
    return (
        dataclasses.replace(study, cases=(case,)),
        dataclasses.replace(plan, seeds=seeds, given=args.run),
    )


def _save(figures: dict[str, Figure | None], folder: Path) -> list[str]:
    lines = []
    for name, figure in figures.items():
        if figure is not None:
            with replacing(folder / f"{name}.png") as partial:
                figure.savefig(partial, format="png")
            lines.append(f"  {folder / name}.png")
    return lines
