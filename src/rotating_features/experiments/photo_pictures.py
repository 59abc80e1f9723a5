"""Pictures of runs on photographs: what models find in a few of them."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.photographs import Photograph, Photographs
from rotating_features.data.sample import IGNORE
from rotating_features.evaluate.photo_protocols import PHOTO_PROTOCOLS, prepare_image
from rotating_features.evaluate.photographs import prepare_masks
from rotating_features.experiments.config import DataConfig, EvaluateConfig
from rotating_features.experiments.photo_run import open_photographs
from rotating_features.experiments.photo_scores import predictor
from rotating_features.models import Model
from rotating_features.plots.colors import color_image, color_labels
from rotating_features.plots.grid import match_colors, sheet

COLUMNS = 8
SHOWN = 224


@torch.no_grad()
def photo_sheet(
    models: Mapping[str, Model], data: DataConfig, settings: EvaluateConfig, title: str
) -> Figure:
    """The first test photographs, their objects if these are known, and what each model finds.

    A photograph is shown as the first protocol crops it, and labels as it scores them.
    """
    photographs = open_photographs(data, "test")
    protocol = PHOTO_PROTOCOLS[settings.protocols[0]]
    sides = dict.fromkeys([SHOWN, *(model.size[0] for model in models.values())])

    def make_small(photograph: Photograph) -> tuple[list[Tensor], tuple[Tensor, Tensor]]:
        made = [prepare_image(photograph.image, protocol.at(side)) for side in sides]
        return made, prepare_masks(photograph, protocol)

    first = [make_small(photograph) for photograph in _first(photographs)]  # one at a time
    stacks = (torch.stack(made) for made in zip(*(made for made, _ in first), strict=True))
    images = {
        side: x if x.is_floating_point() else x / 255 for side, x in zip(sides, stacks, strict=True)
    }
    masks = [mask for _, mask in first]
    truth = torch.stack([classes if (ins == IGNORE).all() else ins for ins, classes in masks])
    rows: dict[str, np.ndarray] = {"input": color_image(images[SHOWN])}
    known = bool((truth != IGNORE).any())
    if known:
        rows["truth"] = color_labels(truth)
    for name, model in models.items():
        x = images[model.size[0]].to(next(model.parameters()).device)
        labels, doubt = predictor(model, settings)(x)
        fitted = protocol.fit_labels(labels).cpu().long()
        rows[name] = color_labels(match_colors(fitted, truth) if known else fitted + 1)
        if len(models) == 1:
            rows["uncertainty"] = (doubt / doubt.max().clamp(min=1e-6)).cpu().numpy()
    return sheet(rows, title=title)


def _first(photographs: Photographs) -> Iterator[Photograph]:
    """The first that can be read; training has named the others."""
    there = 0
    for index in range(len(photographs)):
        try:
            photograph = photographs[index]
        except InputError:
            continue
        yield photograph
        there += 1
        if there == COLUMNS:
            return
    if not there:
        yield photographs[0]  # which says why it cannot be read
