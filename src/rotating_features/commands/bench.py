"""Time each thing against its peer."""

from typing import Any

import torch
import tyro

from rotating_features._check import InputError
from rotating_features._commit import commit
from rotating_features.arguments import BenchArgs
from rotating_features.bench import BENCHMARKS, obstacle
from rotating_features.bench.growth import draw as draw_growth
from rotating_features.bench.growth import latest
from rotating_features.bench.harness import append_rows, read_rows
from rotating_features.bench.step import VARIANTS, WORKS, lacking
from rotating_features.bench.table import table as bench_table
from rotating_features.commands.screen import PROG, console, unknown
from rotating_features.plots.growth import PANELS
from rotating_features.segment import find_images

CHOICES = {"step": {"works": WORKS, "variants": VARIANTS}, "growth": {"works": PANELS}}
"""What parts of a benchmark can be asked for."""


def bench_command(argv: list[str]) -> int:
    args = tyro.cli(BenchArgs, args=argv, prog=f"{PROG} bench")
    names = _suitable_benchmarks(args)
    commit()  # as it is now, for the rows
    with console.status("measuring") as status:
        for name in names:
            chosen = {"works": args.works, "variants": args.variants}
            options: dict[str, Any] = {key: chosen[key] for key in CHOICES.get(name, ())}
            if name == "segment":
                options["folder"] = args.images
            rows = []
            for part in BENCHMARKS[name](repeats=args.repeats, tell=status.update, **options):
                append_rows(args.out, name, part)
                rows += part
            console.print(bench_table(rows))
            console.print(f"Rows added to {args.out / name}.csv", soft_wrap=True)
            if name == "growth":
                picture = draw_growth(latest(read_rows(args.out / f"{name}.csv")), args.out)
                console.print(f"Picture: {picture}", soft_wrap=True)
    return 0


def _suitable_benchmarks(args: BenchArgs) -> list[str]:
    """The benchmarks asked for, or those that can run here; mistakes are told before any time."""
    if args.repeats < 1:
        raise InputError(f"repeats should be at least 1, got {args.repeats}.")
    if odd := [name for name in args.names if name not in BENCHMARKS]:
        raise InputError(unknown("benchmark", odd[0], BENCHMARKS))
    suitable = []
    for name in args.names or [name for name in BENCHMARKS if name != "growth"]:
        problem = obstacle(name)
        if problem is None:
            suitable.append(name)
        elif args.names:
            raise InputError(problem)
        else:
            console.print(f"Left out: {problem}")
    for option, asked in (("works", args.works), ("variants", args.variants)):
        having = [name for name in suitable if option in CHOICES.get(name, {})]
        if asked and len(having) != 1:
            which = " or ".join(name for name, options in CHOICES.items() if option in options)
            raise InputError(f"{option} should come with one benchmark that has them: {which}.")
        for name in asked:
            if name not in (known := CHOICES[having[0]][option]):
                raise InputError(unknown(option.removesuffix("s"), name, known))
    if args.images is not None:
        if "segment" not in suitable:
            raise InputError("images should come with the benchmark that takes them: segment.")
        find_images([args.images])
    if "step" in suitable:
        _check_works(args.works)
    return suitable


def _check_works(asked: tuple[str, ...]) -> None:
    """Say which works a step cannot be taken on here, where it would otherwise be."""
    for problem in filter(None, (lacking(WORKS[name]) for name in asked or WORKS)):
        if asked:
            raise InputError(problem)
        if torch.cuda.is_available():
            console.print(f"Left out: {problem}")
