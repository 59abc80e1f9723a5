"""Photographs that could not be used: said on the screen, and noted in a run's folder."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rotating_features._files import replacing
from rotating_features.data.workers import Problem

LEFT_OUT = "left-out.json"


def say_left_out(problems: Sequence[Problem], console: Console) -> None:
    """Name the photographs that could not be used, and why; each of them once."""
    for problem in dict.fromkeys(problems):
        said = problem.problem.encode(errors="replace").decode()  # names may be no text
        console.print(f"Left out: {said}", soft_wrap=True, markup=False, highlight=False)


def note_left_out(folder: Path, problems: Sequence[Problem]) -> None:
    """Write into a run's folder which photographs it could not use, and why, if there are any."""
    path = folder / LEFT_OUT
    path.unlink(missing_ok=True)
    if problems:
        with replacing(path) as partial:
            partial.write_text(json.dumps([each._asdict() for each in problems], indent=2) + "\n")
