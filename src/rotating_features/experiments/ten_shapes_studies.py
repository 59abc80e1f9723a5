"""The paper's studies of 10Shapes, and of fewer of its shapes."""

import dataclasses

from rotating_features.experiments import paper as claims
from rotating_features.experiments import ten_shapes
from rotating_features.experiments.config import Experiment
from rotating_features.experiments.study import (
    Case,
    Study,
    Trial,
    reading,
    small_rings,
    with_data,
    with_model,
)


def _ten_shapes(n: int) -> Case:
    return Case(
        label=f"n={n}",
        slug=f"10shapes-n{n}",
        experiment="10shapes",
        settings=with_model(ten_shapes.PAPER, rotation_dim=n),
        paper=claims.TEN_SHAPES[n],
        x=n,
    )


TABLE_10SHAPES = Study(
    title="10Shapes: ten objects at once",
    source="Figure 5, Table 11",
    says="Ten rotation dimensions hold ten objects apart, two do not.",
    cases=(_ten_shapes(2), _ten_shapes(10)),
)


TABLE_10SHAPES_READINGS = Study(
    title="10Shapes after other readings of its description",
    source="Figure 5, Table 11",
    says="Ten rotation dimensions hold ten objects apart, two do not.",
    cases=(
        *(
            dataclasses.replace(
                small_rings(_ten_shapes(n)), label=f"n={n}, rings 11 and 19 pixels across"
            )
            for n in (2, 10)
        ),
        dataclasses.replace(
            reading(_ten_shapes(10), "depths-above-0", depth_from_zero=False),
            label="n=10, no object at the background's depth",
        ),
    ),
)


def _n_shapes(n: int, shapes: int) -> Case:
    if shapes == 10:
        return dataclasses.replace(_ten_shapes(n), label="10 objects", x=10, group=f"n={n}")
    return Case(
        label=f"{shapes} objects",
        slug=f"{shapes}-of-10shapes-n{n}",
        experiment="nshapes",
        settings=ten_shapes.of_shapes(ten_shapes.PAPER, shapes, n),
        x=shapes,
        group=f"n={n}",
    )


FIGURE_NSHAPES = Study(
    title="Rotation dimension against the number of objects",
    source="Figure 14",
    says="With two dimensions the score falls with every object; with ten it stays high.",
    axis="objects in every image",
    cases=(
        *(_n_shapes(n, shapes) for n in (2, 10) for shapes in range(2, 11)),
        *(
            dataclasses.replace(small_rings(_n_shapes(n, shapes)), group=f"n={n}, small rings")
            for n in (2, 10)
            for shapes in range(4, 11)  # fewer have no ring
        ),
    ),
)


def _generalization(label: str, slug: str, settings: Experiment) -> Case:
    evaluate = dataclasses.replace(settings.evaluate, images=500)
    trials = []
    for objects in range(2, 11):
        data = dataclasses.replace(settings.data, objects=objects)
        ways = {
            "k-means, number of objects known": dataclasses.replace(evaluate, k=objects + 1),
            "k-means, k as in training": evaluate,
            "agglomerative": dataclasses.replace(evaluate, cluster="agglomerative"),
        }
        trials += [
            Trial(label=way, evaluate=how, data=data, x=objects) for way, how in ways.items()
        ]
    return Case(
        label=label, slug=slug, experiment="six-of-ten", settings=settings, trials=tuple(trials)
    )


FIGURE_GENERALIZATION = Study(
    title="Trained on six objects, tested on two to ten",
    source="Figure 9",
    says="Agglomerative clustering keeps its score when the number of objects is unknown.",
    metrics=("ari_bg", "mbo_i"),
    axis="objects in a test image",
    cases=(
        _generalization("rotating features, n=10", "six-of-ten", ten_shapes.SIX_PAPER),
        _generalization(
            "rotating features, n=10, small rings",
            "six-of-ten-rings11",
            with_data(ten_shapes.SIX_PAPER, ring_diameter=11),
        ),
    ),
)
