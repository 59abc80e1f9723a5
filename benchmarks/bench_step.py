"""The training step against a plain eager reading of the paper.

One step is forward, backward, clipping and Adam on 4Shapes images. Every variant runs in processes
of its own, turn by turn, so that none inherits another's settings and all see the same machine:

    python benchmarks/bench_step.py
"""

import argparse
import json
import subprocess
import sys

import numpy as np
import torch
from torch.nn import functional as F

from harness import Timing, append_rows, measure
from plain import PlainAutoEncoder
from rotating_features.data import FourShapes
from rotating_features.models import RotatingAutoEncoder
from rotating_features.train import Step

VARIANTS = ("plain", "float32", "bfloat16")
ROUNDS = 3


def time_variant(variant: str, batch: int, n: int, d: int, repeats: int) -> Timing:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = FourShapes("train").draw(np.arange(batch)).image.to(device)
    torch.manual_seed(0)
    if variant == "plain":
        model = PlainAutoEncoder(1, 32, d, n).to(device)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

        def call() -> None:
            optimiser.zero_grad()
            F.mse_loss(model(x), x).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimiser.step()

    else:
        model = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=d, rotation_dim=n)
        precision = "bfloat16" if variant == "bfloat16" else "float32"
        step = Step(model.to(device), precision=precision, compiled=True)

        def call() -> None:
            step(x, 1e-3)

    return measure(call, warmup=5, repeats=repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--d", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=10, help="timed steps in each process")
    parser.add_argument("--variant", choices=VARIANTS, help="time only this one, in this process")
    args = parser.parse_args()
    if args.variant:
        print(json.dumps(time_variant(args.variant, args.batch, args.n, args.d, args.repeats)))
        return

    rounds: dict[str, list[Timing]] = {variant: [] for variant in VARIANTS}
    for _ in range(ROUNDS):
        for variant in VARIANTS:
            command = [sys.executable, __file__, *sys.argv[1:], "--variant", variant]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rounds[variant].append(Timing(*json.loads(done.stdout.splitlines()[-1])))
    best = {variant: sorted(timings)[ROUNDS // 2] for variant, timings in rounds.items()}
    rows = [
        {
            "work": f"4shapes step b={args.batch} n={args.n} d={args.d}",
            "variant": variant,
            **{name: round(value, 2) for name, value in timing._asdict().items()},
            "times_faster_than_plain": round(best["plain"].median_ms / timing.median_ms, 2),
        }
        for variant, timing in best.items()
    ]
    for row in rows:
        print(*(f"{name}={value}" for name, value in row.items()), sep="  ")
    print("rows added to", append_rows("step", rows))


if __name__ == "__main__":
    main()
