"""Scores of single images: as rows, in files, and summed up."""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data import PHOTOGRAPHS
from rotating_features.evaluate.orientation import THRESHOLD
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS
from rotating_features.evaluate.protocols import PROTOCOLS
from rotating_features.experiments.config import DataConfig, EvaluateConfig
from rotating_features.train.checkpoint import SCORES_FILE as FILE

PROTOCOLS_FILE = "protocols.json"
SCORES = (
    "mse",
    "ari_bg",
    "mbo_i",
    "mbo_c",
    "clusters",
    "uncertainty",
    "iou",
    "iou_random",
    "accuracy",
)
"""A row has those that its model and its images can have: without vectors ``mse`` alone, ``mbo_c``
with photographs that have classes, the last three with a classifier. The others are empty in the
file."""
OF_OBJECTS = ("ari_bg", "mbo_i", "mbo_c")
"""Those that an image without objects has no value for."""
COLUMNS = ("data", "protocol", "clustering", "image", "name", *SCORES)

Row = dict[str, Any]


def describe(settings: EvaluateConfig) -> str:
    """The clustering in a few words, for tables and files."""
    if settings.cluster == "kmeans":
        way = f"kmeans k={settings.k}"
    else:
        way = f"agglomerative t={settings.distance_threshold:g}"
    if settings.magnitude_threshold != THRESHOLD:
        way += f" magnitude>{settings.magnitude_threshold:g}"
    return way


def describe_data(data: DataConfig, own: DataConfig) -> str:
    """How these images differ from the run's own, in a few words."""
    pairs = zip(asdict(data).items(), asdict(own).values(), strict=True)
    return " ".join(f"{name}={value}" for (name, value), usual in pairs if value != usual)


def describe_protocols(data: DataConfig, settings: EvaluateConfig) -> dict[str, dict[str, Any]]:
    """All that the protocols' names stand for, so that a score can be told from another's."""
    if data.dataset in PHOTOGRAPHS:
        protocols = [PHOTO_PROTOCOLS[name].at(data.side) for name in settings.protocols]
        return {protocol.name: protocol.settings() for protocol in protocols}
    return {name: {"name": name, **PROTOCOLS[name]._asdict()} for name in settings.protocols}


def to_rows(
    batches: Iterable[dict[str, dict[str, Tensor]]], *, clustering: str, data: str = ""
) -> list[Row]:
    """A row for every image and protocol; ``data`` says which images, if not the run's own.

    They are counted, unless a batch says which ones it has.
    """
    collected: dict[str, list[dict[str, Tensor]]] = defaultdict(list)
    for batch in batches:
        for protocol, values in batch.items():
            collected[protocol].append(values)
    rows = []
    for protocol, parts in collected.items():
        columns = {
            name: torch.cat([part[name].cpu() for part in parts]).tolist()
            for name in SCORES
            if name in parts[0]
        }
        count = len(next(iter(columns.values())))
        images = torch.cat([p["image"] for p in parts]) if "image" in parts[0] else range(count)
        for image, values in zip(
            map(int, images), zip(*columns.values(), strict=True), strict=True
        ):
            rows.append(
                {"data": data, "protocol": protocol, "clustering": clustering, "image": image}
                | dict(zip(columns, values, strict=True))
            )
    return rows


def are_of(folder: Path, names: list[str], wanted: int | None) -> bool:
    """Whether the run's own scores are of these photographs: of all, or of the first so many."""
    own = [row for row in read(folder) if not row["data"]]
    scored = {row["image"] for row in own}
    lacking = set(range(len(names[:wanted]))) - scored
    return not lacking and not any(is_stale(row, names, unknown=True) for row in own)


def is_stale(row: Row, names: list[str] | None, *, unknown: bool = False) -> bool:
    """Whether a row's place now has another photograph, or none; ``unknown`` if it has no name.

    Drawn images have no ``names`` and are what they were.
    """
    if names is None:
        return False
    if "name" not in row:
        return unknown
    return row["image"] >= len(names) or names[row["image"]] != row["name"]


def merge(
    folder: Path,
    rows: list[Row],
    protocols: dict[str, dict[str, Any]],
    names: list[str] | None = None,
) -> None:
    """Put ``rows`` into the folder's file; rows of other images or taken in other ways stay.

    With the ``names`` of all photographs there are now, rows of others in their places go.
    Beside the file lies what the names of protocols in it stand for.
    """
    path, before = folder / PROTOCOLS_FILE, {}
    with suppress(OSError, ValueError):  # not there yet, or damaged, and then made anew
        before = json.loads(path.read_text())
    with replacing(path) as partial:
        partial.write_text(json.dumps(before | protocols, indent=2) + "\n")
    new, these = {_key(row) for row in rows}, {row["data"] for row in rows}
    kept = [
        row
        for row in read(folder)
        if _key(row) not in new and not (row["data"] in these and is_stale(row, names))
    ]
    with replacing(folder / FILE) as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in [*kept, *rows]:
            writer.writerow({name: _short(row.get(name, "")) for name in COLUMNS})


def read(folder: Path) -> list[Row]:
    """The rows of the folder's file; none if there is no file."""
    path = folder / FILE
    if not path.exists():
        return []
    try:
        with path.open(newline="") as file:
            return [_parse(row) for row in csv.DictReader(file)]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise InputError(
            f"{path} should be a table of scores, but is damaged: {error!r}.\n"
            "  Remove it, and score the run again with rotating-features evaluate."
        ) from error


def summarise(rows: Iterable[Row]) -> dict[tuple[str, ...], dict[str, float]]:
    """Means over images by way of scoring, with the count of images and of those dropped.

    A way is (protocol, clustering), and the images if they are not the run's own. An image without
    objects has no ARI or MBO, whichever was asked for; one that is left out of any mean is counted.
    """
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        way = (row["protocol"], row["clustering"], row["data"])
        groups[way if row["data"] else way[:2]].append(row)
    return {key: _summary(group) for key, group in groups.items()}


def _parse(row: dict[str, Any]) -> Row:
    there = [name for name in SCORES if row.get(name) != "" and (name in row or name == "mse")]
    return {
        "data": row.get("data", ""),  # a column that older files lack
        "protocol": row["protocol"],
        "clustering": row["clustering"],
        "image": int(row["image"]),
        **({"name": row["name"]} if row.get("name") else {}),  # photographs have one
        **{name: float(row[name]) for name in there},
    }


def _summary(group: list[Row]) -> dict[str, float]:
    there = [name for name in SCORES if name in group[0]]
    means = {name: _mean([row[name] for row in group]) for name in there}
    asked = [name for name in OF_OBJECTS if name in there]
    lost = sum(any(math.isnan(row[name]) for name in asked) for row in group)
    return means | {"images": len(group), "dropped": lost}


def _key(row: Row) -> tuple[str, str, str, int]:
    return row["data"], row["protocol"], row["clustering"], row["image"]


def _mean(values: list[float]) -> float:
    there = [value for value in values if not math.isnan(value)]
    return sum(there) / len(there) if there else math.nan


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
