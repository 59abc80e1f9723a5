"""A run's folder: what is in it, and how it survives being killed at any moment."""

import io
import json
import pickle
from pathlib import Path
from typing import Any

import torch

from rotating_features._check import InputError
from rotating_features._files import SUFFIX, replacing
from rotating_features.models.store import FILE as MODEL_FILE
from rotating_features.models.store import save
from rotating_features.train.step import Step

CONFIG_FILE = "config.json"
TRAINER_FILE = "trainer.pt"
METRICS_FILE = "metrics.jsonl"
SCORES_FILE = "scores.csv"
FORMAT = "rotating_features/trainer/2"
UNREADABLE = (
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
    pickle.UnpicklingError,
)
"""What torch.load raises on files that are cut short, foreign or hostile."""


def save_checkpoint(folder: Path, step: Step, done: int, *, data: str = "") -> None:
    """Write the state after ``done`` steps: ``model.safetensors`` to use, ``trainer.pt`` to go on.

    The trainer's file has its own copy of the weights, so the two need not be of the same moment.
    ``data`` stands for what was trained on, where the run's settings do not tell. Scores in the
    folder were of a model less trained, so they go.
    """
    state = {"format": FORMAT, "step": done, "data": data, **step.state_dict()}
    content = io.BytesIO()  # so that a full disk is an OSError, not one of torch's own
    torch.save(state, content)
    coming = folder / (MODEL_FILE + SUFFIX)  # there until the model is the trainer's
    save(step.model, coming)
    with replacing(folder / TRAINER_FILE) as partial:
        partial.write_bytes(content.getbuffer())
    (folder / SCORES_FILE).unlink(missing_ok=True)
    coming.replace(folder / MODEL_FILE)


def load_checkpoint(folder: Path, step: Step, *, data: str = "") -> int:
    """Put ``step`` back to where the run stopped; the steps done, 0 without a checkpoint.

    It should have been trained on the same ``data``.
    """
    path = folder / TRAINER_FILE
    if not path.exists():
        _clear(folder)
        return 0
    try:
        state = torch.load(path, map_location=step.device, weights_only=True)
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        step.load_state_dict(state)
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} should be a checkpoint of this run, but cannot be used: {reason}.\n"
            "  It may be cut short or from another model. Start anew under another --name."
        ) from error
    if state.get("data", data) != data:
        raise InputError(
            f"{folder} was trained on other photographs, on another number of crops of each, or on "
            "features of other weights.\n"
            "  Put back what was there, or start another run with --name."
        )
    if _is_torn(folder):
        (folder / SCORES_FILE).unlink(missing_ok=True)
        save(step.model, folder / MODEL_FILE)
    _clear(folder)
    return int(state["step"])


def _is_torn(folder: Path) -> bool:
    """Whether a kill came between the trainer's file and its model."""
    return (folder / (MODEL_FILE + SUFFIX)).exists() or not (folder / MODEL_FILE).exists()


def _clear(folder: Path) -> None:
    """Remove what a kill has left half written."""
    for left_over in folder.glob(f"*{SUFFIX}"):
        left_over.unlink()


def steps_done(folder: Path) -> int:
    """Steps of the run's last checkpoint, 0 if there is none."""
    path = folder / TRAINER_FILE
    if not path.exists():
        return 0
    try:
        return int(torch.load(path, map_location="cpu", weights_only=True, mmap=True)["step"])
    except UNREADABLE:
        return 0


def is_finished(folder: Path, steps: int) -> bool:
    """Whether the run has done its steps, and the model to use is of the last of them."""
    return steps_done(folder) >= steps and not _is_torn(folder)


def read_metrics(folder: Path, *, up_to: int | None = None) -> list[dict[str, Any]]:
    """Lines of the JSON log, without what a kill cut short and without steps after ``up_to``."""
    path = folder / METRICS_FILE
    rows = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if up_to is None or row["step"] <= up_to:
            rows.append(row)
    return rows
