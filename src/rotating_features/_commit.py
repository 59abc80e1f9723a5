"""Which commit the code is of, for files that claim numbers."""

import os
import subprocess
from functools import cache
from pathlib import Path


@cache
def commit() -> str:
    """The commit of the code, with a + if files differ from it; ``unknown`` outside a checkout.

    It is looked up once: what is committed while a program runs, the program does not run. So
    whoever takes long should ask first.

    On a machine that has the code without its history, ``ROTATING_FEATURES_COMMIT`` tells.
    """
    if told := os.environ.get("ROTATING_FEATURES_COMMIT"):
        return told
    here = Path(__file__).parent
    try:
        _git(here, "ls-files", "--error-unmatch", __file__)  # else it is another project's history
        name = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", str(here))
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return name + ("+" if changed else "")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
