"""Classes found in images, beside the true ones."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.plots.colors import PALETTE, UNLABELLED, color_image

MORE = np.array(
    [
        (125, 91, 230),
        (255, 174, 160),
        (122, 78, 44),
        (150, 225, 215),
        (220, 40, 60),
        (72, 88, 20),
        (190, 160, 240),
        (255, 255, 255),
        (30, 70, 60),
        (255, 90, 200),
    ],
    dtype=np.uint8,
)
CLASS_COLORS = np.concatenate([PALETTE, MORE])
"""Background, then 20 classes; further ones begin anew."""


def semantic_grid(
    image: Tensor,
    truth: Tensor,
    prediction: Tensor,
    baseline: Tensor,
    names: Sequence[str],
    *,
    title: str = "",
) -> Figure:
    """A column for each image: input, true classes, predicted ones and those of the baseline.

    A class has one colour everywhere, and the legend names those that occur.

    Args:
        image: Shape ``(b, c, h, w)``.
        truth, prediction, baseline: Shape ``(b, h, w)``: 0 for background, 1.. for classes,
            negative where none counts, which is drawn grey.
        names: Of the classes, from 1 on.
        title: Stands above.
    """
    check_shape("image", image, "b c h w")
    b = len(image)
    maps = {"truth": truth, "prediction": prediction, "baseline": baseline}
    for name, labels in maps.items():
        check_shape(name, labels, "b h w", b=b)
        if (highest := int(labels.max())) > len(names):
            raise InputError(
                f"{name} has class {highest}, but names has only {len(names)} of them: "
                f"{', '.join(names)}."
            )
    rows = {
        "input": color_image(image),
        **{name: color_classes(labels) for name, labels in maps.items()},
    }
    occurring = sorted({int(c) for labels in maps.values() for c in labels.unique() if c > 0})
    columns = max(1, int((1.1 + 1.25 * b) / 1.1))
    lines = -(-len(occurring) // columns)
    top, bottom = (0.36 if title else 0.06), 0.12 + 0.22 * lines
    height = 1.28 * len(rows) + top + bottom
    figure = Figure(figsize=(1.1 + 1.25 * b, height), dpi=150)
    axes = figure.subplots(len(rows), b, squeeze=False)
    for line, (name, pictures) in zip(axes, rows.items(), strict=True):
        for axis, picture in zip(line, pictures, strict=True):
            axis.imshow(picture, interpolation="nearest")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10, labelpad=8)
    if occurring:
        handles = [Patch(color=_hex(label), label=names[label - 1]) for label in occurring]
        figure.legend(
            handles=handles,
            loc="lower center",
            ncols=min(columns, len(handles)),
            frameon=False,
            fontsize=9,
            handlelength=1,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
    if title:
        figure.suptitle(title, fontsize=11, x=0.5, y=1 - 0.05 / height)
    figure.subplots_adjust(
        left=1.05 / figure.get_figwidth(),
        right=0.995,
        top=1 - top / height,
        bottom=bottom / height,
        wspace=0.06,
        hspace=0.06,
    )
    return figure


def color_classes(labels: Tensor) -> np.ndarray:
    """Maps of classes as RGB, (..., h, w) -> (..., h, w, 3) uint8; negative ones are grey."""
    found = labels.cpu().numpy()
    colors = CLASS_COLORS[np.where(found > 0, 1 + (found - 1) % (len(CLASS_COLORS) - 1), 0)]
    return np.where((found < 0)[..., None], UNLABELLED, colors)


def _hex(label: int) -> str:
    return "#" + CLASS_COLORS[1 + (label - 1) % (len(CLASS_COLORS) - 1)].tobytes().hex()
