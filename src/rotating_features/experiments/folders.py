"""Folders of runs: made, found, read, and never overwritten."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from rotating_features._check import InputError
from rotating_features._files import SUFFIX, replacing
from rotating_features._lock import locked
from rotating_features._version import __version__
from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments.config import Experiment, differences, from_dict, to_dict
from rotating_features.models.store import FILE as MODEL_FILE
from rotating_features.train.checkpoint import CONFIG_FILE, TRAINER_FILE, steps_done

MAY_CHANGE = ("train.steps", "train.log", "train.checkpoint", "train.validate", "evaluate.")
"""How settings begin that may be others when a run goes on."""
MAY_DIFFER = ("train.compile", "train.log", "train.checkpoint", "train.validate", "evaluate.")
"""And those in which seeds that are summed up may differ."""
ANOTHER = "begin another run with another --name, or elsewhere with --runs"


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


def check_writable(folder: Path) -> None:
    """Make the folder; raise ``InputError``, before long work, if nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{folder} should be a folder that can be written, but is not: {error.strerror}.\n"
            "  Choose another --out."
        ) from error


@contextmanager
def open_runs(
    folder: Path,
    name: str,
    preset: str,
    experiment: Experiment,
    seeds: Iterable[int],
    *,
    resume: bool,
) -> Iterator[list[Run]]:
    """Folders for these seeds, new or to be resumed; if one will not do, nothing is written.

    Nobody else writes to them meanwhile. Seeds of one folder are of one model, for they are summed
    up.
    """
    runs = [Run(folder / f"seed-{seed}", name, preset, seed, experiment) for seed in seeds]
    _check_runs(runs, resume=resume)
    with locked(run.folder for run in runs):
        _check_runs(runs, resume=resume)  # somebody may have been there since
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
        yield runs


def _check_runs(runs: list[Run], *, resume: bool) -> None:
    mine = {run.folder for run in runs}
    there = [path for path in find_runs(runs[0].folder.parent) if path not in mine]
    for run in runs:
        if run.folder.exists() and not run.folder.is_dir():
            raise InputError(f"{run.folder} should be a folder for the run, but is a file.")
        if not run.folder.exists() or all(p.name.endswith(SUFFIX) for p in run.folder.iterdir()):
            if there:  # new, or killed before its first file was whole
                _check_sibling(run, read_run(there[0]))
            continue
        if not resume:
            raise InputError(
                f"The run folder {run.folder} exists already.\n"
                f"  Continue it with --resume, or {ANOTHER}."
            )
        _check_same(run, read_run(run.folder))


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


def _check_sibling(run: Run, other: Run) -> None:
    """Another seed is of the same model, trained as long and on the same images."""
    found = differences(other.experiment, run.experiment)
    changed = _names(other, run) + [c for c in found if not c.startswith(MAY_DIFFER)]
    if changed:
        raise InputError(
            f"{other.folder} has other settings: {', '.join(changed)}.\n"
            f"  Take them over with --resume and --seeds, or {ANOTHER}."
        )


def _check_same(run: Run, stored: Run) -> None:
    """A run may be resumed for longer, and logged or scored otherwise, but not as another one."""
    done, train = steps_done(run.folder), run.experiment.train
    wanted, before = train.steps, stored.experiment.train.steps
    changed = _names(stored, run)
    if (run.folder / TRAINER_FILE).exists():
        may = MAY_CHANGE
        if stored.experiment.data.dataset in PHOTOGRAPHS and done < wanted:
            may += ("data.path",)  # whoever trains on looks whether they are the same photographs
        found = differences(stored.experiment, run.experiment)
        changed += [change for change in found if not change.startswith(may)]
    elif (run.folder / MODEL_FILE).exists():
        raise InputError(
            f"{run.folder} has a trained model, but no {TRAINER_FILE} to go on from.\n"
            f"  {ANOTHER.capitalize()}."
        )
    # Else nothing was trained yet, so settings may still change, but not what they are called.
    if changed:
        raise InputError(
            f"{run.folder} was started with other settings: {', '.join(changed)}.\n"
            f"  Leave them out to resume it, or {ANOTHER}."
        )
    if done > wanted:
        raise InputError(f"{run.folder} has done {done} steps, more than the {wanted} asked for.")
    falling = max(0, train.cooldown_steps - 1)  # the first of them has the whole rate yet
    if wanted != before and done > min(wanted, before) - falling:
        raise InputError(
            f"{run.folder} has done {done} of {before} steps, over the last "
            f"{train.cooldown_steps} of which its learning rate falls; another number of steps, "
            f"{wanted}, would have been another run.\n"
            f"  Leave --train.steps out to resume it, or {ANOTHER}."
        )


def _names(stored: Run, run: Run) -> list[str]:
    return [
        f"{what} {getattr(stored, what)} -> {getattr(run, what)}"
        for what in ("name", "preset")
        if getattr(stored, what) != getattr(run, what)
    ]
