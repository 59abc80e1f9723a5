"""From image files to mask files."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data.decode import open_image
from rotating_features.evaluate.discover import Discovery, discover
from rotating_features.models import AutoEncoder
from rotating_features.plots.colors import PALETTE, color_labels

EXTENSIONS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
OUTPUTS = (".labels.png", ".overlay.png", ".uncertainty.png")
REPORT = "objects.jsonl"
MOST_OBJECTS = 255


class Segmented(NamedTuple):
    """What became of one image: its line of the report, or why there is none."""

    source: Path
    objects: int | None
    problem: str | None


def find_images(paths: Iterable[Path]) -> list[tuple[Path, Path]]:
    """Image files in ``paths``, folders searched through, each with the name its output gets."""
    paths, found = list(paths), []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in EXTENSIONS)
            found += [(p, p.relative_to(path)) for p in inside if p.is_file()]
        elif path.exists():
            found.append((path, Path(path.name)))
        else:
            raise InputError(f"There is no image or folder {path}.")
    images = [pair for pair in found if not pair[0].name.endswith(OUTPUTS)]
    if not images:
        raise InputError(
            f"No images found in {', '.join(map(str, paths))}; "
            f"wanted files ending in {', '.join(sorted(EXTENSIONS))}."
        )
    sources: dict[Path, Path] = {}
    for source, name in images:
        if sources.setdefault(name, source).resolve() != source.resolve():
            raise InputError(
                f"{sources[name]} and {source} would both be written as {name}.\n"
                "  Segment them one after the other, into two folders."
            )
    return images


def segment(
    model: AutoEncoder,
    images: Iterable[tuple[Path, Path]],
    out: Path,
    *,
    k: int | None = None,
    distance_threshold: float | None = None,
) -> Iterator[Segmented]:
    """Write masks for every image, yielding what became of it; a broken one stops nothing.

    For ``photo.jpg`` there will be ``photo.jpg.labels.png``, whose pixel values are the labels;
    an overlay and an uncertainty map beside it; and a line of ``objects.jsonl``.

    Args:
        model: From :func:`rotating_features.load`.
        images: Pairs of a file and the name of its output, see :func:`find_images`.
        out: Folder for all that is written.
        k, distance_threshold: As in :func:`discover`.
    """
    lines = _read_report(out / REPORT)
    try:
        for source, name in images:
            try:
                picture = open_image(source)
            except InputError as error:
                yield Segmented(source, None, str(error))
                continue
            found = discover(model, picture, k=k, distance_threshold=distance_threshold)
            if (most := int(found.labels.max())) > MOST_OBJECTS:
                problem = f"{source} has {most} objects; a mask can hold {MOST_OBJECTS}. Pass --k."
                yield Segmented(source, None, problem)
                continue
            _write_pictures(out / name, picture, found)
            lines[str(source)] = {"image": str(source), **_objects(found)}
            yield Segmented(source, lines[str(source)]["objects"], None)
    finally:
        with replacing(out / REPORT) as partial:
            partial.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))


def _read_report(path: Path) -> dict[str, dict]:
    """Lines of an earlier report by image, so that its masks keep theirs."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {line["image"]: line for line in lines}


def _objects(found: Discovery) -> dict:
    labels, doubt = found.labels.cpu().numpy(), found.uncertainty.cpu().numpy()
    there = [int(label) for label in np.unique(labels) if label > 0]
    masks = [labels == label for label in there]
    return {
        "objects": len(masks),
        "labels": there,  # resizing can lose a tiny one, so they may have gaps
        "areas": [int(mask.sum()) for mask in masks],
        "boxes": [_box(mask) for mask in masks],
        "uncertainty": [round(float(doubt[mask].mean()), 4) for mask in masks],
    }


def _box(mask: np.ndarray) -> list[int]:
    """Left, top, width and height."""
    rows, cols = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return [int(v) for v in (cols[0], rows[0], cols[-1] - cols[0] + 1, rows[-1] - rows[0] + 1)]


def _write_pictures(stem: Path, picture: Image.Image, found: Discovery) -> None:
    labels = found.labels.cpu()
    mask = Image.fromarray(labels.numpy().astype(np.uint8), mode="P")
    mask.putpalette(_palette())
    overlay = Image.blend(picture, Image.fromarray(color_labels(labels)), 0.55)
    doubt = found.uncertainty.cpu().clamp(0, 1).mul(255).byte().numpy()
    for suffix, image in zip(OUTPUTS, (mask, overlay, Image.fromarray(doubt)), strict=True):
        with replacing(stem.with_name(stem.name + suffix)) as partial:
            image.save(partial, format="PNG")


def _palette() -> list[int]:
    """Colours of labels 0..255, as the overlays have them."""
    repeated = [PALETTE[0], *(PALETTE[1 + i % (len(PALETTE) - 1)] for i in range(255))]
    return np.concatenate(repeated).tolist()
