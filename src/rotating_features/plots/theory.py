"""Figures of what can be said of rotating features without training any."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from rotating_features._check import InputError, check_shape


def binding_effect_figure(
    cosines: Tensor, with_binding: Tensor, without_binding: Tensor, *, title: str = ""
) -> Figure:
    """What a unit answers to two inputs that agree and one that may not.

    Args:
        cosines: Between the third input and the others, shape ``(points,)``.
        with_binding, without_binding: Magnitudes before the activation function, of that shape.
        title: Stands above.
    """
    check_shape("cosines", cosines, "points")
    x = cosines.cpu().numpy()
    lines = (
        ("with binding: ½‖ψ‖ + ½χ", "#0072B2", with_binding),
        ("without: ‖ψ‖", "#E69F00", without_binding),
    )
    figure = Figure(figsize=(5.2, 3.6), dpi=150, layout="constrained")
    axes = figure.subplots()
    for name, color, values in lines:
        check_shape(name, values, "points", points=len(x))
        axes.plot(x, values.cpu().numpy(), color=color, lw=2, label=name)
    axes.axhline(2 / 3, color="#7f7f7f", lw=1, ls=(0, (4, 3)))
    axes.annotate(
        "2/3: as if b were not there",
        (1, 2 / 3),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        color="#5f5f5f",
        fontsize=9,
    )
    axes.set_xlim(-1, 1)
    axes.set_ylim(0, 1.04)
    axes.set_xlabel("cosine similarity between a and b, for inputs [a, a, b]")
    axes.set_ylabel("magnitude of the output")
    _finish(axes)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    if title:
        axes.set_title(title, fontsize=11)
    return figure


def hypersphere_figure(
    dims: Sequence[int],
    points: Sequence[int],
    cosines: Tensor,
    *,
    optimum: Tensor | None = None,
    title: str = "",
) -> Figure:
    """How far apart points on a sphere can be brought, a line for each dimension.

    Args:
        dims: Of the spaces that the spheres lie in.
        points: How many of them there are.
        cosines: Largest cosine between any two, shape ``(dims, points, seeds)``; the mean over
            seeds is drawn, with a band of one standard error to either side.
        optimum: The best possible, shape ``(dims, points)``, drawn as dots; ``nan`` if unknown.
        title: Stands above.
    """
    check_shape("cosines", cosines, "dims points seeds", dims=len(dims), points=len(points))
    values = cosines.double().cpu().numpy()
    seeds = values.shape[2]
    mean = values.mean(2)
    sem = values.std(2, ddof=1) / seeds**0.5 if seeds > 1 else np.zeros_like(mean)
    if optimum is not None:
        check_shape("optimum", optimum, "dims points", dims=len(dims), points=len(points))
    if len(points) < 2:
        raise InputError(f"points should name at least two numbers to draw a line, got {points}.")
    figure = Figure(figsize=(6.6, 4.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    colors = colormaps["viridis"](np.linspace(0, 0.92, len(dims)))
    for i, (n, color) in enumerate(zip(dims, colors, strict=True)):
        axes.plot(points, mean[i], color=color, lw=1.6, label=f"n = {n}")
        axes.fill_between(points, mean[i] - sem[i], mean[i] + sem[i], color=color, alpha=0.25, lw=0)
        if optimum is not None:
            axes.plot(points, optimum[i].cpu().numpy(), ".", color=color, ms=5)
    if optimum is not None:
        axes.plot([], [], ".", color="#5f5f5f", ms=5, label="optimum,\nwhere known")
    axes.set_ylim(-1.05, 1.05)
    axes.set_xlabel("points on the sphere in n dimensions")
    axes.set_ylabel("largest cosine similarity of any pair")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(axes)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    if title:
        axes.set_title(title, fontsize=11)
    return figure


def _finish(axes: Axes) -> None:
    axes.grid(alpha=0.25, lw=0.5)
    axes.spines[["top", "right"]].set_visible(False)
