"""Studies of photographs: their backbones, baselines and protocols."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from rotating_features.experiments import show
from rotating_features.experiments.effort import SHARE
from rotating_features.experiments.page import page
from rotating_features.experiments.photo_studies import PHOTO_STUDIES
from rotating_features.experiments.studies import STUDIES
from rotating_features.features import Backbone

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("name", [n for n, s in PHOTO_STUDIES.items() if s.cases[0].baseline])
def test_studies_of_photographs_have_baselines_and_name_their_backbone(
    tmp_path: Path, photographs, tiny_backbone, name: str, capsys, whole_studies, reproduce, result
) -> None:
    dataset = whole_studies[name].cases[0].settings.data.dataset
    files = ["--path", str(photographs[dataset]), "--backbone", str(tiny_backbone)]
    assert reproduce(name, *files) == 0
    record = result(f"{name}-{tiny_backbone.name}")
    assert record["backbone"] == str(tiny_backbone)
    assert not record["left_out"]
    counts = []
    for case in record["cases"]:
        found = show.main_scores(case["scores"])
        assert found["images"][0] == 2
        counts.append(len(found["mbo_c"]["per_seed"]))
    assert counts == [1, 1, *[2] * 9]  # of seeds: one label and blocks do not depend on them
    assert (
        tmp_path / "results" / f"{name}-{tiny_backbone.name}-x2e-05-2-images-objects.png"
    ).exists()
    shutil.rmtree(tmp_path / "runs")
    capsys.readouterr()
    assert reproduce(name, *files) == 0
    assert capsys.readouterr().out.count("as found at commit") == 11
    assert f"Features of {tiny_backbone}; the paper's are DINO's" in page(tmp_path / "results")


def test_on_pixels_every_size_is_trained_and_scored(
    photographs: dict, whole_studies, reproduce, result
) -> None:
    assert reproduce("table-pascal-pixels", "--path", str(photographs["pascal-voc"])) == 0
    record = result("table-pascal-pixels")
    assert len(record["cases"]) == len(whole_studies["table-pascal-pixels"].cases)
    for case in record["cases"]:
        assert len(show.main_scores(case["scores"])["mbo_i"]["per_seed"]) == 2


def test_the_usual_size_is_one_run_with_the_table(whole_studies) -> None:
    usual = [
        case.settings
        for name in ("table-pascal", "table-pascal-pixels")
        for case in whole_studies[name].cases
        if case.slug == "pascal-pixels"
    ]
    assert len(usual) == 2
    assert usual[0] == usual[1]


def test_photographs_are_scored_under_other_protocols_too(
    tmp_path: Path, photographs: dict, capsys, reproduce, result
) -> None:
    """One label everywhere: unlabelled pixels in the unions can only make MBO smaller."""
    files = ["--path", str(photographs["pascal-voc"]), "--cases", "pascal-one-label"]
    assert reproduce("table-pascal", *files) == 0
    assert "under other projects' protocols" in capsys.readouterr().out
    record = result("table-pascal")
    _, (_, head, [row]) = show.tables(record, STUDIES["table-pascal"])
    scores = record["cases"][0]["scores"]
    ours, theirs = (
        scores[f"{name}@32, one label"]["mbo_i"]["mean"] for name in ("rf2023", "dinosaur")
    )
    assert 0 < theirs <= ours
    assert dict(zip(head, row, strict=True))["dinosaur MBO_i"] == f"{theirs:.3f}"
    assert "under other projects' protocols" in page(tmp_path / "results")


def test_a_backbone_looks_at_each_photograph_once_for_all_seeds(
    photographs: dict, tiny_backbone: Path, monkeypatch, reproduce
) -> None:
    seen, look = [], Backbone.forward

    def count(backbone: Backbone, x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return look(backbone, x)

    monkeypatch.setattr(Backbone, "forward", count)
    files = ["--path", str(photographs["pascal-voc"]), "--backbone", str(tiny_backbone)]
    assert reproduce("table-pascal", *files, "--cases", "pascal-k-means") == 0
    assert sum(seen) == 2 * 3  # images, each prepared as three protocols want it


def test_what_a_backbone_looks_at_beforehand_is_in_the_cost(
    photographs: dict, tiny_backbone: Path, capsys, monkeypatch, reproduce
) -> None:
    looks = 10 * 3600 * SHARE["cpu"] * 1e9  # ten hours of this machine
    monkeypatch.setattr("rotating_features.experiments.reproduce.look_flops", lambda *_: looks)
    files = ["--path", str(photographs["pascal-voc"]), "--backbone", str(tiny_backbone)]
    assert reproduce("table-pascal", *files, "--cases", "pascal-small") == 0
    assert "roughly 10.0 h here" in " ".join(capsys.readouterr().out.split())


def test_without_its_backbone_a_study_has_the_rest(
    photographs: dict, monkeypatch, reproduce, result
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert reproduce("table-pascal", "--path", str(photographs["pascal-voc"])) == 0
    record = result("table-pascal")
    own = photographs["pascal-voc"]
    assert f"table-pascal --path {own.name}" in record["command"]
    assert str(own) not in json.dumps(record)  # where files are is nobody else's business
    assert [case["label"] for case in record["cases"]] == [
        "one label",
        "blocks",
        "rotating features on pixels",
    ]
    assert set(record["left_out"]) == {
        "k-means on features",
        "k-means on features as they are",
        "complex autoencoder on features",
        "complex autoencoder on features, 8 fixed crops",
        "rotating features on features",
        "rotating features on features, 8 fixed crops",
        "rotating features on features, quick rate",
        "rotating features on features, small",
    }


def test_a_backbone_is_for_studies_of_photographs(capsys, reproduce) -> None:
    assert reproduce("table-4shapes", "--backbone", "dino-vitb16") == 2
    assert "has no backbone" in capsys.readouterr().err


def test_baselines_need_no_photographs_to_train_on(
    tmp_path: Path, photographs: dict, reproduce, result
) -> None:
    own = tmp_path / "voc"
    shutil.copytree(photographs["pascal-voc"], own)
    (own / "ImageSets" / "Segmentation" / "trainaug.txt").unlink()
    assert reproduce("table-pascal", "--path", str(own)) == 0
    labels = [case["label"] for case in result("table-pascal")["cases"]]
    assert labels == ["one label", "blocks"]


def test_a_row_that_wants_more_memory_is_left_out_unless_it_is_trained(
    photographs: dict, tiny_backbone: Path, monkeypatch, capsys, reproduce, result
) -> None:
    files = ["--path", str(photographs["pascal-voc"]), "--backbone", str(tiny_backbone)]
    words = ["table-pascal", *files, "--cases", "pascal-one-label", "pascal-small"]
    name, label = f"table-pascal-{tiny_backbone.name}", "rotating features on features, small"
    full = ("rotating_features.train.photo_feed.free_memory", lambda device: 9)
    with monkeypatch.context() as patch:
        patch.setattr(*full)
        assert reproduce(*words) == 0
    assert "is left out: Features of 3 crops" in " ".join(capsys.readouterr().out.split())
    assert list(result(name)["left_out"]) == [label]
    assert reproduce(*words) == 0
    assert not result(name)["left_out"]
    Path("results", f"{name}-x2e-05-2-images.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(*full)
        assert reproduce(*words) == 0
    assert [case["label"] for case in result(name)["cases"]] == ["one label", label]
