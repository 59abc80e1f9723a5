"""What is done: a line for each image whose files are in place.

Lines are only ever appended, after the files, so a kill can tear the last one and nothing else.
What is to be made again loses its line before its files are touched.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features._lock import locked
from rotating_features.data.decode import OUTPUTS, REPORT
from rotating_features.models import Model
from rotating_features.segment.files import check_same_image, output

BEGIN = '{"image": '
"""Of every line."""
VERSION = 3
"""To be raised when the same image, model and settings come to give other files."""


class Journal:
    """The report of a folder, to ask what is done and to note what is.

    Args:
        out: The folder.
        wanted: What each image of this run would be made from, by its name, see :func:`made_from`.
        sources: Their files, by the same names.

    Raises:
        InputError: If there are masks of another image of one of these names. An image that has
            moved is the same, by its size and time of change.
    """

    def __init__(self, out: Path, wanted: Mapping[str, str], sources: Mapping[str, Path]) -> None:
        self.path = out / REPORT
        self.objects: dict[str, int] = {}
        """How many were found, for each image of this run that is done."""
        check_report(self.path)
        with contextlib.ExitStack() as opened:  # closed here if anything fails on the way
            opened.enter_context(locked([out]))
            self._keep(self._read(out, wanted, sources))
            self._file = opened.enter_context(self.path.open("a", encoding="utf-8"))
            self._opened = opened.pop_all()

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
        self._opened.close()

    def _read(self, out: Path, wanted: Mapping[str, str], sources: Mapping[str, Path]) -> set[int]:
        """Take in what is done; the numbers of the lines that are still true."""
        last = {line["name"]: number for number, line in enumerate(read_lines(self.path))}
        good = set()
        for number, line in enumerate(read_lines(self.path)):
            name = line["name"]
            if number != last[name]:
                continue
            if name in wanted:
                files = [output(out, Path(name), ending) for ending in OUTPUTS]
                if any(f.exists() for f in files):
                    _check_source(line, sources[name], name)
                if line["made_from"] != wanted[name] or not all(f.exists() for f in files):
                    continue
                self.objects[name] = line["objects"]
            good.add(number)
        return good

    def _keep(self, good: set[int]) -> None:
        """Drop all other lines, and halves of lines; a report without any is left alone."""

        def kept() -> Iterator[str]:
            lines = enumerate(read_lines(self.path))
            return (json.dumps(line) + "\n" for number, line in lines if number in good)

        if self.path.exists() and sum(map(len, kept())) == self.path.stat().st_size:
            return
        with replacing(self.path) as partial, partial.open("w", encoding="utf-8") as file:
            file.writelines(kept())


def _check_source(line: dict[str, Any], source: Path, name: str) -> None:
    """Raise ``InputError`` unless the masks of a line are, by all signs, of ``source``."""
    if os.path.exists(line["image"]):  # noqa: PTH110 (false where one may not look)
        check_same_image(line["image"], source, name)
    elif line.get("file") != facts_of(source):
        raise InputError(
            f"There are masks of {line['image']}, which is gone, and {source} cannot be told to be "
            f"the same by its size and time of change.\n  Segment into another folder, or remove "
            f"the masks of {name} first."
        )


def check_report(path: Path) -> None:
    """Raise ``InputError`` if somebody else wrote the report, as its first line tells."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    try:
        ours = is_ours(json.loads(first))
    except ValueError:  # torn, if it is ours
        ours = not first.endswith("\n") and (BEGIN.startswith(first) or first.startswith(BEGIN))
    if not ours:
        raise InputError(
            f"{path} would be overwritten, and it is not from here: its first line is not one of "
            "our reports.\n  Choose another folder for the output."
        )


def is_ours(line: Any) -> bool:
    """Whether what a line of a report holds is what we write."""
    return isinstance(line, dict) and {"image", "name", "made_from"} <= line.keys()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a report, one at a time, without those that are torn or not ours."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if is_ours(line):
                    yield line


def made_from(source: Path, recipe: str) -> str:
    """A name for all that decides an image's files: the same file, untouched, and ``recipe``.

    Touched means another size or time of change, as in make and rsync: reading it all to be sure
    would take as long as to segment it.
    """
    facts = facts_of(source)
    return "" if facts is None else _digest(recipe, str(source.absolute()), *facts.values())


def facts_of(source: Path) -> dict[str, int] | None:
    """A file's size and time of change; None if it is not to be had."""
    try:
        stat = source.stat()
    except OSError:
        return None
    return {"bytes": stat.st_size, "changed_ns": stat.st_mtime_ns}


def recipe(
    model: Model,
    k: object,
    distance_threshold: float | None,
    magnitude_threshold: float,
) -> str:
    """A name for the model, down to its weights, and the settings."""
    weights = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(model.state_dict().items()):
        weights.update(name.encode())
        weights.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    what = type(model).__name__, model.settings, weights.hexdigest()
    return _digest(VERSION, *what, k, distance_threshold, magnitude_threshold)


def _digest(*facts: object) -> str:
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()
