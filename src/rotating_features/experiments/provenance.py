"""Where a claimed number comes from: what every file of results begins with."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from rotating_features._commit import commit
from rotating_features._version import __version__
from rotating_features.experiments.config import Experiment, to_dict
from rotating_features.machine import describe

PLACES = ("--runs", "--out")
"""Options that say where files go, which is no part of what was done."""
DATA = ("--path", "--data.path")
"""Options that say where data lie: of those only the folder's own name tells others anything."""


def provenance(argv: Sequence[str], device: torch.device) -> dict[str, Any]:
    """The command that gives the number again, and the code and machine that gave it.

    Example:
        >>> words = ["train", "4shapes", "--runs", "elsewhere", "--data.path", "/mine/4shapes"]
        >>> provenance(words, torch.device("cpu"))["command"]
        'rotating-features train 4shapes --data.path 4shapes'
    """
    return {
        "command": "rotating-features " + shlex.join(_for_others(argv)),
        "commit": commit(),
        "version": __version__,
        "device": device.type,
        "hardware": describe(),
    }


def settings_for_others(experiment: Experiment) -> dict[str, Any]:
    """The settings as plain data, with the name alone of the folder that the data lie in.

    A backbone's folder stays: another one of that name may hold other weights. Where features
    are kept is left out.
    """
    settings = to_dict(experiment)
    if (path := settings["data"]["path"]) is not None:
        settings["data"]["path"] = _name(path)
    settings["evaluate"]["feature_cache"] = None
    return settings


def _for_others(argv: Sequence[str]) -> Iterator[str]:
    words = iter(argv)
    for word in words:
        option, joined, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in PLACES:
            if not joined:
                next(words, None)
        elif option in DATA:
            yield from (option, _name(value if joined else next(words, "")))
        elif joined:
            yield f"{option}={_by_name(value)}"
        else:
            yield _by_name(word)


def _by_name(word: str) -> str:
    """A place on this computer by its own name; any other word as it is."""
    is_place = word.startswith("~") or Path(word).is_absolute()
    return (_name(word) or word) if is_place else word


def _name(folder: str) -> str:
    return Path(folder).absolute().name
