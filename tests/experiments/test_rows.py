"""Rows of a study: what may be taken over, and the commits and machines they name."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from rotating_features.cli import main
from rotating_features.experiments.page import page
from rotating_features.experiments.provenance import MACHINES_FILE
from rotating_features.experiments.studies import STUDIES

pytestmark = pytest.mark.usefixtures("here")

ELSEWHERE = {"device": "cuda", "hardware": {"cpu": "slow", "gpu": "NVIDIA H200"}}


@pytest.mark.parametrize("models_are_here", [True, False])
def test_what_was_found_elsewhere_keeps_its_commit_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models_are_here: bool, reproduce
) -> None:
    """As when pictures are drawn on a computer without the GPU that trained, which compiles."""
    assert reproduce("table-10shapes", "--precision", "float32") == 0
    path = tmp_path / "results" / "table-10shapes-x2e-05-2-images.json"
    before = path.read_text()
    if not models_are_here:
        shutil.rmtree(tmp_path / "runs")
    for module in ("reproduce", "run"):
        monkeypatch.setattr(f"rotating_features.experiments.{module}.commit", lambda: "0" * 40)
    monkeypatch.setattr("rotating_features.experiments.run.pick_compile", lambda *_: True)
    monkeypatch.setattr("rotating_features.experiments.reproduce.train_runs", lambda *_: 1 / 0)
    assert reproduce("table-10shapes", "--precision", "float32") == 0
    assert path.read_text() == before


def test_what_an_older_version_found_is_known_wherever_its_files_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reproduce
) -> None:
    """Settings that it did not have yet have their default."""
    assert reproduce("table-10shapes") == 0
    path = tmp_path / "results" / "table-10shapes-x2e-05-2-images.json"
    record = json.loads(path.read_text())
    for case in record["cases"]:
        del case["settings"]["data"]["side"], case["settings"]["model"]["backbone"]
        case["settings"]["data"]["path"] = "elsewhere"
    path.write_text(json.dumps(record))
    shutil.rmtree(tmp_path / "runs")
    capsys.readouterr()
    assert reproduce("table-10shapes") == 0
    assert capsys.readouterr().out.count("as found at commit") == 2


def test_what_another_study_found_is_taken_over(tmp_path: Path, capsys, reproduce, result) -> None:
    """But under this study's own label."""
    assert reproduce("table-4shapes") == 0
    shutil.rmtree(tmp_path / "runs" / "reproduce" / "4shapes-n8-x2e-05")
    assert reproduce("ablation-binding") == 0
    assert "with binding: as found at commit" in capsys.readouterr().out
    (shared, _), (*_, own) = result("ablation-binding")["cases"], result("table-4shapes")["cases"]
    assert (shared["label"], own["label"]) == ("with binding", "n=8")
    assert shared["scores"] == own["scores"]


def test_what_another_study_found_otherwise_is_not(tmp_path: Path, reproduce, result) -> None:
    assert reproduce("table-4shapes", "--precision", "float32") == 0
    shutil.rmtree(tmp_path / "runs" / "reproduce")
    assert reproduce("ablation-binding", "--precision", "bfloat16") == 0
    settings = [case["settings"] for case in result("ablation-binding")["cases"]]
    assert [each["train"]["precision"] for each in settings] == ["bfloat16", "bfloat16"]


def test_cases_of_the_same_label_stay_apart(
    monkeypatch: pytest.MonkeyPatch, whole_studies, small, reproduce, result
) -> None:
    """Two objects at n=2, and two objects at n=10."""
    whole = whole_studies["figure-nshapes"]
    cases = tuple(small(case) for case in whole.cases if case.label == "2 objects")
    monkeypatch.setitem(STUDIES, "figure-nshapes", dataclasses.replace(whole, cases=cases))
    for _ in range(2):  # the second time out of the file
        assert reproduce("figure-nshapes") == 0
        found = result("figure-nshapes")["cases"]
        assert [case["group"] for case in found] == ["n=2", "n=10"]
        assert [case["settings"]["model"]["rotation_dim"] for case in found] == [2, 10]


@pytest.mark.parametrize("inside", [False, True])
def test_published_sprites_are_other_rows_than_drawn_ones(
    tmp_path: Path, published, monkeypatch, inside, whole_studies, small, reproduce, result
) -> None:
    """Wherever the files are: in the folder named, or in its folder of the dataset's name."""
    folder = published
    if inside:
        folder = tmp_path / "files"
        shutil.copytree(published, folder / "multi-dsprites")
    study = whole_studies["table-dsprites-clevr"]
    few = tuple(small(case) for case in study.cases if "rotating" in case.slug)
    monkeypatch.setitem(STUDIES, "table-dsprites-clevr", dataclasses.replace(study, cases=few))
    slugs = ["multi-dsprites-rotating", "multi-dsprites-published-rotating"]
    for slug in slugs:
        assert reproduce("table-dsprites-clevr", "--path", str(folder), "--cases", slug) == 0
        shutil.rmtree(tmp_path / "runs")
    drawn, read = result("table-dsprites-clevr")["cases"]
    assert [drawn["run"], read["run"]] == slugs
    assert [drawn["label"], read["label"]] == [
        "Multi-dSprites (drawn), rotating features",
        "Multi-dSprites, rotating features",
    ]
    assert drawn["settings"]["data"]["path"] is None
    assert read["scores"] != drawn["scores"]


