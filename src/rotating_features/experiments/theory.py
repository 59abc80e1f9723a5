"""The paper's figures that need no training."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from rotating_features._files import replacing
from rotating_features.experiments.provenance import provenance
from rotating_features.plots import binding_effect_figure, hypersphere_figure
from rotating_features.theory import binding_effect, hypersphere_capacity, optimal_cosine

DIMS = (2, 3, 4, 5, 6, 8, 10, 16, 32)
POINTS = range(2, 21)


def figure_binding(out: Path, argv: Sequence[str], device: torch.device) -> tuple[Path, Figure]:
    """How the binding mechanism answers to inputs that disagree (Figure 3)."""
    effect = binding_effect(torch.linspace(-1, 1, 201))
    values = {
        "cosines": effect.cosines.tolist(),
        "with_binding": effect.with_binding.tolist(),
        "without_binding": effect.without_binding.tolist(),
    }
    path = _write(out, "figure-binding", argv, device, {"effect": values})
    return path, binding_effect_figure(
        effect.cosines, effect.with_binding, effect.without_binding, title="The binding mechanism"
    )


def figure_hypersphere(out: Path, argv: Sequence[str], device: torch.device) -> tuple[Path, Figure]:
    """How far apart points on a sphere can be (Figure 11): 10,000 steps, ten seeds."""
    started = time.perf_counter()
    cosines = hypersphere_capacity(DIMS, POINTS, device=device)
    values = {
        "dims": [*DIMS],
        "points": [*POINTS],
        "largest_cosine": cosines.mul(1e6).round().div(1e6).tolist(),
        "seconds": round(time.perf_counter() - started, 2),
    }
    path = _write(out, "figure-hypersphere", argv, device, values)
    optimum = torch.tensor([[optimal_cosine(n, k) for k in POINTS] for n in DIMS])
    return path, hypersphere_figure(
        DIMS, POINTS, cosines, optimum=optimum, title="Points on a hypersphere"
    )


THEORY: dict[str, Callable[[Path, Sequence[str], torch.device], tuple[Path, Figure]]] = {
    "figure-binding": figure_binding,
    "figure-hypersphere": figure_hypersphere,
}


TITLES = {
    "figure-binding": "The binding mechanism against cosine similarity (Figure 3)",
    "figure-hypersphere": "How far apart points on a hypersphere can be (Figure 11), 10 seeds",
}


def _write(
    out: Path, name: str, argv: Sequence[str], device: torch.device, values: dict[str, Any]
) -> Path:
    record = {"theory": name, **provenance(argv, device), **values}
    with replacing(out / f"{name}.json") as partial:
        partial.write_text(json.dumps(record) + "\n")
    return out / f"{name}.json"
