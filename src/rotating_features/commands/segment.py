"""Object masks for image files."""

import tyro
from rich.progress import track

from rotating_features.arguments import SegmentArgs
from rotating_features.commands.screen import PROG, complain, console
from rotating_features.models import load
from rotating_features.segment import find_images, segment
from rotating_features.train.machine import pick_device


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
        complain(problem)
    return 2 if problems else 0
