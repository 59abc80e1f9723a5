"""A study's result as a table, as a figure and as pictures."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments.build import make_dataset
from rotating_features.experiments.photo_pictures import photo_sheet
from rotating_features.experiments.pictures import first_images, look
from rotating_features.experiments.plan import Plan
from rotating_features.experiments.report import METRICS, cell, worse
from rotating_features.experiments.study import Study
from rotating_features.models import AutoEncoder, Model, load
from rotating_features.plots.colors import color_image, color_labels
from rotating_features.plots.grid import match_colors, sheet
from rotating_features.plots.lines import Line, Panel, Point, lines
from rotating_features.plots.semantic import color_classes
from rotating_features.train.checkpoint import steps_done

IMAGES = 6
Record = dict[str, Any]


def main_scores(scores: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Those that stand beside the paper's: scored as its released code scores."""
    return _under("rf2023", scores)


class Shown(NamedTuple):
    """A table."""

    says: str
    head: list[str]
    rows: list[list[str]]


def tables(record: Record, study: Study) -> list[Shown]:
    """As the paper scores, then under other projects' protocols, then over what was varied."""
    found = [
        Shown("", *table_rows(record, study.metrics)),
        Shown(
            "The same labels under other projects' protocols",
            *protocol_rows(record, study.metrics, study.protocols),
        ),
        *_sweeps(record, study),
    ]
    return [each for each in found if each.rows]


def _sweeps(record: Record, study: Study) -> list[Shown]:
    """A table for each case and each list of values over which it was scored in some ways."""
    found: list[Shown] = []
    for case in record["cases"]:
        ways: dict[str, dict[float, dict[str, Any]]] = {}
        for trial in case["trials"]:
            if trial["x"] is not None:
                ways.setdefault(trial["label"], {})[trial["x"]] = main_scores(trial["scores"])
        for values in dict.fromkeys(tuple(scores) for scores in ways.values()):
            own = {way: scores for way, scores in ways.items() if tuple(scores) == values}
            metrics = [m for m in study.metrics if any(m in s[values[0]] for s in own.values())]
            names = [f"{way}, {METRICS[m]}" for way in own for m in metrics]
            rows = [
                [f"{x:g}", *(cell(m, scores[x].get(m)) for scores in own.values() for m in metrics)]
                for x in values
            ]
            count = next(iter(own.values()))[values[0]]["images"][0]
            few = "" if count == main_scores(case["scores"])["images"][0] else _first(count)
            found.append(Shown(_label(case) + few, [study.axis, *names], rows))
    return found


