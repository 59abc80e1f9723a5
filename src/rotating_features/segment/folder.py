"""From images to a folder of masks, and what is said of all of them."""

import json
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Literal

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.evaluate.discover import choose_clusters
from rotating_features.evaluate.orientation import THRESHOLD
from rotating_features.models import Model
from rotating_features.segment.coco import write_coco
from rotating_features.segment.files import SUMMARY, check_folder
from rotating_features.segment.journal import Journal, made_from, recipe
from rotating_features.segment.pipeline import Pipeline, Segmented, Task
from rotating_features.segment.sheet import write_sheet
from rotating_features.segment.timings import Timings

BATCH = 16


def segment(
    model: Model,
    images: Iterable[tuple[Path, Path]],
    out: Path,
    *,
    k: int | Literal["auto"] | None = None,
    distance_threshold: float | None = None,
    magnitude_threshold: float = THRESHOLD,
    batch_size: int = BATCH,
    timings: Timings | None = None,
) -> Generator[Segmented, None, None]:
    """Write masks for every image, yielding what became of it; a broken one stops nothing.

    For ``photo.jpg`` there will be ``photo.jpg.labels.png``, whose pixel values are the labels;
    an overlay and an uncertainty map beside it; and a line of ``objects.jsonl``. After the last
    image come ``coco.json``, ``report.json``, which names what could not be read, and a contact
    sheet. What was done before, with the same model, settings and file, is not done again.

    An image is stretched to the model's size, whatever its shape; its labels are stretched back.

    Args:
        model: From :func:`rotating_features.load`.
        images: Pairs of a file and the name of its output, see :func:`find_images`.
        out: Folder for all that is written.
        k, distance_threshold, magnitude_threshold: As in :func:`discover`.
        batch_size: How many images the model gets at once. Which ones depends on ``images`` alone,
            so a run that is stopped and goes on gives the same files as one that is not.
        timings: Where to note how long each stage takes.
    """
    k, distance_threshold = choose_clusters(model, k, distance_threshold)
    if model.channels not in (1, 3):
        raise InputError(
            f"Image files have 1 or 3 channels, but the model wants {model.channels}.\n"
            "  Segment with a model trained on images without depth."
        )
    if batch_size < 1:
        raise InputError(f"batch_size should be at least 1, got {batch_size}.")
    images = list(images)
    check_folder(out, [name for _, name in images])
    made = recipe(model, k, distance_threshold, magnitude_threshold)
    sources = {name.as_posix(): source for source, name in images}
    wanted = {name: made_from(source, made) for name, source in sources.items()}
    problems: list[dict[str, str]] = []
    with Journal(out, wanted, sources) as journal:
        tasks = [
            Task(source, name, wanted[name.as_posix()], name.as_posix() in journal.objects)
            for source, name in images
        ]
        timings = timings or Timings()
        line = Pipeline(model, out, journal, k, distance_threshold, magnitude_threshold, timings)
        try:
            for result in line.run(tasks, batch_size):
                if result.problem is not None:
                    problems.append({"image": str(result.source), "problem": result.problem})
                yield result
        finally:
            line.stop()
            with timings.spent("report"):
                write_coco(out)
                _summarise(out, wanted, journal, problems)
        with timings.spent("report"):
            write_sheet(out)


def _summarise(
    out: Path, wanted: Iterable[str], journal: Journal, problems: list[dict[str, str]]
) -> None:
    """Write ``report.json``: how far it went, and what could not be done."""
    done = [journal.objects[name] for name in wanted if name in journal.objects]
    total = len(list(wanted))
    facts = {
        "images": total,
        "segmented": len(done),
        "objects": sum(done),
        "left": total - len(done) - len(problems),
        "problems": problems,
    }
    with replacing(out / SUMMARY) as partial:
        partial.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
