"""What is done: a line for each image whose files are in place.

Lines are only ever appended, after the files, so a kill can tear the last one and nothing else.
What is to be made again loses its line before its files are touched.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from rotating_features._files import replacing
from rotating_features.data.decode import OUTPUTS, REPORT
from rotating_features.models import Model
from rotating_features.segment.files import output

VERSION = 1
"""To be raised when the same image, model and settings come to give other files."""


class Journal:
    """The report of a folder, to ask what is done and to note what is.

    Args:
        out: The folder.
        wanted: What each image of this run would be made from, by its name, see :func:`made_from`.
    """

    def __init__(self, out: Path, wanted: Mapping[str, str]) -> None:
        self.path = out / REPORT
        self.objects: dict[str, int] = {}
        """How many were found, for each image of this run that is done."""
        good = []
        for line in read_lines(self.path):
            name = line["name"]
            if name in wanted:
                files = (output(out, Path(name), ending) for ending in OUTPUTS)
                if line["made_from"] != wanted[name] or not all(f.exists() for f in files):
                    continue
                self.objects[name] = line["objects"]
            good.append(name)
        self._keep(set(good))
        self._file = self.path.open("a", encoding="utf-8")

    def append(self, line: dict[str, Any]) -> None:
        """Note that an image's files are in place."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self.objects[line["name"]] = line["objects"]

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._file.close()

    def _keep(self, good: set[str]) -> None:
        """Drop all other lines, and halves of lines; a report without any is left alone."""

        def kept() -> Iterator[str]:
            lines = (line for line in read_lines(self.path) if line["name"] in good)
            return (json.dumps(line) + "\n" for line in lines)

        if self.path.exists() and sum(map(len, kept())) == self.path.stat().st_size:
            return
        with replacing(self.path) as partial, partial.open("w", encoding="utf-8") as file:
            file.writelines(kept())


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a report, one at a time, without those that are torn or not ours."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict) and "made_from" in line:
                    yield line


def made_from(source: Path, recipe: str) -> str:
    """A name for all that decides an image's files: the same file, untouched, and ``recipe``.

    Touched means another size or time of change, as in make and rsync: reading it all to be sure
    would take as long as to segment it.
    """
    try:
        stat = source.stat()
    except OSError:
        return ""
    return _digest(recipe, str(source.absolute()), stat.st_size, stat.st_mtime_ns)


def recipe(model: Model, k: object, distance_threshold: float | None) -> str:
    """A name for the model, down to its weights, and the settings."""
    weights = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(model.state_dict().items()):
        weights.update(name.encode())
        weights.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    what = type(model).__name__, model.settings, weights.hexdigest()
    return _digest(VERSION, *what, k, distance_threshold)


def _digest(*facts: object) -> str:
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()
