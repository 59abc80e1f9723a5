"""Studies: small ones, run for real; stopped, gone on with, and refused."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from rotating_features.cli import main
from rotating_features.experiments import reproduce as reproducing
from rotating_features.experiments import show
from rotating_features.experiments.folders import open_runs
from rotating_features.experiments.page import page
from rotating_features.experiments.photo_studies import PHOTO_STUDIES
from rotating_features.experiments.plan import Plan
from rotating_features.experiments.run import evaluate_run, train_runs
from rotating_features.experiments.scores import summarise
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.theory import THEORY
from rotating_features.train.checkpoint import steps_done

pytestmark = pytest.mark.usefixtures("here")

ROWS = {
    case.slug: case
    for name, study in STUDIES.items()
    if name not in PHOTO_STUDIES
    for case in study.cases
}


@pytest.mark.parametrize("slug", ROWS)
def test_every_row_of_every_study_trains_goes_on_and_is_scored(
    tmp_path: Path, published: Path, slug: str, small
) -> None:
    case, device = small(ROWS[slug]), torch.device("cpu")
    plan = Plan(
        seeds=(0,),
        scale=0.00002,
        precision="float32",
        images=2,
        path=published,
        runs=tmp_path,
        device=device,
    )
    settings = plan.settings(case)
    for steps in (1, 2):
        train = dataclasses.replace(settings.train, steps=steps)
        experiment = dataclasses.replace(settings, train=train)
        opened = open_runs(tmp_path, case.experiment, "paper", experiment, (0,), resume=True)
        with opened as runs:
            train_runs(runs, device)
        assert steps_done(runs[0].folder) == steps
    found = summarise(evaluate_run(runs[0], settings.evaluate, device))
    assert all(summary["images"] == 2 for summary in found.values())
    assert {protocol for protocol, *_ in found} == set(settings.evaluate.protocols)


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in PHOTO_STUDIES])
def test_every_study_runs_and_writes_what_it_found(
    tmp_path: Path, published: Path, name: str, reproduce, result
) -> None:
    files = ["--path", str(published)] if name == "table-wsss" else []
    assert reproduce(name, *files) == 0
    record = result(name)
    assert record["seeds"] == [0, 1]
    assert record["scale"] == 0.00002
    assert bool(record["left_out"]) == (name == "table-dsprites-clevr")
    assert record["cases"]
    for case in record["cases"]:
        found = show.main_scores(case["scores"])
        assert len(found["mse"]["per_seed"]) == 2
        assert found["images"] == [2, 2]
    assert (tmp_path / "results" / f"{name}-x2e-05-2-images-objects.png").exists()
    assert (tmp_path / "results" / f"{name}-x2e-05-2-images.png").exists() == bool(
        STUDIES[name].axis
    )


def test_what_is_done_is_not_done_again(monkeypatch, capsys, reproduce, result) -> None:
    assert reproduce("table-10shapes") == 0
    before = result("table-10shapes")
    for what in ("train_runs", "evaluate_run"):
        monkeypatch.setattr(
            f"rotating_features.experiments.reproduce.{what}", lambda *_, **__: 1 / 0
        )
    capsys.readouterr()
    assert reproduce("table-10shapes") == 0
    assert "There is nothing to train" in capsys.readouterr().out
    assert result("table-10shapes")["cases"] == before["cases"]


def test_what_the_file_has_outlives_the_models(
    tmp_path: Path, monkeypatch, capsys, reproduce, result
) -> None:
    """As when a study goes on on another machine."""
    assert reproduce("table-10shapes") == 0
    before = result("table-10shapes")
    shutil.rmtree(tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05")
    monkeypatch.setattr("rotating_features.experiments.reproduce.train_runs", lambda *_: 1 / 0)
    assert reproduce("table-10shapes") == 0
    assert "n=2: as found at commit" in capsys.readouterr().out
    assert result("table-10shapes")["cases"] == before["cases"]


def test_nothing_is_lost_when_a_study_is_stopped(
    monkeypatch: pytest.MonkeyPatch, reproduce, result
) -> None:
    """What an earlier call found in another precision stays until it is replaced."""
    assert reproduce("table-10shapes", "--precision", "float32") == 0
    before = result("table-10shapes")
    target = "rotating_features.experiments.reproduce.train_runs"
    monkeypatch.setattr(target, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert reproduce("table-10shapes", "--precision", "bfloat16") == 130
    assert result("table-10shapes") == before


def test_single_cases_can_be_asked_for_and_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reproduce, result
) -> None:
    first, last = (case.slug for case in STUDIES["table-10shapes"].cases)
    assert reproduce("table-10shapes", "--cases", last) == 0
    assert "To train: 2 models" in capsys.readouterr().out
    only = result("table-10shapes")["cases"]
    assert [case["run"] for case in only] == [last]
    assert (tmp_path / "results" / "table-10shapes-x2e-05-2-images-objects.png").exists()
    assert f"Not run: {first}." in page(tmp_path / "results")
    assert reproduce("table-10shapes", "--cases", first) == 0
    both = result("table-10shapes")["cases"]
    assert [case["run"] for case in both] == [first, last]
    assert both[1] == only[0]


def test_other_seeds_do_not_replace_a_result(capsys: pytest.CaptureFixture[str], reproduce) -> None:
    assert reproduce("table-10shapes") == 0
    words = ["--seeds", "0", "--scale", "0.00002", "--images", "2"]
    assert main(["reproduce", "table-10shapes", *words]) == 2
    assert "has results of seeds [0, 1], and [0] are asked for" in capsys.readouterr().err


def test_commands_side_by_side_keep_each_other_s_rows(
    monkeypatch: pytest.MonkeyPatch, reproduce, result
) -> None:
    slugs = [case.slug for case in STUDIES["table-10shapes"].cases]
    train_runs = reproducing.train_runs

    def meanwhile(*args: Any) -> None:
        monkeypatch.setattr(reproducing, "train_runs", train_runs)
        assert reproduce("table-10shapes", "--cases", slugs[1]) == 0
        train_runs(*args)

    monkeypatch.setattr(reproducing, "train_runs", meanwhile)
    assert reproduce("table-10shapes", "--cases", slugs[0]) == 0
    assert [case["run"] for case in result("table-10shapes")["cases"]] == slugs


def test_studies_share_their_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reproduce
) -> None:
    assert reproduce("figure-uncertainty") == 0
    capsys.readouterr()
    assert reproduce("figure-clustering") == 0
    assert "There is nothing to train" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "runs" / "reproduce").iterdir()] == [
        "4shapes-n8-x2e-05"
    ]


def test_a_stopped_study_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reproduce
) -> None:
    real = "rotating_features.experiments.reproduce.evaluate_run"
    with monkeypatch.context() as patch:
        patch.setattr(real, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert reproduce("table-10shapes") == 130
    trained = tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05" / "seed-0" / "trainer.pt"
    stamp = trained.stat().st_mtime_ns
    assert reproduce("table-10shapes") == 0
    assert trained.stat().st_mtime_ns == stamp


def test_a_study_goes_on_as_it_began_where_auto_means_something_else(
    monkeypatch: pytest.MonkeyPatch, reproduce, result
) -> None:
    target = "rotating_features.experiments.run.pick_precision"
    monkeypatch.setattr(target, lambda _: "float32")
    assert reproduce("table-10shapes") == 0
    monkeypatch.setattr(target, lambda _: "bfloat16")
    assert reproduce("table-10shapes") == 0
    assert result("table-10shapes")["cases"][0]["settings"]["train"]["precision"] == "float32"


def test_scores_of_a_model_less_trained_are_not_taken_for_its_own(reproduce) -> None:
    assert reproduce("table-10shapes") == 0
    folder = Path("runs/reproduce/10shapes-n2-x2e-05/seed-0")
    text = (folder / "scores.csv").read_text()
    state = torch.load(folder / "trainer.pt")
    torch.save(state | {"step": 1}, folder / "trainer.pt")  # as if scored before its last step
    Path("results/table-10shapes-x2e-05-2-images.json").unlink()
    (folder / "scores.csv").write_text(text.replace("0.", "777."))
    assert reproduce("table-10shapes") == 0
    assert "777." not in (folder / "scores.csv").read_text()


def test_a_model_that_a_kill_left_behind_its_trainer_is_not_scored(reproduce, result) -> None:
    assert reproduce("table-10shapes") == 0
    before = result("table-10shapes")["cases"][0]["scores"]
    folder = Path("runs/reproduce/10shapes-n2-x2e-05/seed-0")
    model = folder / "model.safetensors"
    content = model.read_bytes()
    (folder / "model.safetensors.partial").write_bytes(content)
    model.write_bytes(content[:-400] + bytes(400))
    (folder / "scores.csv").unlink()
    assert reproduce("table-10shapes") == 0
    assert result("table-10shapes")["cases"][0]["scores"] == before


def test_a_case_without_its_data_is_left_out_in_the_open(
    capsys: pytest.CaptureFixture[str], reproduce, result
) -> None:
    assert reproduce("table-dsprites-clevr") == 0
    out = capsys.readouterr().out
    assert "is left out: CLEVR needs clevr_with_masks_train.tfrecords" in out
    assert "1 row cannot be trained here" in out
    assert list(result("table-dsprites-clevr")["left_out"]) == ["CLEVR, rotating features"]


def test_a_study_of_which_nothing_can_run_is_a_mistake(
    capsys: pytest.CaptureFixture[str], reproduce
) -> None:
    assert reproduce("table-wsss") == 2
    assert "No case of table-wsss could run" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["table-10shapes", "figure-hypersphere"])
def test_a_folder_that_cannot_be_written_is_found_before_any_work(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(THEORY, "figure-hypersphere", lambda *_: 1 / 0)
    (tmp_path / "file").write_text("mine")
    assert main(["reproduce", name, "--out", "file/results"]) == 2
    assert "file/results should be a folder that can be written" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["table-5shapes"], "table-4shapes"),
        (["table-4shapes", "--scale", "0"], "scale should be above 0"),
        (["table-4shapes", "--seeds", "1", "1"], "different numbers"),
        (["table-4shapes", "--seeds", "99999999999999999999"], "below 2^63, got [9999"),
        (["table-4shapes", "--run", "runs/x"], "figure-clustering or figure-uncertainty, got"),
        (["figure-clustering", "--run", "runs/x"], "There is no run"),
        (["figure-binding", "--scale", "0.5"], "trains nothing"),
        (["figure-binding", "--cases", "4shapes-n2"], "trains nothing"),
        (["figure-binding", "--precision", "bfloat16"], "a precision of its own"),
        (["figure-hypersphere", "--seeds", "0", "1"], "seeds and a precision of its own"),
        (["table-4shapes", "--cases", "4shapes-n8", "4shapes-m2"], "4shapes-standard"),
        (["table-4shapes", "--path", "."], "Leave it"),
        (["page", "--out", "nowhere"], "There is no folder"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words]) == 2
    assert said in capsys.readouterr().err