def table_rows(record: Record, metrics: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: every metric with the paper's beside it, where it prints one.

    Other ways to score a case, if they stand on no axis of a figure, have rows of their own.

    An exclamation mark: our mean is worse than the paper's by more than two of its errors.
    """
    cases = record["cases"]
    shown = [m for m in metrics if any(m in main_scores(case["scores"]) for case in cases)]
    printed = {m for m in shown if any(m in case["paper"] for case in cases)}
    head = [""]
    for metric in shown:
        head += [METRICS[metric], "paper"] if metric in printed else [METRICS[metric]]
    rows = []
    for case in cases:
        others = [(t["label"], t["scores"]) for t in case["trials"] if t["x"] is None]
        for label, scores in [("", case["scores"]), *others]:
            ours = main_scores(scores)
            row = [f"{_label(case)}, {label}" if label else _label(case)]
            for metric in shown:
                text, claim = cell(metric, ours.get(metric)), case["paper"].get(metric)
                if metric in ours and worse(metric, ours[metric], claim):
                    text += " !"
                row += [text, cell(metric, claim)] if metric in printed else [text]
            rows.append(row)
    return head, rows


def protocol_rows(
    record: Record, metrics: tuple[str, ...], protocols: tuple[str, ...]
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: every metric under every other protocol that a case was scored by."""
    head = ["", *(f"{name} {METRICS[metric]}" for name in protocols for metric in metrics)]
    rows = []
    for case in record["cases"]:
        found = [_under(name, case["scores"]) for name in protocols]
        cells = [cell(metric, scores.get(metric)) for scores in found for metric in metrics]
        if any(found):
            rows.append([_label(case), *cells])
    return head, rows


def terminal_tables(record: Record, study: Study) -> list[Table]:
    """The study's tables for the terminal."""
    first, *others = tables(record, study)
    return [_table(first._replace(says=heading(record))), *map(_table, others)]


def _table(found: Shown) -> Table:
    shown = Table(
        title=found.says,
        title_justify="left",
        box=box.SIMPLE,
        collapse_padding=True,  # 80 columns must do
        pad_edge=False,
    )
    for i, name in enumerate(found.head):
        shown.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in found.rows:
        shown.add_row(*row)
    return shown


def heading(record: Record) -> str:
    """What the numbers are, in a line."""
    seeds, scale = len(record["seeds"]), record["scale"]
    length = "" if scale == 1 else f", {scale:g} of the paper's steps"
    few = "" if (count := record.get("images")) is None else _first(count)
    return f"{record['title']} ({record['source']}), {seeds} seed{'s'[: seeds > 1]}{length}{few}"


def origin(record: Record) -> str:
    """Whose features they are, if not the paper's."""
    backbone = record.get("backbone")
    return "" if backbone is None else f"Features of {backbone}; the paper's are DINO's."


def figure(record: Record, study: Study) -> Figure | None:
    """Scores over what was varied; None for a study that varies nothing."""
    if not study.axis:
        return None
    by_metric = {METRICS[metric]: _lines(record, metric) for metric in study.metrics}
    if study.panels == "metrics":
        panels = [Panel(study.axis, name, drawn) for name, drawn in by_metric.items() if drawn]
    else:
        kinds = dict.fromkeys(line.label for drawn in by_metric.values() for line in drawn)
        panels = [
            Panel(
                kind,
                "score",
                [
                    line._replace(label=metric)
                    for metric, drawn in by_metric.items()
                    for line in drawn
                    if line.label == kind
                ],
            )
            for kind in kinds
        ]
    return lines(panels, title=record["title"]) if panels else None


def _lines(record: Record, metric: str) -> list[Line]:
    ours: dict[str, list[Point]] = {}
    paper: dict[str, list[Point]] = {}
    several = sum(bool(case["trials"]) for case in record["cases"]) > 1
    for case in record["cases"]:
        name = f"{_label(case)}: " if several else ""
        trials = [(name + t["label"], t["x"], t["scores"]) for t in case["trials"]]
        for label, x, scores in trials or [(case["group"], case["x"], case["scores"])]:
            found = main_scores(scores).get(metric)
            if found is None:
                continue
            if x is None:  # not one of those that were varied, but to be compared with them
                label, x = case["label"], math.nan
            ours.setdefault(label, []).append(Point(x, found["mean"], found["sem"]))
            if not trials and (claim := case["paper"].get(metric)):
                paper.setdefault(label, []).append(Point(x, claim["mean"], claim["sem"]))
    return [Line(label, points, paper.get(label, ())) for label, points in ours.items()]


def pictures(study: Study, plan: Plan) -> Figure | None:
    """What the first seed of every case makes of a few test images."""
    if study.cases[0].settings.data.dataset in PHOTOGRAPHS:
        return _photographs(study, plan)
    rows: dict[str, np.ndarray] = {}
    shown = None
    for case in study.cases:
        folder = plan.folder(case) / f"seed-{plan.seeds[0]}"
        if not steps_done(folder):
            continue
        sample = first_images(make_dataset(plan.settings(case).data, "test"), IMAGES)
        name = _label({"group": case.group, "label": case.label})
        if shown is None or not torch.equal(shown, sample.image):
            of = "" if shown is None else f", {name}"
            rows[f"input{of}"] = color_image(sample.image)
            rows[f"truth{of}"] = color_labels(sample.instances)
            shown = sample.image
        model = load(folder, device=plan.device)
        assert isinstance(model, AutoEncoder)
        seen = look(model, sample.image, case.settings.evaluate)
        if seen.objects is None:
            rows[f"{name}, reconstruction"] = color_image(seen.reconstruction)
            continue
        if study.pictures == "reconstruction":
            rows[f"{name}, reconstruction"] = color_image(seen.reconstruction)
        rows[name] = color_labels(match_colors(seen.objects.labels, sample.instances))
        if study.pictures == "uncertainty":
            doubt = seen.objects.uncertainty.cpu()
            rows[f"{name}, uncertainty"] = (doubt / doubt.max().clamp(min=1e-6)).numpy()
        if seen.classes is not None and sample.classes is not None:
            rows[f"{name}, true classes"] = color_classes(sample.classes)
            rows[f"{name}, by class"] = color_classes(seen.classes[0])
            rows[f"{name}, by lot"] = color_classes(seen.classes[1])
    return sheet(rows, title=study.title) if rows else None


def _photographs(study: Study, plan: Plan) -> Figure | None:
    models: dict[str, Model] = {}
    for case in study.cases:
        folder = plan.folder(case) / f"seed-{plan.seeds[0]}"
        if case.baseline is None and steps_done(folder):
            models[case.label] = load(folder, device=plan.device)
    settings = plan.settings(study.cases[0])
    if not models:
        return None
    return photo_sheet(models, settings.data, settings.evaluate, study.title)


def _first(count: int) -> str:
    return f", the first {count:,} test images"


def _label(case: dict[str, Any]) -> str:
    group, label = case["group"], case["label"]
    return label if not group or group in label else f"{group}, {label}"


def _under(protocol: str, scores: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return next((found for way, found in scores.items() if way.startswith(protocol)), {})
