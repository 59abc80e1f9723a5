"""The report as COCO has it, for the many programs that read that."""

import json
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from rotating_features._files import replacing
from rotating_features.segment.files import COCO, REPORT
from rotating_features.segment.journal import read_lines

CATEGORY = {"id": 1, "name": "object", "supercategory": ""}


def write_coco(out: Path) -> None:
    """Write ``coco.json`` from the report, line by line: of many images it may be long."""
    with replacing(out / COCO) as partial, partial.open("w", encoding="utf-8") as file:
        file.write('{"categories": ' + json.dumps([CATEGORY]) + ',\n"images": [')
        _write(file, (_image(i, line) for i, line in enumerate(read_lines(out / REPORT), 1)))
        file.write('],\n"annotations": [')
        _write(file, _annotations(out))
        file.write("]}\n")


def _image(number: int, line: dict[str, Any]) -> dict[str, Any]:
    size = {"width": line["width"], "height": line["height"]}
    return {"id": number, "file_name": line["name"], **size}


def _annotations(out: Path) -> Iterator[dict[str, Any]]:
    number = count(1)
    for image, line in enumerate(read_lines(out / REPORT), 1):
        for area, box, mask in zip(line["areas"], line["boxes"], line["masks"], strict=True):
            yield {
                "id": next(number),
                "image_id": image,
                "category_id": CATEGORY["id"],
                "segmentation": {"size": [line["height"], line["width"]], "counts": mask},
                "area": area,
                "bbox": box,
                "iscrowd": 0,
            }


def _write(file: TextIO, items: Iterable[dict[str, Any]]) -> None:
    for i, item in enumerate(items):
        file.write((",\n" if i else "\n") + json.dumps(item))
