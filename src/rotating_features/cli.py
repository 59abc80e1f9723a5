"""The command line: which command, and what to say when it fails."""

import errno
import sys
from collections.abc import Callable, Sequence

import torch

from rotating_features._check import InputError
from rotating_features._version import __version__
from rotating_features.commands.bench import bench_command
from rotating_features.commands.data import data_command
from rotating_features.commands.evaluate import evaluate_command, list_command
from rotating_features.commands.reproduce import reproduce_command
from rotating_features.commands.screen import PROG, complain, console, unknown
from rotating_features.commands.segment import segment_command
from rotating_features.commands.train import train_command
from rotating_features.machine import tune_cpu
from rotating_features.train import Interrupted

COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "train": (train_command, "train a model, score it and draw what it sees"),
    "evaluate": (evaluate_command, "score a run again, perhaps in another way"),
    "segment": (segment_command, "write object masks for image files"),
    "list": (list_command, "show experiments, protocols and runs"),
    "reproduce": (reproduce_command, "a table or figure of the paper, beside its own"),
    "data": (data_command, "write a dataset to files"),
    "bench": (bench_command, "time each thing against its peer"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. A user's mistake gives two lines and status 2."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        if not argv or argv[0] in ("-h", "--help"):
            return _help()
        if argv[0] == "--version":
            console.print(f"{PROG} {__version__}")
            return 0
        if argv[0] not in COMMANDS:
            raise InputError(unknown("command", argv[0], COMMANDS))
        tune_cpu()  # before any other thread exists, so that all of them inherit it
        return COMMANDS[argv[0]][0](argv[1:])
    except InputError as error:
        complain(str(error))
        return 2
    except Interrupted as stop:
        how = "Go on with --resume." if argv[0] == "train" else "The same command goes on."
        console.print(f"Stopped after {stop.done:,} steps, all of them saved. {how}")
        return 130
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    except torch.OutOfMemoryError as error:
        complain(
            f"The memory of the device is full: {str(error).splitlines()[0]}\n"
            "  Take fewer at once, a smaller batch or fewer seeds, or another --device. "
            "What was written before is intact."
        )
        return 2
    except OSError as error:
        complain(_disk_trouble(error))
        return 2


def _disk_trouble(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    advice = {
        errno.ENOSPC: "Free some space, then run the command again (with --resume for a run).",
        errno.EROFS: "The disk is read-only: choose a folder that can be written.",
        errno.EACCES: "Choose a folder that you may write.",
    }.get(error.errno or 0, "")
    tail = f"\n  {advice} What was written before is intact." if advice else ""
    return f"Cannot read or write{where}: {error.strerror or error}.{tail}"


def _help() -> int:
    console.print(f"{PROG} {__version__}: objects in images, found without labels.\n")
    for name, (_, summary) in COMMANDS.items():
        console.print(f"  {PROG} {name:<9} {summary}")
    console.print(f"\nEach has --help. To start: {PROG} train 4shapes")
    return 0
