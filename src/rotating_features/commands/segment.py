"""Object masks for image files."""

from contextlib import closing
from pathlib import Path

import tyro
from rich.progress import track

from rotating_features.arguments import SegmentArgs
from rotating_features.commands.screen import PROG, complain, console
from rotating_features.evaluate.discover import choose_clusters
from rotating_features.evaluate.orientation import THRESHOLD
from rotating_features.experiments.config import EvaluateConfig
from rotating_features.experiments.folders import read_run
from rotating_features.machine import pick_device
from rotating_features.models import load
from rotating_features.models.store import find
from rotating_features.segment import Segmented, find_images, segment
from rotating_features.train.checkpoint import CONFIG_FILE
from rotating_features.train.interrupt import interruptible

MOST_COMPLAINTS = 20


def segment_command(argv: list[str]) -> int:
    args = tyro.cli(SegmentArgs, args=argv, prog=f"{PROG} segment")
    model = load(args.model, device=pick_device(args.device), backbone=args.backbone)
    images = find_images(args.images)
    own = _scored_with(args.model)
    k, threshold = args.k, args.distance_threshold
    if k is None and threshold is None:
        if own is None:
            why, (k, threshold) = "as suits such a model", choose_clusters(model)
        elif own.cluster == "kmeans":
            why, k = "as the run is scored", own.k
        else:
            why, threshold = "as the run is scored", own.distance_threshold
        said = f"k={k}" if threshold is None else f"distance threshold {threshold:g}"
        console.print(f"Clusters {why}, {said}; --k or --distance-threshold choose.")
    results = segment(
        model,
        images,
        args.out,
        k=k,
        distance_threshold=threshold,
        magnitude_threshold=THRESHOLD if own is None else own.magnitude_threshold,
        batch_size=args.batch_size,
    )
    done: list[Segmented] = []
    with interruptible() as stopped, closing(results):
        for result in track(results, "segmenting", total=len(images), console=console):
            done.append(result)
            if stopped():
                break
    if len(done) < len(images):
        console.print(f"Stopped; what was done is in {args.out}. The same command goes on.")
        return 130
    return _tell(done, args.out)


def _scored_with(model: Path) -> EvaluateConfig | None:
    """How the model's run is scored; None for a file without a run."""
    folder = find(model).parent
    return read_run(folder).experiment.evaluate if (folder / CONFIG_FILE).is_file() else None


def _tell(done: list[Segmented], out: Path) -> int:
    """Say what was found and what went wrong; the exit status."""
    problems = [result.problem for result in done if result.problem is not None]
    total = sum(result.objects or 0 for result in done)
    good = len(done) - len(problems)
    console.print(f"{total} objects in {good} image{'s'[: good != 1]}; masks are in {out}.")
    if skipped := sum(result.skipped for result in done):
        console.print(f"{skipped} of them were done before, the same way, and are as they were.")
    for problem in problems[:MOST_COMPLAINTS]:
        complain(problem.encode(errors="replace").decode())  # names on disk may be no text
    if len(problems) > MOST_COMPLAINTS:
        complain(
            f"{len(problems) - MOST_COMPLAINTS} more could not be read; see {out}/report.json."
        )
    return 2 if problems else 0
