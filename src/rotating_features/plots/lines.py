"""Scores over what was varied, ours beside the paper's."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
INCHES_A_CHARACTER, INCHES_A_HANDLE, INCHES_A_ROW = 0.062, 0.6, 0.17
"""What a legend takes, in letters of 8 points."""


class Point(NamedTuple):
    """A mean with its standard error, if several seeds gave it."""

    x: float
    mean: float
    sem: float | None


class Line(NamedTuple):
    """Points that belong together, and the paper's where it prints them.

    A single point at ``nan`` is drawn as a level across the panel.
    """

    label: str
    points: Sequence[Point]
    paper: Sequence[Point] = ()


class Panel(NamedTuple):
    """Lines over one thing that was varied."""

    x: str
    y: str  # MSE gets a logarithmic axis, others one from 0 to 1
    lines: Sequence[Line]


def lines(panels: Sequence[Panel], *, title: str = "") -> Figure:
    """Panels side by side; ours filled, the paper's hollow and dashed, bands of one error.

    A label has the same colour in all of them, and they share a legend.

    Args:
        panels: From left to right.
        title: Stands above.
    """
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    color = {label: COLORS[i % len(COLORS)] for i, label in enumerate(labels)}
    figure = Figure(figsize=(3.9 * len(panels), 3.7), dpi=150, layout="constrained")
    for axes, (x, y, drawn) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        published: list[Sequence[Point]] = []
        for line in drawn:
            _draw(axes, line.points, color[line.label], line.label, filled=True)
            if line.paper and line.paper not in published:  # two of ours may have one of theirs
                said = f"{line.label}, paper".strip(", ")
                _draw(axes, line.paper, color[line.label], said, filled=False)
                published.append(line.paper)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if y == "MSE":
            axes.set_yscale("log")
        else:
            axes.set_ylim(-0.02, 1.03)
        axes.grid(alpha=0.25, lw=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    handles = {  # of all panels, since one may lack a line that others have
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    widest = INCHES_A_CHARACTER * max(map(len, handles), default=0) + INCHES_A_HANDLE
    columns = max(1, min(len(handles), int(figure.get_figwidth() / widest)))
    more_rows = (len(handles) - 1) // columns
    figure.set_figheight(figure.get_figheight() + INCHES_A_ROW * more_rows)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
    )
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _draw(axes: Any, points: Sequence[Point], color: str, label: str, *, filled: bool) -> None:
    if len(points) == 1 and math.isnan(points[0].x):
        style = "-." if filled else ":"
        axes.axhline(points[0].mean, color=color, lw=1.2, ls=style, label=label)
        return
    x, mean = [p.x for p in points], [p.mean for p in points]
    axes.plot(
        x,
        mean,
        color=color,
        marker="o",
        ms=4,
        lw=1.6 if filled else 1.0,
        ls="-" if filled else "--",
        mfc=color if filled else "white",
        label=label or ("ours" if filled else "paper"),
    )
    if all(p.sem is not None for p in points):
        low = [p.mean - (p.sem or 0) for p in points]
        high = [p.mean + (p.sem or 0) for p in points]
        axes.fill_between(x, low, high, color=color, alpha=0.2 if filled else 0.1, lw=0)
