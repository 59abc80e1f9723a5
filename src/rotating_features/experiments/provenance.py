"""Where a claimed number comes from: what every file of results begins with."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from rotating_features._commit import commit
from rotating_features._version import __version__
from rotating_features.train.machine import describe

PLACES = ("--runs", "--out")
"""Options that say where files go, which is no part of what was done."""


def provenance(argv: Sequence[str], device: torch.device) -> dict[str, Any]:
    """The command that gives the number again, and the code and machine that gave it.

    Example:
        >>> provenance(["train", "4shapes", "--runs", "elsewhere"], torch.device("cpu"))["command"]
        'rotating-features train 4shapes'
    """
    return {
        "command": "rotating-features " + shlex.join(_without_places(argv)),
        "commit": commit(),
        "version": __version__,
        "device": device.type,
        "hardware": describe(),
    }


def _without_places(argv: Sequence[str]) -> Iterator[str]:
    words = iter(argv)
    for word in words:
        if word in PLACES:
            next(words, None)
        elif word.partition("=")[0] not in PLACES:
            yield word
