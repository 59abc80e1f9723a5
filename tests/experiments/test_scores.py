import json
import math
from pathlib import Path

import torch

from rotating_features.experiments import scores
from rotating_features.experiments.config import DataConfig, EvaluateConfig


def rows(protocol: str = "blind", clustering: str = "kmeans k=5", values=(0.5, 1.0)) -> list:
    t = torch.tensor(values, dtype=torch.double)
    batch = {protocol: dict.fromkeys(scores.SCORES, t)}
    return scores.to_rows([batch], clustering=clustering)


def test_rows_of_several_batches_are_numbered_through() -> None:
    batch = {"blind": dict.fromkeys(scores.SCORES, torch.zeros(3))}
    assert [row["image"] for row in scores.to_rows([batch, batch], clustering="")] == [*range(6)]


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    scores.merge(tmp_path, rows(), {})
    assert scores.read(tmp_path) == rows()


def test_scores_taken_in_another_way_are_kept(tmp_path: Path) -> None:
    scores.merge(tmp_path, rows("rf2023"), {})
    scores.merge(tmp_path, rows("blind"), {})
    scores.merge(tmp_path, rows("blind", values=(0.0, 0.25)), {})
    assert scores.read(tmp_path) == [*rows("rf2023"), *rows("blind", values=(0.0, 0.25))]


def test_scoring_fewer_images_keeps_the_others(tmp_path: Path) -> None:
    scores.merge(tmp_path, rows(values=(0.5, 1.0)), {})
    scores.merge(tmp_path, rows(values=(0.25,)), {})
    assert {row["image"]: row["ari_bg"] for row in scores.read(tmp_path)} == {0: 0.25, 1: 1.0}


def test_what_names_of_protocols_stand_for_is_kept_beside_the_scores(tmp_path: Path) -> None:
    drawn, photographs = DataConfig(), DataConfig(dataset="pascal-voc", side=448)
    blind = scores.describe_protocols(drawn, EvaluateConfig(protocols=("blind",)))
    spot = scores.describe_protocols(photographs, EvaluateConfig(protocols=("spot",)))
    for found in (blind, spot):
        scores.merge(tmp_path, rows(), found)
    kept = json.loads((tmp_path / "protocols.json").read_text())
    assert set(kept) == {"blind", "spot@448"}
    assert kept["blind"]["overlap_is_clustered"] is True
    assert (kept["spot@448"]["image_side"], kept["spot@448"]["unlabelled"]) == (448, "background")
    (tmp_path / "protocols.json").write_text("torn")
    scores.merge(tmp_path, rows(), blind)
    assert set(json.loads((tmp_path / "protocols.json").read_text())) == {"blind"}


def test_images_without_objects_are_dropped_and_counted() -> None:
    summary = scores.summarise(rows(values=(0.5, math.nan, 1.0)))["blind", "kmeans k=5"]
    assert summary["ari_bg"] == 0.75
    assert (summary["images"], summary["dropped"]) == (3, 1)


def test_nothing_but_images_without_objects_gives_nan() -> None:
    assert math.isnan(scores.summarise(rows(values=(math.nan,)))["blind", "kmeans k=5"]["ari_bg"])


def test_a_folder_without_scores_has_none(tmp_path: Path) -> None:
    assert scores.read(tmp_path) == []


def test_clusterings_are_told_apart() -> None:
    ways = [
        EvaluateConfig(k=5),
        EvaluateConfig(k=6),
        EvaluateConfig(cluster="agglomerative"),
        EvaluateConfig(cluster="agglomerative", distance_threshold=2.5),
        EvaluateConfig(magnitude_threshold=0.3),
    ]
    assert len({scores.describe(way) for way in ways}) == len(ways)


def test_images_are_counted_as_dropped_by_whatever_was_asked_for() -> None:
    """Photographs of food have classes alone; one without any has no score at all."""
    some, none = torch.tensor([0.5, math.nan]), torch.tensor([math.nan, math.nan])

    def dropped(**values: torch.Tensor) -> float:
        (summary,) = scores.summarise(scores.to_rows([{"p": values}], clustering="")).values()
        return summary["dropped"]

    assert dropped(mbo_c=some) == 1
    assert dropped(ari_bg=some, mbo_c=some) == 1
    assert dropped(ari_bg=none, mbo_c=some) == 2  # the first has one score, and lacks the other
    assert dropped(ari_bg=none, mbo_c=none, clusters=torch.tensor([1.0, 2.0])) == 2
    assert dropped(clusters=none) == 0
