"""What a model sees: input, truth and four views of its answer, image by image."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from rotating_features.plots.colors import color_image, color_labels, color_orientations


def grid(
    image: Tensor,
    truth: Tensor,
    reconstruction: Tensor,
    labels: Tensor,
    uncertainty: Tensor,
    orientations: Tensor,
    *,
    title: str = "",
) -> Figure:
    """A column for each image, a row for each view.

    Predicted objects take the colour of the true object they overlap most, for the eye alone.

    Args:
        image, reconstruction: Shape ``(b, c, h, w)``.
        truth, labels: Instances, shape ``(b, h, w)``; negative ones are drawn grey.
        uncertainty: Shape ``(b, h, w)``, on one scale for all images.
        orientations: Shape ``(b, n, h, w)``.
        title: Stands above.
    """
    doubt = uncertainty.detach().float().cpu().numpy()
    rows = {
        "input": color_image(image),
        "truth": color_labels(truth),
        "reconstruction": color_image(reconstruction),
        "prediction": color_labels(match_colors(labels, truth)),
        "uncertainty": doubt,
        "orientation": color_orientations(orientations),
    }
    return sheet(rows, title=title, reach=float(doubt.max()))


def sheet(rows: Mapping[str, np.ndarray], *, title: str = "", reach: float = 1.0) -> Figure:
    """Rows of pictures, each with its name in front.

    Args:
        rows: As many pictures in each, RGB or, to be coloured from 0 to ``reach``, plain numbers.
        title: Stands above.
        reach: The brightest number.
    """
    columns = len(next(iter(rows.values())))
    wide = 0.45 + 0.075 * max(len(name) for name in rows)
    figure = Figure(
        figsize=(wide + 1.25 * columns, 1.28 * len(rows) + (0.4 if title else 0.1)), dpi=150
    )
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (name, pictures) in zip(axes, rows.items(), strict=True):
        for axis, picture in zip(line, pictures, strict=True):
            axis.imshow(
                picture, cmap="magma", vmin=0, vmax=max(1e-6, reach), interpolation="nearest"
            )
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10, labelpad=8)
    if title:
        figure.suptitle(title, fontsize=11, x=0.5, y=0.99)
    top = 1 - (0.34 if title else 0.05) / figure.get_figheight()
    left = wide / figure.get_figwidth()
    figure.subplots_adjust(left=left, right=0.995, top=top, bottom=0.01, wspace=0.06, hspace=0.06)
    return figure


def match_colors(labels: Tensor, truth: Tensor) -> Tensor:
    """Predicted labels renamed so that they overlap the true labels of the same name most."""
    matched = labels.clone()
    for found, true, out in zip(labels.cpu(), truth.cpu(), matched, strict=True):
        names = found[found >= 0].unique()
        targets = true[true >= 0].unique()
        overlap = np.array(
            [[int(((found == i) & (true == j)).sum()) for j in targets] for i in names]
        )
        if not overlap.size:
            continue
        rows, cols = linear_sum_assignment(-overlap)
        new = dict(zip(names[rows].tolist(), targets[cols].tolist(), strict=True))
        spare = iter(range(int(targets.max()) + 1, int(targets.max()) + 1 + len(names)))
        for name in names.tolist():
            out[(found == name).to(out.device)] = new[name] if name in new else next(spare)
    return matched
