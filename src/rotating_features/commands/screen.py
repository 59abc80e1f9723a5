"""What all commands say, and how."""

import difflib
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

PROG = "rotating-features"
console = Console(markup=False, highlight=False)


def unknown(kind: str, got: str, known: Iterable[str]) -> str:
    """The message for a name that is not known."""
    known = list(known)
    close = difflib.get_close_matches(got, known, n=1)
    hint = f"\n  Did you mean {close[0]!r}?" if close else ""
    return f"The {kind} should be one of {', '.join(known)}, got {got!r}.{hint}"


def without_help(argv: list[str]) -> list[str]:
    """The words but for a wish for help, which is better fulfilled once defaults are known."""
    return [word for word in argv if word not in ("-h", "--help")]


def complain(message: str) -> None:
    """Say on the error stream what went wrong."""
    text = Text.assemble((f"{PROG}: ", "bold red"), message)
    Console(stderr=True, soft_wrap=True).print(text)
