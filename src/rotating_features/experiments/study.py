"""What a table or figure of the paper consists of."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rotating_features._check import InputError
from rotating_features.experiments.config import DataConfig, EvaluateConfig, Experiment
from rotating_features.experiments.paper import Claim

Baseline = Literal["one label", "blocks", "k-means", "k-means as they are"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Another way to score the models of a case, perhaps on other images."""

    label: str
    evaluate: EvaluateConfig
    data: DataConfig | None = None  # the case's own if None
    x: float | None = None  # where it stands on a figure's axis


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of a table: models of one kind, trained on one dataset with several seeds."""

    label: str
    slug: str
    """Name of its run; studies that name the same run share it."""
    experiment: str
    settings: Experiment
    paper: Mapping[str, Claim] = field(default_factory=dict[str, Claim])
    trials: tuple[Trial, ...] = ()
    x: float | None = None
    """Where it stands on a figure's axis."""
    group: str = ""
    """Its line in a figure, its part of a table."""
    baseline: Baseline | None = None
    """What is scored in place of a model; nothing is trained."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table or figure: what is run, and how it is shown."""

    title: str
    source: str
    """Where it stands in the paper."""
    cases: tuple[Case, ...]
    metrics: tuple[str, ...] = ("ari_bg", "mbo_i", "mse")
    axis: str = ""
    """What a figure's x axis counts; no figure if empty."""
    panels: Literal["metrics", "trials"] = "metrics"
    """A panel for each metric, or one for each kind of trial with a line for each metric."""
    pictures: Literal["objects", "uncertainty", "reconstruction"] = "objects"
    """What a picture shows of each model: objects, and one of the others beside them."""
    protocols: tuple[str, ...] = ()
    """Other projects' ways to score photographs, shown in a table of their own."""
    says: str = ""
    """What the paper finds in it."""


def with_model(settings: Experiment, **changes: object) -> Experiment:
    """The settings with another model."""
    return dataclasses.replace(settings, model=dataclasses.replace(settings.model, **changes))


def with_data(settings: Experiment, **changes: object) -> Experiment:
    """The settings with other images."""
    return dataclasses.replace(settings, data=dataclasses.replace(settings.data, **changes))


def with_train(settings: Experiment, **changes: object) -> Experiment:
    """The settings with another schedule."""
    return dataclasses.replace(settings, train=dataclasses.replace(settings.train, **changes))


def reading(case: Case, slug: str, **data: object) -> Case:
    """The case on images drawn after another reading of the paper's words."""
    return dataclasses.replace(
        case, slug=f"{case.slug}-{slug}", settings=with_data(case.settings, **data)
    )


def small_rings(case: Case) -> Case:
    """The case with the smaller reading of its rings."""
    return reading(case, "rings11", ring_diameter=11)


def scaled(settings: Experiment, scale: float) -> Experiment:
    """The experiment with a shorter schedule.

    The warm-up keeps its length up to half of the steps: it is there for the start, which is as
    steep in a short schedule as in a long one. The cool-down keeps its share.
    """
    if not 0 < scale <= 1:
        raise InputError(f"scale should be above 0 and at most 1, got {scale}.")
    t = settings.train
    steps = max(1, round(t.steps * scale))
    return dataclasses.replace(
        settings,
        train=dataclasses.replace(
            t,
            steps=steps,
            warmup_steps=min(t.warmup_steps, steps // 2),
            cooldown_steps=round(t.cooldown_steps * scale),
            checkpoint_every=max(1, round(t.checkpoint_every * scale)),
            validate_every=max(1, round(t.validate_every * scale)),
        ),
    )
