"""The paper's tables of photographs as data."""

import dataclasses
from typing import NamedTuple

from rotating_features.experiments import paper as claims
from rotating_features.experiments import photographs
from rotating_features.experiments.config import Experiment, ModelConfig
from rotating_features.experiments.study import Baseline, Case, Study, with_data, with_model

ON_PIXELS = ModelConfig(rotation_dim=10, hidden_dim=64)
PIXELS_SIDE = 64
"""Of rotating features on pixels the paper gives the scores and not the settings."""


PIXEL_SETTINGS = ((16, 32), (16, 64), (16, 128), (32, 32), (32, 64), (64, 32), (64, 64), (128, 32))
"""Sides of images and widths d of the model that are tried, all with n=10."""


SMALL = {"rotation_dim": 8, "hidden_dim": 64}
SMALL_CROPS = 3
SMALL_SCHEDULE = {
    "steps": 12_000,
    "batch_size": 16,
    "lr": 2.5e-3,
    "warmup_steps": 500,
    "cooldown_steps": 3_000,
    "checkpoint_every": 1_000,
    "validate_every": 2_000,
}
"""For a computer without a GPU: a model of half the width, features of so many crops that are made
once, and fewer, smaller and quicker steps."""


FIXED_CROPS = 8
"""Of each photograph, for the full model where the backbone would take most of a step."""


class _Row(NamedTuple):
    """A row of such a table; ``key`` names it, and is the paper's row unless ``claim`` is."""

    label: str
    key: str
    settings: Experiment
    baseline: Baseline | None = None
    claim: str | None = None


def _cases(name: str, base: Experiment, printed: claims.Table) -> tuple[Case, ...]:
    nothing = dataclasses.replace(base, model=ModelConfig())
    complex_base = with_model(base, kind="complex")
    rows = (
        _Row("one label", "one label", nothing, "one label"),
        _Row("blocks", "blocks", nothing, "blocks"),
        _Row("k-means on features", "k-means", base, "k-means"),
        _Row("k-means on features as they are", "k-means as they are", base, "k-means as they are"),
        _Row(
            "rotating features on pixels",
            "pixels",
            _on_pixels(base, PIXELS_SIDE, ON_PIXELS.hidden_dim),
        ),
        *_fresh_and_fixed("complex autoencoder on features", "complex", complex_base),
        *_fresh_and_fixed("rotating features on features", "rotating", base),
        _Row("rotating features on features, small", "small", _small(base)),
    )
    return tuple(
        Case(
            label=row.label,
            slug=f"{name}-{row.key.replace(' ', '-')}",
            experiment=base.data.dataset,
            settings=row.settings,
            paper=printed.get(row.claim or row.key, {}),
            baseline=row.baseline,
        )
        for row in rows
    )


def _fresh_and_fixed(label: str, key: str, settings: Experiment) -> tuple[_Row, _Row]:
    """A row whose backbone looks at new crops in every step, and one where it looks beforehand."""
    fixed = with_data(settings, crops=FIXED_CROPS)
    return (
        _Row(label, key, settings),
        _Row(f"{label}, {FIXED_CROPS} fixed crops", f"{key} fixed crops", fixed, claim=key),
    )


def _on_pixels(base: Experiment, side: int, d: int) -> Experiment:
    """The experiment without a backbone, on images of that side and with a model of that width."""
    model = dataclasses.replace(ON_PIXELS, hidden_dim=d)
    return with_data(dataclasses.replace(base, model=model), side=side)


def _pixel_cases() -> tuple[Case, ...]:
    """Rotating features on pixels, in images and models of several sizes."""
    usual = {(PIXELS_SIDE, ON_PIXELS.hidden_dim): "pascal-pixels"}  # one run with table-pascal
    return tuple(
        Case(
            label=f"{side}x{side} pixels, d={d}",
            slug=usual.get((side, d), f"pascal-pixels-{side}-d{d}"),
            experiment="pascal-voc",
            settings=_on_pixels(photographs.PASCAL_PAPER, side, d),
            paper=claims.PASCAL["pixels"],
        )
        for side, d in PIXEL_SETTINGS
    )


def _small(base: Experiment) -> Experiment:
    """The experiment as a computer without a GPU can do it."""
    small = with_data(with_model(base, **SMALL), crops=SMALL_CROPS)
    return dataclasses.replace(small, train=dataclasses.replace(base.train, **SMALL_SCHEDULE))


PHOTO_STUDIES = {
    "table-pascal": Study(
        title="Objects in photographs: Pascal VOC",
        source="Table 1",
        says="Rotating features beat k-means on the same features, and blocks by far.",
        metrics=("mbo_i", "mbo_c", "ari_bg"),
        protocols=("dinosaur", "spot"),
        cases=_cases("pascal", photographs.PASCAL_PAPER, claims.PASCAL),
    ),
    "table-pascal-pixels": Study(
        title="Objects in photographs: rotating features on pixels of several sizes",
        source="Table 1",
        says="On pixels they find little more than blocks do; at which size is not said.",
        metrics=("mbo_i", "mbo_c", "ari_bg"),
        protocols=("dinosaur", "spot"),
        cases=_pixel_cases(),
    ),
    "table-foodseg": Study(
        title="Objects in photographs: FoodSeg103",
        source="Section 4.3",
        says="Rotating features find ingredients far better than blocks do.",
        metrics=("mbo_c",),
        cases=_cases("foodseg", photographs.FOOD_PAPER, claims.FOODSEG),
    ),
}
