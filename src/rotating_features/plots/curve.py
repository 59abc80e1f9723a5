"""How a run learned."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure


def learning_curve(metrics: Sequence[dict[str, Any]], *, title: str = "") -> Figure:
    """Loss and, where it was measured, object separation over the steps.

    Args:
        metrics: Lines of a run's JSON log: ``step`` with ``loss`` or ``val_ari_bg``.
        title: Stands above.
    """
    figure = Figure(figsize=(6.4, 3.4), dpi=150, layout="constrained")
    left = figure.subplots()
    losses = [(row["step"], row["loss"]) for row in metrics if "loss" in row]
    left.plot(*zip(*losses, strict=True), color="#0072B2", lw=1.4) if losses else None
    left.set_yscale("log")
    left.set_xlabel("step")
    left.set_ylabel("reconstruction error (MSE)", color="#0072B2")
    left.tick_params(axis="y", which="both", labelcolor="#0072B2")
    left.spines[["top", "right"]].set_visible(False)
    scores = [(row["step"], row["val_ari_bg"]) for row in metrics if "val_ari_bg" in row]
    if scores:
        right = left.twinx()
        right.plot(*zip(*scores, strict=True), color="#D55E00", lw=1.8, marker="o", ms=4)
        right.set_ylim(min(0, *(score for _, score in scores)), 1.02)
        right.set_ylabel("object separation (ARI-BG)", color="#D55E00")
        right.tick_params(axis="y", labelcolor="#D55E00")
        right.spines[["top"]].set_visible(False)
    if title:
        left.set_title(title, fontsize=11)
    return figure
