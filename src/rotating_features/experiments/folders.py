"""Folders of runs: made, found, read, and never overwritten."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rotating_features._check import InputError
from rotating_features._files import SUFFIX, replacing
from rotating_features._version import __version__
from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments.config import Experiment, differences, from_dict, to_dict
from rotating_features.models.store import FILE as MODEL_FILE
from rotating_features.train.checkpoint import CONFIG_FILE, TRAINER_FILE, steps_done

MAY_CHANGE = ("train.steps", "train.log", "train.checkpoint", "train.validate", "evaluate.")
"""How settings begin that may be others when a run goes on."""


@dataclass(frozen=True)
class Run:
    """One seed of an experiment, and where it lives."""

    folder: Path
    name: str
    preset: str
    seed: int
    experiment: Experiment

    @property
    def title(self) -> str:
        return f"{self.name}, seed {self.seed}"


def open_runs(
    folder: Path,
    name: str,
    preset: str,
    experiment: Experiment,
    seeds: Iterable[int],
    *,
    resume: bool,
) -> list[Run]:
    """Folders for these seeds, new or to be resumed; if one will not do, nothing is written.

    Seeds of one folder are of one model, for they are summed up.
    """
    others = [read_run(path) for path in find_runs(folder) if path.parent == folder]
    runs = [Run(folder / f"seed-{seed}", name, preset, seed, experiment) for seed in seeds]
    for run in runs:
        if run.folder.exists() and not run.folder.is_dir():
            raise InputError(f"{run.folder} should be a folder for the run, but is a file.")
        if not run.folder.exists() or all(p.name.endswith(SUFFIX) for p in run.folder.iterdir()):
            for other in others[:1]:  # a new seed, or one killed before its first file was whole
                _refuse(f"{other.folder} has", _changes(other, run), "Train with the same")
            continue
        if not resume:
            raise InputError(
                f"The run folder {run.folder} exists already.\n"
                "  Continue it with --resume, or start another one with --name."
            )
        _check_same(run, read_run(run.folder))
    for run in runs:
        settings = {
            "experiment": name,
            "preset": preset,
            "seed": run.seed,
            "version": __version__,
            "settings": to_dict(experiment),
        }
        with replacing(run.folder / CONFIG_FILE) as partial:
            partial.write_text(json.dumps(settings, indent=2) + "\n")
    return runs


def read_run(folder: Path) -> Run:
    """The run that lives in ``folder``, a seed's folder."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise InputError(
            f"{folder} should be the folder of a run, but has no {CONFIG_FILE}.\n"
            "  See: rotating-features list"
        )
    try:
        stored = json.loads(path.read_text())
        experiment = from_dict(stored["settings"])
        return Run(folder, stored["experiment"], stored["preset"], int(stored["seed"]), experiment)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} should be the settings of a run, but is damaged: {error}"
        ) from error


def find_runs(folder: Path) -> list[Path]:
    """Folders of all seeds in ``folder``, which may be a seed's folder itself."""
    if (folder / CONFIG_FILE).is_file():
        return [folder]
    found = [path.parent for path in folder.glob(f"seed-*/{CONFIG_FILE}")]
    numbered = {path: path.name.removeprefix("seed-") for path in found}
    return sorted((p for p, n in numbered.items() if n.isdecimal()), key=lambda p: int(numbered[p]))


def _check_same(run: Run, stored: Run) -> None:
    """A run may be resumed for longer, and logged or scored otherwise, but not as another one."""
    changed = _changes(stored, run)
    if not (run.folder / TRAINER_FILE).exists():
        if (run.folder / MODEL_FILE).exists():
            raise InputError(
                f"{run.folder} has a trained model, but no {TRAINER_FILE} to go on from.\n"
                "  Start another run with --name."
            )
        # Nothing was trained yet, so settings may still change, but not what they are called.
        changed = [change for change in changed if change.startswith(("name ", "preset "))]
    _refuse(f"{run.folder} was started with", changed, "Leave them out to resume it")
    done, train = steps_done(run.folder), run.experiment.train
    wanted, before = train.steps, stored.experiment.train.steps
    if done > wanted:
        raise InputError(f"{run.folder} has done {done} steps, more than the {wanted} asked for.")
    falling = max(0, train.cooldown_steps - 1)  # the first of them has the whole rate yet
    if wanted != before and done > min(wanted, before) - falling:
        raise InputError(
            f"{run.folder} has done {done} of {before} steps, over the last "
            f"{train.cooldown_steps} of which its learning rate falls; another number of steps, "
            f"{wanted}, would have been another run.\n"
            "  Leave --train.steps out to resume it, or start another run with --name."
        )


def _changes(stored: Run, run: Run) -> list[str]:
    """What makes two runs different ones."""
    names = [
        f"{what} {getattr(stored, what)} -> {getattr(run, what)}"
        for what in ("name", "preset")
        if getattr(stored, what) != getattr(run, what)
    ]
    found = differences(stored.experiment, run.experiment)
    guarded = ("data.path",) if stored.experiment.data.dataset in PHOTOGRAPHS else ()  # by a digest
    return names + [change for change in found if not change.startswith(MAY_CHANGE + guarded)]


def _refuse(where: str, changed: list[str], advice: str) -> None:
    if changed:
        raise InputError(
            f"{where} other settings: {', '.join(changed)}.\n"
            f"  {advice}, or start another run with --name."
        )
