"""Folders of runs: made, found, read, and never overwritten."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rotating_features._check import InputError
from rotating_features._files import SUFFIX, replacing
from rotating_features._version import __version__
from rotating_features.experiments.config import Experiment, differences, from_dict, to_dict
from rotating_features.train.checkpoint import CONFIG_FILE, TRAINER_FILE, steps_done


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
    """Folders for these seeds, new or to be resumed; if one will not do, nothing is written."""
    runs = [Run(folder / f"seed-{seed}", name, preset, seed, experiment) for seed in seeds]
    for run in runs:
        if run.folder.exists() and not run.folder.is_dir():
            raise InputError(f"{run.folder} should be a folder for the run, but is a file.")
        if not run.folder.exists() or all(p.name.endswith(SUFFIX) for p in run.folder.iterdir()):
            continue  # new, or killed before its first file was whole
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
    if not (run.folder / TRAINER_FILE).exists():
        return  # nothing was trained yet, so nothing can disagree with it
    may_change = ("train.steps", "train.log", "train.checkpoint", "train.validate", "evaluate.")
    changed = [
        change
        for change in differences(stored.experiment, run.experiment)
        if not change.startswith(may_change)
    ]
    for what in ("name", "preset"):
        if getattr(stored, what) != getattr(run, what):
            changed.insert(0, f"{what} {getattr(stored, what)} -> {getattr(run, what)}")
    if changed:
        raise InputError(
            f"{run.folder} was started with other settings: {', '.join(changed)}.\n"
            "  Leave them out to resume it, or start another run with --name."
        )
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
