import io
import math
from pathlib import Path

import pytest
import torch
from rich.console import Console

from rotating_features.experiments import EXPERIMENTS, report, scores
from rotating_features.experiments.config import Experiment, ModelConfig
from rotating_features.experiments.folders import Run


def rows(value: float) -> list:
    """Of drawn images, so without the score that photographs have."""
    names = [name for name in scores.SCORES if name != "mbo_c"]
    batch = {"rf2023": dict.fromkeys(names, torch.full((4,), value, dtype=torch.double))}
    return scores.to_rows([batch], clustering="kmeans k=5")


def runs(count: int) -> list[Run]:
    experiment = EXPERIMENTS["4shapes"]["paper"]
    return [Run(Path(f"seed-{i}"), "4shapes", "paper", i, experiment) for i in range(count)]


def test_mean_and_standard_error_are_over_seeds() -> None:
    values = report.summarise([rows(0.9), rows(0.8), rows(1.0)])["rf2023, kmeans k=5"]["ari_bg"]
    assert values["mean"] == pytest.approx(0.9)
    assert values["sem"] == pytest.approx(0.1 / math.sqrt(3))
    assert values["per_seed"] == pytest.approx([0.9, 0.8, 1.0])


def test_one_seed_has_no_standard_error() -> None:
    assert report.summarise([rows(0.9)])["rf2023, kmeans k=5"]["ari_bg"]["sem"] is None


def test_the_table_has_the_papers_number_beside_ours() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report.table(runs(1), report.summarise([rows(0.9)])))
    text = console.export_text()
    assert "0.900" in text
    assert "0.987 ± 0.003" in text


def test_the_ablation_is_compared_with_the_ablation() -> None:
    ablated = Experiment(model=ModelConfig(binding=False))
    assert report.published(ablated)["ari_bg"].mean == 0.059


def test_a_model_the_paper_does_not_have_is_compared_with_nothing() -> None:
    assert report.published(Experiment(model=ModelConfig(rotation_dim=30))) == {}


def test_a_record_says_where_its_numbers_come_from() -> None:
    summary = report.summarise([rows(0.9), rows(0.8)])
    record = report.record(
        runs(2), summary, ["train", "4shapes", "--name", "a b", "--runs=x"], torch.device("cpu")
    )
    assert record["command"] == "rotating-features train 4shapes --name 'a b'"
    assert record["seeds"] == [0, 1]
    assert {"commit", "hardware", "settings", "version", "scores", "paper"} <= set(record)


@pytest.mark.parametrize(
    ("experiment", "score"), [("pascal-voc", ("mbo_i", 0.407)), ("foodseg103", ("mbo_c", 0.484))]
)
def test_the_papers_numbers_are_those_of_the_model_not_of_a_baseline(experiment, score) -> None:
    metric, mean = score
    assert report.published(EXPERIMENTS[experiment]["paper"])[metric].mean == mean
