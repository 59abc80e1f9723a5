"""Time each thing against its peer."""

import tyro

from rotating_features._check import InputError
from rotating_features.arguments import BenchArgs
from rotating_features.bench import BENCHMARKS, obstacle
from rotating_features.bench.growth import draw as draw_growth
from rotating_features.bench.harness import append_rows
from rotating_features.bench.step import VARIANTS, WORKS
from rotating_features.bench.table import table as bench_table
from rotating_features.commands.screen import PROG, console, unknown


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
                raise InputError(unknown(kind, name, known))
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
