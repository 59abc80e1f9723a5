"""Studies: small ones, run for real."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from rotating_features.cli import main
from rotating_features.data import PHOTOGRAPHS
from rotating_features.experiments import EXPERIMENTS, show
from rotating_features.experiments import reproduce as reproducing
from rotating_features.experiments.config import Experiment, TrainConfig
from rotating_features.experiments.effort import SHARE
from rotating_features.experiments.folders import open_runs
from rotating_features.experiments.page import page
from rotating_features.experiments.paper import Claim
from rotating_features.experiments.photo_studies import PHOTO_STUDIES
from rotating_features.experiments.plan import Plan
from rotating_features.experiments.provenance import MACHINE_FILE
from rotating_features.experiments.report import worse
from rotating_features.experiments.run import evaluate_run, train_runs
from rotating_features.experiments.scores import summarise
from rotating_features.experiments.studies import STUDIES
from rotating_features.experiments.study import Case, Study, scaled
from rotating_features.experiments.theory import THEORY
from rotating_features.features import Backbone
from rotating_features.train.checkpoint import steps_done

REPOSITORY = Path(__file__).parents[2]
WHOLE = dict(STUDIES)
FEW = ["--seeds", "0", "1", "--scale", "0.00002", "--images", "2"]


def small(case: Case) -> Case:
    """The case with a model and photographs that take no time."""
    model = dataclasses.replace(case.settings.model, hidden_dim=2)
    train = dataclasses.replace(case.settings.train, batch_size=2)
    data = dataclasses.replace(case.settings.data, side=32)
    data = data if case.settings.data.dataset in PHOTOGRAPHS else case.settings.data
    settings = dataclasses.replace(case.settings, model=model, train=train, data=data)
    return dataclasses.replace(case, settings=settings, trials=case.trials[::9])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rotating_features.experiments.run.VALIDATION_IMAGES", 2)
    for what in ("machine_flops", "step_flops"):  # which have tests of their own
        monkeypatch.setattr(f"rotating_features.experiments.reproduce.{what}", lambda *_: 1e9)
    for name, study in STUDIES.items():
        few = tuple(small(case) for case in (study.cases[0], *study.cases[1:][-1:]))
        few = tuple(map(small, study.cases)) if name in PHOTO_STUDIES else few
        monkeypatch.setitem(STUDIES, name, dataclasses.replace(study, cases=few))


ROWS = {
    case.slug: case
    for name, study in STUDIES.items()
    if name not in PHOTO_STUDIES
    for case in study.cases
}


@pytest.mark.parametrize("slug", ROWS)
def test_every_row_of_every_study_trains_goes_on_and_is_scored(
    tmp_path: Path, published: Path, slug: str
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


def reproduce(*words: str) -> int:
    return main(["reproduce", *words, *FEW])


def result(name: str) -> dict[str, Any]:
    return json.loads(Path("results", f"{name}-x2e-05-2-images.json").read_text())


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in PHOTO_STUDIES])
def test_every_study_runs_and_writes_what_it_found(
    tmp_path: Path, published: Path, name: str
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


@pytest.mark.parametrize("name", [n for n, s in PHOTO_STUDIES.items() if s.cases[0].baseline])
def test_studies_of_photographs_have_baselines_and_name_their_backbone(
    tmp_path: Path, photographs: dict, tiny_backbone: Path, name: str, capsys
) -> None:
    dataset = WHOLE[name].cases[0].settings.data.dataset
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


def test_on_pixels_every_size_is_trained_and_scored(photographs: dict) -> None:
    assert reproduce("table-pascal-pixels", "--path", str(photographs["pascal-voc"])) == 0
    record = result("table-pascal-pixels")
    assert len(record["cases"]) == len(WHOLE["table-pascal-pixels"].cases)
    for case in record["cases"]:
        assert len(show.main_scores(case["scores"])["mbo_i"]["per_seed"]) == 2


def test_the_usual_size_is_one_run_with_the_table() -> None:
    usual = [
        case.settings
        for name in ("table-pascal", "table-pascal-pixels")
        for case in WHOLE[name].cases
        if case.slug == "pascal-pixels"
    ]
    assert len(usual) == 2
    assert usual[0] == usual[1]


def test_photographs_are_scored_under_other_protocols_too(
    tmp_path: Path, photographs: dict, capsys
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
    photographs: dict, tiny_backbone: Path, monkeypatch
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
    photographs: dict, tiny_backbone: Path, capsys, monkeypatch
) -> None:
    looks = 10 * 3600 * SHARE["cpu"] * 1e9  # ten hours of this machine
    monkeypatch.setattr("rotating_features.experiments.reproduce.look_flops", lambda *_: looks)
    files = ["--path", str(photographs["pascal-voc"]), "--backbone", str(tiny_backbone)]
    assert reproduce("table-pascal", *files, "--cases", "pascal-small") == 0
    assert "roughly 10.0 h here" in " ".join(capsys.readouterr().out.split())


def test_without_its_backbone_a_study_has_the_rest(photographs: dict, capsys, monkeypatch) -> None:
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


def test_a_backbone_is_for_studies_of_photographs(capsys) -> None:
    assert reproduce("table-4shapes", "--backbone", "dino-vitb16") == 2
    assert "has no backbone" in capsys.readouterr().err


def test_what_is_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when a study goes on on another machine."""
    assert reproduce("table-10shapes") == 0
    before = result("table-10shapes")
    shutil.rmtree(tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05")
    monkeypatch.setattr("rotating_features.experiments.reproduce.train_runs", lambda *_: 1 / 0)
    assert reproduce("table-10shapes") == 0
    assert "n=2: as found at commit" in capsys.readouterr().out
    assert result("table-10shapes")["cases"] == before["cases"]


@pytest.mark.parametrize("models_are_here", [True, False])
def test_what_was_found_elsewhere_keeps_its_commit_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models_are_here: bool
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
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


def test_baselines_need_no_photographs_to_train_on(tmp_path: Path, photographs: dict) -> None:
    own = tmp_path / "voc"
    shutil.copytree(photographs["pascal-voc"], own)
    (own / "ImageSets" / "Segmentation" / "trainaug.txt").unlink()
    assert reproduce("table-pascal", "--path", str(own)) == 0
    labels = [case["label"] for case in result("table-pascal")["cases"]]
    assert labels == ["one label", "blocks"]


def test_what_another_study_found_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But under this study's own label."""
    assert reproduce("table-4shapes") == 0
    shutil.rmtree(tmp_path / "runs" / "reproduce" / "4shapes-n8-x2e-05")
    assert reproduce("ablation-binding") == 0
    assert "with binding: as found at commit" in capsys.readouterr().out
    (shared, _), (*_, own) = result("ablation-binding")["cases"], result("table-4shapes")["cases"]
    assert (shared["label"], own["label"]) == ("with binding", "n=8")
    assert shared["scores"] == own["scores"]


def test_what_another_study_found_otherwise_is_not(tmp_path: Path) -> None:
    assert reproduce("table-4shapes", "--precision", "float32") == 0
    shutil.rmtree(tmp_path / "runs" / "reproduce")
    assert reproduce("ablation-binding", "--precision", "bfloat16") == 0
    settings = [case["settings"] for case in result("ablation-binding")["cases"]]
    assert [each["train"]["precision"] for each in settings] == ["bfloat16", "bfloat16"]


def test_nothing_is_lost_when_a_study_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier call found in another precision stays until it is replaced."""
    assert reproduce("table-10shapes", "--precision", "float32") == 0
    before = result("table-10shapes")
    target = "rotating_features.experiments.reproduce.train_runs"
    monkeypatch.setattr(target, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert reproduce("table-10shapes", "--precision", "bfloat16") == 130
    assert result("table-10shapes") == before


def test_single_cases_can_be_asked_for_and_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
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


def test_other_seeds_do_not_replace_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("table-10shapes") == 0
    assert main(["reproduce", "table-10shapes", *FEW, "--seeds", "0"]) == 2
    assert "has results of seeds [0, 1], and [0] are asked for" in capsys.readouterr().err


def test_commands_side_by_side_keep_each_other_s_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    slugs = [case.slug for case in STUDIES["table-10shapes"].cases]
    train_runs = reproducing.train_runs

    def meanwhile(*args: Any) -> None:
        monkeypatch.setattr(reproducing, "train_runs", train_runs)
        assert reproduce("table-10shapes", "--cases", slugs[1]) == 0
        train_runs(*args)

    monkeypatch.setattr(reproducing, "train_runs", meanwhile)
    assert reproduce("table-10shapes", "--cases", slugs[0]) == 0
    assert [case["run"] for case in result("table-10shapes")["cases"]] == slugs


def test_cases_of_the_same_label_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two objects at n=2, and two objects at n=10."""
    whole = WHOLE["figure-nshapes"]
    cases = tuple(small(case) for case in whole.cases if case.label == "2 objects")
    monkeypatch.setitem(STUDIES, "figure-nshapes", dataclasses.replace(whole, cases=cases))
    for _ in range(2):  # the second time out of the file
        assert reproduce("figure-nshapes") == 0
        found = result("figure-nshapes")["cases"]
        assert [case["group"] for case in found] == ["n=2", "n=10"]
        assert [case["settings"]["model"]["rotation_dim"] for case in found] == [2, 10]


def test_studies_share_their_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("figure-uncertainty") == 0
    capsys.readouterr()
    assert reproduce("figure-clustering") == 0
    assert "There is nothing to train" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "runs" / "reproduce").iterdir()] == [
        "4shapes-n8-x2e-05"
    ]


