"""Figures of studies and of any run: sweeps, pictures, curves, theory."""

import json
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from rotating_features.cli import main
from rotating_features.experiments import show
from rotating_features.experiments.page import page
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.study import Study
from rotating_features.experiments.theory import THEORY

pytestmark = pytest.mark.usefixtures("here")


def test_a_sweep_and_uncertainty_take_any_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--train.steps", "2", "--train.batch-size", "2", "--model.hidden-dim", "2"]
    more = ["--evaluate.images", "2", "--preset", "quick", "--seeds", "0", "5"]
    assert main(["train", "4shapes", "--name", "mine", *tiny, *more]) == 0
    words = ["figure-clustering", "--run", "runs/mine", "--images", "2"]
    assert main(["reproduce", *words]) == 0
    record = json.loads((tmp_path / "results" / "figure-clustering-mine-2-images.json").read_text())
    assert record["seeds"] == [0, 5]
    assert {trial["label"] for trial in record["cases"][0]["trials"]} == {
        "k of k-means",
        "distance threshold of Ward",
    }
    assert record["cases"][0]["run"] == "runs/mine"
    assert main(["reproduce", "figure-uncertainty", *words[1:]]) == 0
    record = json.loads(
        (tmp_path / "results" / "figure-uncertainty-mine-2-images.json").read_text()
    )
    assert record["cases"][0]["trials"] == []
    assert (tmp_path / "results" / "figure-uncertainty-mine-2-images-objects.png").exists()
    written = page(tmp_path / "results")
    assert "the first 2 test images" in written
    assert "scoring alone" in written
    assert "Not run" not in written
    assert main(["reproduce", *words[:2], str(tmp_path / "runs" / "mine"), *words[3:]]) == 0
    shutil.copytree(tmp_path / "runs" / "mine", tmp_path / "others" / "mine")
    assert main(["reproduce", *words[:2], "others/mine", *words[3:]]) == 2
    assert "runs/mine, and others/mine is asked for" in capsys.readouterr().err
    assert main(["reproduce", *words, "--seeds", "7"]) == 2
    assert "--run takes a run as it is. Leave --seeds." in capsys.readouterr().err


def test_a_run_that_is_not_finished_is_not_trained(capsys: pytest.CaptureFixture[str]) -> None:
    tiny = ["--train.steps", "2", "--train.batch-size", "2", "--model.hidden-dim", "2"]
    assert main(["train", "4shapes", *tiny, "--evaluate.images", "2", "--preset", "quick"]) == 0
    config = Path("runs/4shapes/seed-0/config.json")
    config.write_text(config.read_text().replace('"steps": 2', '"steps": 5'))
    assert main(["reproduce", "figure-clustering", "--run", "runs/4shapes"]) == 2
    assert "should be trained to its end" in capsys.readouterr().err


def test_what_was_varied_has_a_table_of_its_own(tmp_path: Path, reproduce, result) -> None:
    assert reproduce("figure-clustering") == 0
    study, record = STUDIES["figure-clustering"], result("figure-clustering")
    first, *sweeps = show.tables(record, study)
    assert len(first.rows) == 1
    trials = record["cases"][0]["trials"]
    assert sum(len(sweep.rows) for sweep in sweeps) == len(trials)
    assert [sweep.head[1] for sweep in sweeps] == [
        f"{way}, ARI-BG" for way in dict.fromkeys(trial["label"] for trial in trials)
    ]
    assert " | ".join(sweeps[0].rows[0]) in page(tmp_path / "results")


def test_a_sweep_over_fewer_images_than_its_case_says_so(reproduce, result) -> None:
    assert reproduce("figure-clustering") == 0
    study, record = STUDIES["figure-clustering"], result("figure-clustering")
    _, *sweeps = show.tables(record, study)
    assert not any("test images" in sweep.says for sweep in sweeps)
    for found in record["cases"][0]["scores"].values():
        found["images"] = [10_000, 10_000]
    _, *sweeps = show.tables(record, study)
    assert {sweep.says for sweep in sweeps} == {"n=8, the first 2 test images"}


def test_a_trial_may_have_images_of_its_own(reproduce, result) -> None:
    assert reproduce("figure-generalization") == 0
    record = result("figure-generalization")
    ways = [way for trial in record["cases"][0]["trials"] for way in trial["scores"]]
    assert any(way.endswith("objects=2") for way in ways)


def test_pictures_show_the_models_there_are_and_never_fewer_than_before(
    tmp_path: Path, reproduce
) -> None:
    picture = tmp_path / "results" / "table-10shapes-x2e-05-2-images-objects.png"
    runs = tmp_path / "runs" / "reproduce"
    assert reproduce("table-10shapes", "--cases", "10shapes-n2") == 0
    one = plt.imread(picture)
    assert reproduce("table-10shapes") == 0
    two = plt.imread(picture)
    assert len(two) > len(one)
    assert reproduce("table-10shapes", "--cases", "10shapes-n2") == 0
    assert np.array_equal(plt.imread(picture), two)
    shutil.rmtree(runs / "10shapes-n2-x2e-05")
    assert reproduce("table-10shapes") == 0
    assert np.array_equal(plt.imread(picture), two)
    picture.unlink()
    assert reproduce("table-10shapes") == 0
    assert len(plt.imread(picture)) == len(one)


def test_a_level_is_drawn_for_what_was_not_varied() -> None:
    scores = {"rf2023, kmeans k=5": {"ari_bg": {"mean": 0.5, "sem": None}}}
    base = {"scores": scores, "trials": [], "paper": {}, "group": ""}
    cases = [{**base, "label": "CAE", "x": None}, {**base, "label": "n=2", "x": 2}]
    study = Study(title="", source="", cases=(), axis="n", metrics=("ari_bg",))
    figure = show.figure({"cases": cases, "title": ""}, study)
    assert figure is not None
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["CAE", "ours"]


def test_theory_needs_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rotating_features.experiments.theory.POINTS", range(2, 4))
    monkeypatch.setattr("rotating_features.experiments.theory.DIMS", (2, 3))
    for name in THEORY:
        assert main(["reproduce", name]) == 0
        assert (tmp_path / "results" / f"{name}.png").exists()
        assert json.loads((tmp_path / "results" / f"{name}.json").read_text())["theory"] == name
