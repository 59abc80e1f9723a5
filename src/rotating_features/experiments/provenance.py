"""Where a claimed number comes from: which command, which code, which machine."""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from rotating_features._check import InputError
from rotating_features._commit import commit
from rotating_features._files import replacing
from rotating_features._version import __version__
from rotating_features.experiments.config import Experiment, to_dict
from rotating_features.machine import describe

PLACES = ("--runs", "--out")
"""Options that say where files go, which is no part of what was done."""
DATA = ("--path", "--data.path")
"""Options that say where data lie: of those only the folder's own name tells others anything."""
SEEDS = (0, 1, 2, 3)
"""Those of ``reproduce``, unless others are asked for."""
MACHINES_FILE = "machines.json"
"""In a seed's folder: what it was trained on, one after another."""


def provenance(argv: Sequence[str], device: torch.device) -> dict[str, Any]:
    """The command that gives the number again, and the code and machine that gave it.

    Example:
        >>> words = ["train", "4shapes", "--runs", "elsewhere", "--data.path", "/mine/4shapes"]
        >>> provenance(words, torch.device("cpu"))["command"]
        'rotating-features train 4shapes --data.path 4shapes'
    """
    return {
        "command": _command(argv),
        "commit": commit(),
        "version": __version__,
        **machine(device),
    }


def study_command(record: dict[str, Any], only: Sequence[str] = ()) -> str:
    """The command that makes a study's table, which several calls may have made row by row.

    ``only`` are the rows' names, if the table has not all of them. Which folder has the photographs
    is for the reader to fill in.
    """
    cases, given, backbone = record["cases"], record.get("given"), record.get("backbone")
    words = ["reproduce", record["study"]]
    if record["scale"] != 1:
        words += ["--scale", f"{record['scale']:g}"]
    if not given and tuple(record["seeds"]) != SEEDS:
        words += ["--seeds", *map(str, record["seeds"])]
    precisions = {c["settings"]["train"]["precision"] for c in cases if c["training_seconds"]}
    if len(precisions) == 1:
        words += ["--precision", *precisions]
    if record.get("images") is not None:
        words += ["--images", str(record["images"])]
    if backbone is not None:
        words += ["--backbone", backbone.partition(" (")[0]]
    if given:
        words += ["--run", given]
    elif any(case["settings"]["data"]["path"] for case in cases):
        words += ["--path", "FOLDER"]
    return _command([*words, "--cases", *only] if only else words)


def short(commit: str) -> str:
    """A commit as people read it, with its + if files differed from it."""
    return commit[:7] + "+" * commit.endswith("+")


def machine(device: torch.device) -> dict[str, Any]:
    """The device at hand, and what it is part of."""
    return {"device": device.type, "hardware": describe()}


def machine_name(found: dict[str, Any]) -> str:
    """Which GPU or processor did the work; where no device is named, the GPU if there is one."""
    hardware = found["hardware"]
    usual = "cpu" if hardware["gpu"] == "none" else "cuda"
    return hardware["gpu" if found.get("device", usual) == "cuda" else "cpu"]


def note_machine(folder: Path, device: torch.device) -> None:
    """Leave word in a seed's folder of what it is trained on: it may go on elsewhere."""
    noted, here = noted_machines(folder), machine(device)
    if noted[-1:] != [here]:
        with replacing(folder / MACHINES_FILE) as partial:
            partial.write_text(json.dumps([*noted, here], indent=2) + "\n")


def noted_machines(folder: Path) -> list[dict[str, Any]]:
    """What the seed in the folder was trained on, one after another; older versions did not say."""
    path = folder / MACHINES_FILE
    if not path.exists():
        return []
    try:
        noted = json.loads(path.read_text())
        if not isinstance(noted, list):
            raise TypeError("no list")
        for found in noted:
            machine_name({"device": found["device"], "hardware": found["hardware"]})
        return noted
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} should say what the run was trained on, but is damaged: {error!r}.\n"
            "  Remove it; the machine that scores is then named."
        ) from error


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


def _command(argv: Sequence[str]) -> str:
    return "rotating-features " + shlex.join(_for_others(argv))


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
