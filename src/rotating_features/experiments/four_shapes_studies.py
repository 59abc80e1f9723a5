"""The paper's studies of 4Shapes, white and in colour."""

import dataclasses
from collections.abc import Mapping

from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments import colored_shapes, four_shapes
from rotating_features.experiments import paper as claims
from rotating_features.experiments.config import Experiment, ModelConfig, ModelKind
from rotating_features.experiments.paper import Claim
from rotating_features.experiments.study import (
    Case,
    Study,
    Trial,
    reading,
    small_rings,
    with_model,
    with_train,
)


def _unclipped(settings: Experiment) -> Experiment:
    return with_train(settings, grad_clip=None)


def _four_shapes(n: int, group: str = "") -> Case:
    return Case(
        label=f"n={n}",
        slug=f"4shapes-n{n}",
        experiment="4shapes",
        settings=with_model(four_shapes.PAPER, rotation_dim=n),
        paper=claims.FOUR_SHAPES[n],
        x=n,
        group=group,
    )


def _baseline(kind: ModelKind, label: str, paper: Mapping[str, Claim]) -> Case:
    """Another kind of features on 4Shapes, trained as the rotating ones."""
    return Case(
        label=label,
        slug=f"4shapes-{kind}",
        experiment="4shapes",
        settings=with_model(four_shapes.PAPER, kind=kind),
        paper=paper,
    )


_STANDARD = _baseline("standard", "AE", claims.FOUR_SHAPES_STANDARD)
_COMPLEX = _baseline("complex", "CAE", claims.FOUR_SHAPES_COMPLEX)

TABLE_4SHAPES = Study(
    title="4Shapes: standard, complex and rotating features",
    source="Figure 4, Table 9",
    says="More rotation dimensions separate more objects and reconstruct better.",
    axis="rotation dimension n",
    pictures="reconstruction",
    cases=(
        _STANDARD,
        _COMPLEX,
        dataclasses.replace(
            _COMPLEX,
            label="CAE, unclipped",  # its gradients, as in its own code
            slug="4shapes-complex-unclipped",
            settings=_unclipped(_COMPLEX.settings),
        ),
        *(_four_shapes(n, group="rotating features") for n in range(2, 9)),
    ),
)


TABLE_4SHAPES_READINGS = Study(
    title="4Shapes with a ring 11 pixels across",
    source="Figure 4, Table 9",
    says="More rotation dimensions separate more objects and reconstruct better.",
    cases=tuple(
        small_rings(case) for case in (_STANDARD, _COMPLEX, _four_shapes(2), _four_shapes(8))
    ),
)


def _colored(depth: bool, colors: int) -> Case:
    kind, base, table = (
        ("rgbd", colored_shapes.RGBD_PAPER, claims.FOUR_SHAPES_RGBD)
        if depth
        else ("rgb", colored_shapes.RGB_PAPER, claims.FOUR_SHAPES_RGB)
    )
    return Case(
        label=f"{'RGB-D' if depth else 'RGB'}, {colors} colour{'s'[: colors > 1]}",
        slug=f"4shapes-{kind}-{colors}",
        experiment=f"4shapes-{kind}",
        settings=dataclasses.replace(base, data=dataclasses.replace(base.data, colors=colors)),
        paper=table[colors],
        x=colors,
        group="RGB-D" if depth else "RGB",
    )


TABLE_4SHAPES_RGBD = Study(
    title="4Shapes in colour, without and with depth",
    source="Figure 6, Table 10",
    says="More colours make objects harder to separate; depth repairs that.",
    axis="colours",
    cases=tuple(_colored(depth, colors) for depth in (False, True) for colors in range(1, 6)),
)


def _colored_readings(depth: bool, colors: int) -> tuple[Case, ...]:
    case = _colored(depth, colors)
    readings: dict[str, tuple[str, dict[str, object]]] = {
        "rings11": ("ring 11 pixels across", {"ring_diameter": 11}),
        "hues-of-images": ("hues of each image's own", {"hue_offset": "image"}),
    }
    if depth:
        readings["depths-above-0"] = ("none at the background's depth", {"depth_from_zero": False})
    return tuple(
        dataclasses.replace(reading(case, slug, **data), label=f"{case.label}, {label}", x=None)
        for slug, (label, data) in readings.items()
    )


TABLE_4SHAPES_RGBD_READINGS = Study(
    title="4Shapes in colour after other readings of its description",
    source="Figure 6, Table 10",
    says="More colours make objects harder to separate; depth repairs that.",
    cases=(
        *_colored_readings(False, 5),
        *_colored_readings(True, 2),
        *_colored_readings(True, 5),
    ),
)


ABLATION_BINDING = Study(
    title="4Shapes without the binding mechanism",
    source="Appendix D.3",
    says="Without binding nothing is separated.",
    cases=(
        dataclasses.replace(_four_shapes(8), label="with binding"),
        Case(
            label="without binding",
            slug="4shapes-without-binding",
            experiment="4shapes",
            settings=dataclasses.replace(four_shapes.PAPER, model=ModelConfig(binding=False)),
            paper=claims.FOUR_SHAPES_WITHOUT_BINDING[8],
        ),
        Case(
            label="without binding, the bias only turns",
            slug="4shapes-without-binding-turning",
            experiment="4shapes",
            settings=dataclasses.replace(
                four_shapes.PAPER, model=ModelConfig(binding=False, bias_in_magnitude=False)
            ),
            paper=claims.FOUR_SHAPES_WITHOUT_BINDING[8],
        ),
    ),
)

FIGURE_UNCERTAINTY = Study(
    title="Uncertainty: how far each pixel is from its cluster's centre",
    source="Figure 8",
    says="Uncertain are overlaps, borders and mistakes.",
    pictures="uncertainty",
    cases=(_four_shapes(8),),
)


DISTANCES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0)
DISTANCES_ON_PHOTOGRAPHS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0)
"""Shorter, since a backbone's grid has fewer places than a drawn image has pixels."""


def sweep(case: Case) -> Case:
    """The case with trials over k and over the distance threshold."""
    on_photographs = case.settings.data.dataset in PHOTOGRAPHS
    base = dataclasses.replace(case.settings.evaluate, images=2_000)
    usual = 5 if base.k == "auto" else base.k
    thresholds = [
        dataclasses.replace(base, cluster="agglomerative", distance_threshold=t)
        for t in (DISTANCES_ON_PHOTOGRAPHS if on_photographs else DISTANCES)
    ]
    trials = [
        Trial(label="k of k-means", x=k, evaluate=dataclasses.replace(base, cluster="kmeans", k=k))
        for k in range(2, usual + 6)
    ]
    trials += [
        Trial(label="distance threshold of Ward", evaluate=e, x=e.distance_threshold)
        for e in thresholds
    ]
    return dataclasses.replace(case, trials=tuple(trials))


FIGURE_CLUSTERING = Study(
    title="Ways of clustering after training",
    source="Figure 7, there on Pascal VOC",
    says="k and the distance threshold can be chosen after training.",
    metrics=("ari_bg", "mbo_i", "mbo_c"),
    axis="k, or the distance threshold",
    panels="trials",
    cases=(sweep(_four_shapes(8)),),
)
