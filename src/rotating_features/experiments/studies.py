"""The paper's studies as data: every table and figure that consists of trained models."""

import dataclasses

from rotating_features.experiments import four_shapes_studies as four
from rotating_features.experiments import mnist_shapes, sprites
from rotating_features.experiments import paper as claims
from rotating_features.experiments import ten_shapes_studies as ten
from rotating_features.experiments.config import Experiment, ModelKind
from rotating_features.experiments.photo_studies import PHOTO_STUDIES
from rotating_features.experiments.study import Case, Study, Trial, with_data, with_model

KINDS: dict[ModelKind, str] = {"complex": "CAE*", "rotating": "rotating features"}


def _sprites(
    slug: str, settings: Experiment, printed: claims.Table, label: str
) -> tuple[Case, ...]:
    return tuple(
        Case(
            label=f"{label}, {features}",
            slug=f"{slug}-{kind}",
            experiment=settings.data.dataset,
            settings=with_model(settings, kind=kind),
            paper=printed[kind],
            group=label,
        )
        for kind, features in KINDS.items()
    )


TABLE_DSPRITES_CLEVR = Study(
    title="Multi-dSprites, drawn by us and as published, and CLEVR",
    source="Table 8",
    says="Rotating features separate what the complex autoencoder does not.",
    cases=(
        *_sprites(
            "multi-dsprites",
            sprites.DSPRITES_PAPER,
            claims.MULTI_DSPRITES,
            "Multi-dSprites (drawn)",
        ),
        *_sprites(
            "multi-dsprites-published",
            with_data(sprites.DSPRITES_PAPER, path="data/multi-dsprites"),
            claims.MULTI_DSPRITES,
            "Multi-dSprites",
        ),
        *_sprites("clevr", sprites.CLEVR_PAPER, claims.CLEVR, "CLEVR"),
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

STUDIES = {
    "table-4shapes": four.TABLE_4SHAPES,
    "table-4shapes-readings": four.TABLE_4SHAPES_READINGS,
    "table-4shapes-rgbd": four.TABLE_4SHAPES_RGBD,
    "table-4shapes-rgbd-readings": four.TABLE_4SHAPES_RGBD_READINGS,
    "table-10shapes": ten.TABLE_10SHAPES,
    "table-10shapes-readings": ten.TABLE_10SHAPES_READINGS,
    "figure-nshapes": ten.FIGURE_NSHAPES,
    "figure-generalization": ten.FIGURE_GENERALIZATION,
    "table-dsprites-clevr": TABLE_DSPRITES_CLEVR,
    "table-wsss": TABLE_WSSS,
    "ablation-binding": four.ABLATION_BINDING,
    "figure-uncertainty": four.FIGURE_UNCERTAINTY,
    "figure-clustering": four.FIGURE_CLUSTERING,
    **PHOTO_STUDIES,
}