def test_a_row_names_the_machine_that_trained_and_the_one_that_scored(
    tmp_path: Path, reproduce, result
) -> None:
    """Models that share a GPU take no longer than the slowest of them."""
    assert reproduce("table-10shapes") == 0
    here = result("table-10shapes")["cases"][0]
    assert here["training_seconds_in_all"] == sum(here["training_seconds"])
    assert "scored_on" not in here
    assert "scored on" not in page(tmp_path / "results")
    for folder in (tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05").iterdir():
        (noted,) = json.loads((folder / MACHINES_FILE).read_text())
        assert noted["hardware"] == here["hardware"]
        (folder / MACHINES_FILE).write_text(json.dumps([ELSEWHERE]))
    for path in (tmp_path / "results").glob("*.json"):
        path.unlink()
    assert reproduce("table-10shapes") == 0
    first, last = result("table-10shapes")["cases"]
    assert {key: first[key] for key in ELSEWHERE} == ELSEWHERE
    assert first["scored_on"] == {key: here[key] for key in ELSEWHERE}
    assert first["training_seconds_in_all"] == max(here["training_seconds"])
    assert "scored_on" not in last
    told = f"10shapes-n2 scored on {here['hardware']['cpu']}."
    assert told in page(tmp_path / "results")


def test_a_row_trained_before_machines_were_noted_names_the_one_that_scores(
    tmp_path: Path, reproduce, result
) -> None:
    assert reproduce("table-10shapes") == 0
    before = result("table-10shapes")["cases"]
    for path in (tmp_path / "runs").rglob(MACHINES_FILE):
        path.unlink()
    for path in (tmp_path / "results").glob("*.json"):
        path.unlink()
    assert reproduce("table-10shapes") == 0
    assert result("table-10shapes")["cases"] == before


@pytest.mark.parametrize("damaged", ["{}", "[{}]", '[{"device": "cpu", "hardware": {}}]', "["])
def test_a_damaged_note_of_the_machine_is_named(
    tmp_path: Path, capsys, reproduce, damaged: str
) -> None:
    assert reproduce("table-10shapes") == 0
    path = tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05" / "seed-0" / MACHINES_FILE
    path.write_text(damaged)
    assert reproduce("table-10shapes") == 2
    assert f"{MACHINES_FILE} should say what the run was trained on" in capsys.readouterr().err


def test_seeds_of_two_machines_name_both_and_share_no_time(
    tmp_path: Path, reproduce, result
) -> None:
    assert reproduce("table-10shapes") == 0
    (here, _), folder = result("table-10shapes")["cases"], tmp_path / "runs" / "reproduce"
    (folder / "10shapes-n2-x2e-05" / "seed-0" / MACHINES_FILE).write_text(json.dumps([ELSEWHERE]))
    for path in (tmp_path / "results").glob("*.json"):
        path.unlink()
    assert reproduce("table-10shapes") == 0
    row = result("table-10shapes")["cases"][0]
    assert row["device"] == "cuda"
    assert row["also_trained_on"] == [{key: here[key] for key in ELSEWHERE}]
    assert row["training_seconds_in_all"] == sum(row["training_seconds"])
    assert f"NVIDIA H200, {here['hardware']['cpu']}" in page(tmp_path / "results")


def test_a_run_names_the_machine_that_began_it_and_the_one_that_went_on(tmp_path: Path) -> None:
    tiny = ["--train.batch-size", "2", "--model.hidden-dim", "2", "--evaluate.images", "2"]
    words = ["train", "4shapes", *tiny, "--preset", "quick", "--train.steps"]
    assert main([*words, "2"]) == 0
    folder = tmp_path / "runs" / "4shapes"
    (folder / "seed-0" / MACHINES_FILE).write_text(json.dumps([ELSEWHERE]))
    assert main([*words, "2", "--resume"]) == 0
    scored = json.loads((folder / "summary.json").read_text())
    assert {key: scored[key] for key in ELSEWHERE} == ELSEWHERE
    assert scored["scored_on"]["device"] == "cpu"
    assert main([*words, "3", "--resume"]) == 0
    gone_on = json.loads((folder / "summary.json").read_text())
    assert {key: gone_on[key] for key in ELSEWHERE} == ELSEWHERE
    assert gone_on["also_trained_on"] == [scored["scored_on"]]
