"""How cost grows."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

PANELS = {
    "n": ("a training step", "length n of feature vectors", "ms", 1),
    "batch": ("a training step", "images in a batch", "ms", 1),
    "side": ("a training step", "side of the image (pixels)", "ms", 1),
    "images": ("evaluation", "images", "s", 1e-3),
}
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def growth(rows: Sequence[dict[str, Any]], *, title: str = "") -> Figure:
    """Time over each thing that grows, a panel for each and a line for each variant.

    Args:
        rows: With ``grows`` (one of ``PANELS``), ``value``, ``variant``, ``median_ms``, ``low_ms``
            and ``high_ms``; numbers or, out of a CSV file, their text.
        title: Stands above.
    """
    figure = Figure(figsize=(8.4, 6.0), dpi=150, layout="constrained")
    for axes, (grows, (what, label, unit, scale)) in zip(
        figure.subplots(2, 2).flat, PANELS.items(), strict=True
    ):
        here = [row for row in rows if row["grows"] == grows]
        if not here:
            axes.set_visible(False)
            continue
        for variant, color in zip(
            dict.fromkeys(row["variant"] for row in here), COLORS, strict=False
        ):
            points = sorted(
                (float(row["value"]), *(scale * float(row[f"{k}_ms"]) for k in _KINDS))
                for row in here
                if row["variant"] == variant
            )
            x, low, middle, high = zip(*points, strict=True)
            axes.plot(x, middle, color=color, marker="o", ms=4, lw=1.6, label=variant)
            axes.fill_between(x, low, high, color=color, alpha=0.2, lw=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        values = sorted({float(row["value"]) for row in here})
        axes.set_xticks(values, [f"{value:,.0f}" for value in values])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(label)
        axes.set_ylabel(f"{what} ({unit})")
        axes.grid(alpha=0.25, lw=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


_KINDS = ("low", "median", "high")
