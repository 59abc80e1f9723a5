"""The paper's studies as data: every table and figure that consists of trained models."""

import dataclasses
from collections.abc import Mapping

from rotating_features.experiments import (
    colored_shapes,
    four_shapes,
    mnist_shapes,
    sprites,
    ten_shapes,
)
from rotating_features.experiments import paper as claims
from rotating_features.experiments.config import Experiment, ModelConfig, ModelKind
from rotating_features.experiments.paper import Claim
from rotating_features.experiments.photo_studies import PHOTO_STUDIES
from rotating_features.experiments.study import Case, Study, Trial


def _with_model(settings: Experiment, **changes: object) -> Experiment:
    return dataclasses.replace(settings, model=dataclasses.replace(settings.model, **changes))


def _unclipped(settings: Experiment) -> Experiment:
    return dataclasses.replace(settings, train=dataclasses.replace(settings.train, grad_clip=None))


def _four_shapes(n: int, group: str = "") -> Case:
    return Case(
        label=f"n={n}",
        slug=f"4shapes-n{n}",
        experiment="4shapes",
        settings=_with_model(four_shapes.PAPER, rotation_dim=n),
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
        settings=_with_model(four_shapes.PAPER, kind=kind),
        paper=paper,
    )


_STANDARD = _baseline("standard", "AE", claims.FOUR_SHAPES_STANDARD)
_COMPLEX = _baseline("complex", "CAE", claims.FOUR_SHAPES_COMPLEX)

TABLE_4SHAPES = Study(
    title="4Shapes: standard, complex and rotating features",
    source="Figure 4, Table 9",
    says="More rotation dimensions separate more objects and reconstruct better.",
    axis="rotation dimension n",
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


def _reading(case: Case, slug: str, **data: object) -> Case:
    """The case on images drawn after another reading of the paper's words."""
    settings = dataclasses.replace(
        case.settings, data=dataclasses.replace(case.settings.data, **data)
    )
    return dataclasses.replace(case, slug=f"{case.slug}-{slug}", settings=settings)


def _small_rings(case: Case) -> Case:
    return _reading(case, "rings11", ring_diameter=11)


TABLE_4SHAPES_READINGS = Study(
    title="4Shapes with a ring 11 pixels across",
    source="Figure 4, Table 9",
    says="More rotation dimensions separate more objects and reconstruct better.",
    cases=tuple(
        _small_rings(case) for case in (_STANDARD, _COMPLEX, _four_shapes(2), _four_shapes(8))
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


def _ten_shapes(n: int) -> Case:
    return Case(
        label=f"n={n}",
        slug=f"10shapes-n{n}",
        experiment="10shapes",
        settings=_with_model(ten_shapes.PAPER, rotation_dim=n),
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
                _small_rings(_ten_shapes(n)), label=f"n={n}, rings 11 and 19 pixels across"
            )
            for n in (2, 10)
        ),
        dataclasses.replace(
            _reading(_ten_shapes(10), "depths-above-0", depth_from_zero=False),
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
            dataclasses.replace(_small_rings(_n_shapes(n, shapes)), group=f"n={n}, small rings")
            for n in (2, 10)
            for shapes in range(4, 11)  # fewer have no ring
        ),
    ),
)


def _generalization() -> Case:
    settings = ten_shapes.SIX_PAPER
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
        label="rotating features, n=10",
        slug="six-of-ten",
        experiment="six-of-ten",
        settings=settings,
        trials=tuple(trials),
    )


FIGURE_GENERALIZATION = Study(
    title="Trained on six objects, tested on two to ten",
    source="Figure 9",
    says="Agglomerative clustering keeps its score when the number of objects is unknown.",
    axis="objects in a test image",
    cases=(_generalization(),),
)


def _sprites(dataset: str, settings: Experiment, kind: str, label: str) -> Case:
    printed = {"multi-dsprites": claims.MULTI_DSPRITES, "clevr": claims.CLEVR}
    return Case(
        label=f"{label}, {'CAE*' if kind == 'complex' else 'rotating features'}",
        slug=f"{dataset}-{kind}",
        experiment=dataset,
        settings=_with_model(settings, kind=kind),
        paper=printed[dataset][kind],
        group=label,
    )


TABLE_DSPRITES_CLEVR = Study(
    title="Multi-dSprites, drawn by us unless --path has DeepMind's, and CLEVR",
    source="Table 8",
    says="Rotating features separate what the complex autoencoder does not.",
    cases=tuple(
        _sprites(dataset, settings, kind, label)
        for dataset, settings, label in (
            ("multi-dsprites", sprites.DSPRITES_PAPER, "Multi-dSprites (drawn)"),
            ("clevr", sprites.CLEVR_PAPER, "CLEVR"),
        )
        for kind in ("complex", "rotating")
    ),
)

TABLE_WSSS = Study(
    title="Weakly supervised semantic segmentation",
    source="Table 6",
    says="One shape beside a digit is labelled well without any pixel's label; two are not.",
    metrics=("iou", "iou_random", "ari_bg", "accuracy"),
    cases=tuple(
        Case(
            label=f"MNIST{shapes}Shape",
            slug=f"mnist{shapes}shape",
            experiment=f"mnist{shapes}shape",
            settings=settings,
            paper=claims.MNIST_SHAPES[shapes],
            trials=(
                Trial(
                    label="the digit's grey edge belongs to it",
                    evaluate=settings.evaluate,
                    data=dataclasses.replace(settings.data, digit_edge=True),
                ),
            ),
        )
        for shapes, settings in ((1, mnist_shapes.ONE_PAPER), (2, mnist_shapes.TWO_PAPER))
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
    ),
)

FIGURE_UNCERTAINTY = Study(
    title="Uncertainty: how far each pixel is from its cluster's centre",
    source="Figure 8",
    says="Uncertain are overlaps, borders and mistakes.",
    pictures="uncertainty",
    cases=(_four_shapes(8),),
)


def sweep(case: Case) -> Case:
    """The case with trials over k and over the distance threshold."""
    base = dataclasses.replace(case.settings.evaluate, images=2_000)
    usual = 5 if base.k == "auto" else base.k
    thresholds = [
        dataclasses.replace(base, cluster="agglomerative", distance_threshold=t)
        for t in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0)
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

STUDIES = {
    "table-4shapes": TABLE_4SHAPES,
    "table-4shapes-readings": TABLE_4SHAPES_READINGS,
    "table-4shapes-rgbd": TABLE_4SHAPES_RGBD,
    "table-10shapes": TABLE_10SHAPES,
    "table-10shapes-readings": TABLE_10SHAPES_READINGS,
    "figure-nshapes": FIGURE_NSHAPES,
    "figure-generalization": FIGURE_GENERALIZATION,
    "table-dsprites-clevr": TABLE_DSPRITES_CLEVR,
    "table-wsss": TABLE_WSSS,
    "ablation-binding": ABLATION_BINDING,
    "figure-uncertainty": FIGURE_UNCERTAINTY,
    "figure-clustering": FIGURE_CLUSTERING,
    **PHOTO_STUDIES,
}