def test_a_stopped_study_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = "rotating_features.experiments.reproduce.evaluate_run"
    with monkeypatch.context() as patch:
        patch.setattr(real, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert reproduce("table-10shapes") == 130
    trained = tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05" / "seed-0" / "trainer.pt"
    stamp = trained.stat().st_mtime_ns
    assert reproduce("table-10shapes") == 0
    assert trained.stat().st_mtime_ns == stamp


def test_a_case_without_its_data_is_left_out_in_the_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("table-dsprites-clevr") == 0
    out = capsys.readouterr().out
    assert "is left out: CLEVR needs clevr_with_masks_train.tfrecords" in out
    assert "1 row cannot be trained here" in out
    assert list(result("table-dsprites-clevr")["left_out"]) == ["CLEVR, rotating features"]


def test_a_row_that_wants_more_memory_is_left_out_unless_it_is_trained(
    photographs: dict, tiny_backbone: Path, monkeypatch: pytest.MonkeyPatch, capsys
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


@pytest.mark.parametrize("inside", [False, True])
def test_published_sprites_are_other_rows_than_drawn_ones(
    tmp_path: Path, published: Path, capsys, monkeypatch, inside: bool
) -> None:
    """Wherever the files are: in the folder named, or in its folder of the dataset's name."""
    folder = published
    if inside:
        folder = tmp_path / "files"
        shutil.copytree(published, folder / "multi-dsprites")
    study = WHOLE["table-dsprites-clevr"]
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


def test_a_study_of_which_nothing_can_run_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("table-wsss") == 2
    assert "No case of table-wsss could run" in capsys.readouterr().err


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


@pytest.mark.parametrize("name", ["table-10shapes", "figure-hypersphere"])
def test_a_folder_that_cannot_be_written_is_found_before_any_work(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(THEORY, "figure-hypersphere", lambda *_: 1 / 0)
    (tmp_path / "file").write_text("mine")
    assert main(["reproduce", name, "--out", "file/results"]) == 2
    assert "file/results should be a folder that can be written" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


ELSEWHERE = {"device": "cuda", "hardware": {"cpu": "slow", "gpu": "NVIDIA H200"}}


def test_a_row_names_the_machine_that_trained_and_the_one_that_scored(tmp_path: Path) -> None:
    """Models that share a GPU take no longer than the slowest of them."""
    assert reproduce("table-10shapes") == 0
    here = result("table-10shapes")["cases"][0]
    assert here["training_seconds_in_all"] == sum(here["training_seconds"])
    assert "scored_on" not in here
    assert "scored on" not in page(tmp_path / "results")
    for folder in (tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05").iterdir():
        assert json.loads((folder / MACHINE_FILE).read_text())["hardware"] == here["hardware"]
        (folder / MACHINE_FILE).write_text(json.dumps(ELSEWHERE))
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
    tmp_path: Path,
) -> None:
    assert reproduce("table-10shapes") == 0
    before = result("table-10shapes")["cases"]
    for path in (tmp_path / "runs").rglob(MACHINE_FILE):
        path.unlink()
    for path in (tmp_path / "results").glob("*.json"):
        path.unlink()
    assert reproduce("table-10shapes") == 0
    assert result("table-10shapes")["cases"] == before


def test_a_damaged_note_of_the_machine_is_named(tmp_path: Path, capsys) -> None:
    assert reproduce("table-10shapes") == 0
    path = tmp_path / "runs" / "reproduce" / "10shapes-n2-x2e-05" / "seed-0" / MACHINE_FILE
    path.write_text("{}")
    assert reproduce("table-10shapes") == 2
    assert f"{MACHINE_FILE} should say what the run was trained on" in capsys.readouterr().err


def test_training_names_the_machine_that_trained_when_another_goes_on(tmp_path: Path) -> None:
    tiny = ["--train.steps", "2", "--train.batch-size", "2", "--model.hidden-dim", "2"]
    words = ["train", "4shapes", *tiny, "--evaluate.images", "2", "--preset", "quick"]
    assert main(words) == 0
    (tmp_path / "runs" / "4shapes" / "seed-0" / MACHINE_FILE).write_text(json.dumps(ELSEWHERE))
    assert main([*words, "--resume"]) == 0
    record = json.loads((tmp_path / "runs" / "4shapes" / "summary.json").read_text())
    assert {key: record[key] for key in ELSEWHERE} == ELSEWHERE
    assert record["scored_on"]["device"] == "cpu"


def test_scores_of_a_model_less_trained_are_not_taken_for_its_own() -> None:
    assert reproduce("table-10shapes") == 0
    folder = Path("runs/reproduce/10shapes-n2-x2e-05/seed-0")
    text = (folder / "scores.csv").read_text()
    state = torch.load(folder / "trainer.pt")
    torch.save(state | {"step": 1}, folder / "trainer.pt")  # as if scored before its last step
    Path("results/table-10shapes-x2e-05-2-images.json").unlink()
    (folder / "scores.csv").write_text(text.replace("0.", "777."))
    assert reproduce("table-10shapes") == 0
    assert "777." not in (folder / "scores.csv").read_text()


def test_a_model_that_a_kill_left_behind_its_trainer_is_not_scored() -> None:
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


def test_a_study_goes_on_as_it_began_where_auto_means_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = "rotating_features.experiments.run.pick_precision"
    monkeypatch.setattr(target, lambda _: "float32")
    assert reproduce("table-10shapes") == 0
    monkeypatch.setattr(target, lambda _: "bfloat16")
    assert reproduce("table-10shapes") == 0
    assert result("table-10shapes")["cases"][0]["settings"]["train"]["precision"] == "float32"


def test_a_run_that_is_not_finished_is_not_trained(capsys: pytest.CaptureFixture[str]) -> None:
    tiny = ["--train.steps", "2", "--train.batch-size", "2", "--model.hidden-dim", "2"]
    assert main(["train", "4shapes", *tiny, "--evaluate.images", "2", "--preset", "quick"]) == 0
    config = Path("runs/4shapes/seed-0/config.json")
    config.write_text(config.read_text().replace('"steps": 2', '"steps": 5'))
    assert main(["reproduce", "figure-clustering", "--run", "runs/4shapes"]) == 2
    assert "should be trained to its end" in capsys.readouterr().err


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


def test_the_page_shows_every_study_that_there_is(tmp_path: Path) -> None:
    assert reproduce("table-10shapes") == 0
    assert main(["reproduce", "page"]) == 0
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "## 10Shapes: ten objects at once (Figure 5, Table 11), 2 seeds, 2e-05 of" in text
    assert "| n=10 | " in text
    assert "0.959 ± 0.022" in text
    assert "../results/table-10shapes-x2e-05-2-images-objects.png" in text


def test_a_page_of_somebody_else_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    page_file = tmp_path / "docs" / "results.md"
    page_file.write_text("# My results\n")
    assert main(["reproduce", "page"]) == 2
    assert "is not from here" in capsys.readouterr().err
    assert page_file.read_text() == "# My results\n"


def test_a_page_of_other_results_is_left_alone(tmp_path: Path, capsys) -> None:
    assert reproduce("table-10shapes", "--out", "mine") == 0
    shutil.copytree("mine", "results")
    assert main(["reproduce", "page"]) == 0
    before = (tmp_path / "docs" / "results.md").read_text()
    assert main(["reproduce", "page", "--out", "mine"]) == 2
    said = capsys.readouterr().err
    assert "shows another folder than mine" in said
    assert "Move it away" in said
    assert (tmp_path / "docs" / "results.md").read_text() == before


def test_the_page_links_to_where_the_results_are(tmp_path: Path, capsys) -> None:
    name, words = next(iter(STUDIES)), ["--out", "elsewhere/found"]
    assert reproduce(name, *words, "--cases", STUDIES[name].cases[0].slug) == 0
    for _ in range(2):  # its own page may be replaced
        assert main(["reproduce", "page", *words]) == 0
    text = (tmp_path / "docs" / "results.md").read_text()
    assert f"](../elsewhere/found/{name}-x2e-05-2-images-objects.png)" in text
    assert "../results" not in text
    assert main(["reproduce", "page", "--scale", "0.5"]) == 2
    assert "Leave the other options" in capsys.readouterr().err


def test_the_page_names_rows_of_other_settings_than_the_command_has_now(tmp_path: Path) -> None:
    assert reproduce("table-10shapes") == 0
    assert "settings changed" not in page(tmp_path / "results")
    path = tmp_path / "results" / "table-10shapes-x2e-05-2-images.json"
    record = json.loads(path.read_text())
    record["cases"][0]["settings"]["train"]["lr"] = 0.5
    path.write_text(json.dumps(record))
    said = "Run before the study's settings changed (train.lr 0.5 -> 0.001): 10shapes-n2."
    assert said in page(tmp_path / "results")


def test_what_was_varied_has_a_table_of_its_own(tmp_path: Path) -> None:
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


def test_a_sweep_over_fewer_images_than_its_case_says_so(tmp_path: Path) -> None:
    assert reproduce("figure-clustering") == 0
    study, record = STUDIES["figure-clustering"], result("figure-clustering")
    _, *sweeps = show.tables(record, study)
    assert not any("test images" in sweep.says for sweep in sweeps)
    for found in record["cases"][0]["scores"].values():
        found["images"] = [10_000, 10_000]
    _, *sweeps = show.tables(record, study)
    assert {sweep.says for sweep in sweeps} == {"n=8, the first 2 test images"}


def shown_command(record: dict[str, Any], folder: Path) -> str:
    """The command above the table of the record, on a page of it alone."""
    folder.mkdir(exist_ok=True)
    (folder / "record.json").write_text(json.dumps(record))
    return next(x for x in page(folder).splitlines() if x.startswith("`")).split("`")[1]


def committed(name: str) -> dict[str, Any]:
    return json.loads((REPOSITORY / "results" / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table-4shapes", "table-4shapes --precision bfloat16"),
        ("figure-nshapes-x0.1", "--scale 0.1 --seeds 0 1 --precision bfloat16"),
        ("table-foodseg-efficientnet-lite0-s32", "--backbone efficientnet-lite0-s32 --path FOLDER"),
        (
            "figure-clustering-4shapes-n6-bfloat16",
            "figure-clustering --run runs/reproduce/4shapes-n6-bfloat16",
        ),
    ],
)
def test_the_page_shows_the_command_that_makes_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    """Not the last of several that made it row by row."""
    record = committed(name) | {"command": "the last one"}
    study = record["study"]
    rows = tuple(case for case in WHOLE[study].cases if "foodseg" not in name or case.baseline)
    monkeypatch.setitem(STUDIES, study, dataclasses.replace(WHOLE[study], cases=rows))
    assert shown_command(record, tmp_path / "found").endswith(words)


def test_the_command_of_a_table_that_lacks_rows_names_those_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = committed("table-dsprites-clevr-x0.1")
    monkeypatch.setitem(STUDIES, "table-dsprites-clevr", WHOLE["table-dsprites-clevr"])
    rows = "--cases multi-dsprites-complex multi-dsprites-rotating"
    assert shown_command(record, tmp_path / "found").endswith(f"--precision bfloat16 {rows}")
    record["left_out"] |= {
        case.label: "not here" for case in WHOLE["table-dsprites-clevr"].cases[2:]
    }
    assert "--cases" not in shown_command(record, tmp_path / "found")


@pytest.mark.parametrize(
    ("figure", "study", "words"),
    [
        ("4shapes-n6-bfloat16", "table-4shapes", "--cases 4shapes-n6"),
        (
            "pascal-rotating-quick-rate-efficientnet-lite0-s32-bfloat16-200-images",
            "table-pascal",
            "--seeds 0 1 2 --backbone efficientnet-lite0-s32 --path FOLDER "
            "--cases pascal-rotating-quick-rate",
        ),
    ],
)
def test_a_figure_of_a_study_s_own_run_says_what_trains_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: str, study: str, words: str
) -> None:
    record = committed(f"figure-clustering-{figure}")
    monkeypatch.setitem(STUDIES, study, WHOLE[study])
    shown_command(record, tmp_path / "found")
    said = f"Its run is trained by `rotating-features reproduce {study} {words}"
    assert f"{said} --precision bfloat16`." in page(tmp_path / "found")
    shown_command(record | {"given": "runs/mine"}, tmp_path / "found")
    assert "Its run" not in page(tmp_path / "found")


def test_the_page_says_which_commits_were_changed(tmp_path: Path) -> None:
    record = committed("table-4shapes")
    record["cases"] = [case | {"commit": "0123456789+"} for case in record["cases"]]
    shown_command(record, tmp_path / "found")
    assert "commit 0123456+, NVIDIA H200" in page(tmp_path / "found")


def test_pictures_show_the_models_there_are_and_never_fewer_than_before(tmp_path: Path) -> None:
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


def test_the_page_shows_a_study_s_longest_runs_first(tmp_path: Path) -> None:
    record = json.loads((REPOSITORY / "results" / "table-4shapes.json").read_text())
    (tmp_path / "results").mkdir()
    for name, scale in {"a": 0.1, "b": 1.0, "c": 0.3}.items():
        text = json.dumps(record | {"scale": scale, "title": f"Scaled by {scale}"})
        (tmp_path / "results" / f"{name}.json").write_text(text)
    text = page(tmp_path / "results")
    assert text.index("by 1.0") < text.index("by 0.3") < text.index("by 0.1")


def test_the_page_draws_plots_of_unfinished_studies_too(tmp_path: Path) -> None:
    record = json.loads((REPOSITORY / "results" / "table-4shapes.json").read_text())
    record["cases"] = record["cases"][:5]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table-4shapes.json").write_text(json.dumps(record))
    assert main(["reproduce", "page"]) == 0
    assert (tmp_path / "results" / "table-4shapes.png").exists()
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "../results/table-4shapes.png" in text
    assert "Not run: 4shapes-n8." in text


@pytest.mark.parametrize("text", ["{}", "[]", '{"study": "table-10shapes"}', "{"])
def test_a_damaged_result_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "odd.json").write_text(text)
    assert main(["reproduce", "page"]) == 2
    assert "odd.json should be a file of results" in capsys.readouterr().err


def test_theory_needs_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rotating_features.experiments.theory.POINTS", range(2, 4))
    monkeypatch.setattr("rotating_features.experiments.theory.DIMS", (2, 3))
    for name in THEORY:
        assert main(["reproduce", name]) == 0
        assert (tmp_path / "results" / f"{name}.png").exists()
        assert json.loads((tmp_path / "results" / f"{name}.json").read_text())["theory"] == name


def test_worse_means_by_more_than_two_errors() -> None:
    claim = Claim(0.9, 0.02)._asdict()
    assert worse("ari_bg", {"mean": 0.85}, claim)
    assert not worse("ari_bg", {"mean": 0.87}, claim)
    assert not worse("ari_bg", {"mean": 0.99}, claim)
    assert worse("mse", {"mean": 0.95}, claim)
    assert not worse("mse", {"mean": 0.1}, claim)
    assert not worse("mse", {"mean": 1.0}, None)
    assert not worse("ari_bg", {"mean": 0.99996}, Claim(1.0, 0.0)._asdict())
    assert not worse("iou_random", {"mean": 0.1}, claim)


@pytest.mark.parametrize(
    ("scale", "steps", "warmup", "cooldown"),
    [(1, 100_000, 500, 4_000), (0.2, 20_000, 500, 800), (0.005, 500, 250, 20)],
)
def test_a_shorter_schedule_starts_as_gently(
    scale: float, steps: int, warmup: int, cooldown: int
) -> None:
    whole = Experiment(train=TrainConfig(cooldown_steps=4_000))
    shorter = scaled(whole, scale).train
    assert (shorter.steps, shorter.warmup_steps) == (steps, warmup)
    assert shorter.cooldown_steps == cooldown


def test_a_level_is_drawn_for_what_was_not_varied() -> None:
    scores = {"rf2023, kmeans k=5": {"ari_bg": {"mean": 0.5, "sem": None}}}
    base = {"scores": scores, "trials": [], "paper": {}, "group": ""}
    cases = [{**base, "label": "CAE", "x": None}, {**base, "label": "n=2", "x": 2}]
    study = Study(title="", source="", cases=(), axis="n", metrics=("ari_bg",))
    figure = show.figure({"cases": cases, "title": ""}, study)
    assert figure is not None
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["CAE", "ours"]


def test_no_two_cases_share_a_run_unless_they_are_the_same() -> None:
    seen: dict[str, tuple[str, Experiment]] = {}
    for study in WHOLE.values():
        for case in study.cases:
            what = (case.experiment, case.settings)
            assert seen.setdefault(case.slug, what) == what
            assert case.experiment in EXPERIMENTS


def test_a_trial_may_have_images_of_its_own(tmp_path: Path) -> None:
    assert reproduce("figure-generalization") == 0
    record = result("figure-generalization")
    ways = [way for trial in record["cases"][0]["trials"] for way in trial["scores"]]
    assert any(way.endswith("objects=2") for way in ways)
