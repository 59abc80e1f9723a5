"""Photographs by command: train, evaluate, segment."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load as load_weights

from rotating_features.cli import main
from rotating_features.experiments import scores
from rotating_features.experiments.folders import read_run
from rotating_features.models import load


@pytest.fixture(scope="module")
def run(photographs: dict, tiny_backbone: Path, tmp_path_factory, train) -> Path:
    """A run on VOC, trained for two steps; tests leave it as it is but for its scores."""
    folder = tmp_path_factory.mktemp("runs")
    assert train(folder, "pascal-voc", photographs["pascal-voc"], tiny_backbone) == 0
    return folder / "pascal-voc"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def renamed(folder: Path, new: Path) -> Path:
    """The same photographs of VOC under other names: to all that reads them, others."""
    shutil.copytree(folder, new)
    for path in [*new.rglob("*.jpg"), *new.rglob("*.png")]:
        path.rename(path.with_stem(f"{path.stem}x"))
    for path in new.rglob("*.txt"):
        path.write_text("".join(f"{name}x\n" for name in path.read_text().split()))
    return new


# --- Train ----------------------------------------------------------------------------------------


def test_a_run_goes_on_with_its_own_photographs_alone(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, explained, train
) -> None:
    own, runs = tmp_path / "own", tmp_path / "runs"
    shutil.copytree(photographs["folder"], own)
    assert train(runs, "folder", own, tiny_backbone) == 0
    longer = ["train", "folder", "--runs", str(runs), "--resume", "--train.steps", "3"]
    shutil.copyfile(next(own.iterdir()), own / "one more.png")
    explained(main(longer), "was trained on other photographs")
    (own / "one more.png").unlink()
    assert main(longer) == 0


def test_a_finished_run_reads_no_photographs(
    tmp_path: Path, photographs, tiny_backbone: Path, monkeypatch, train
) -> None:
    """But one killed between its trainer and its model has the model written."""
    given = (tmp_path, "pascal-voc", photographs["pascal-voc"], tiny_backbone)
    assert train(*given) == 0
    model = tmp_path / "pascal-voc" / "seed-0" / "model.safetensors"
    content = model.read_bytes()
    weights = load_weights(content)
    with monkeypatch.context() as patch:
        patch.setattr("rotating_features.experiments.run.make_feed", None)  # not to be called
        assert train(*given, "--resume") == 0
    model.with_name("model.safetensors.partial").write_bytes(content)
    model.write_bytes(content[:-8] + bytes(8))
    assert train(*given, "--resume") == 0
    again = load_weights(model.read_bytes())
    assert [n for n, w in weights.items() if not torch.equal(again[n], w)] == []


def test_a_backbone_may_be_run_without_positions(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, train
) -> None:
    words = ["--model.no-position-embedding"]
    assert train(tmp_path, "folder", photographs["folder"], tiny_backbone, *words) == 0
    backbone = load(tmp_path / "folder").backbone
    patch = torch.rand(1, 3, 8, 8).repeat(1, 1, 4, 4)
    features = backbone(patch)
    torch.testing.assert_close(features, features[..., :1, :1].expand_as(features))


@pytest.mark.parametrize("backbone", [True, False], ids=["features", "pixels"])
def test_fixed_crops_are_learned_from_and_a_run_keeps_their_number(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, explained, backbone: bool, train
) -> None:
    where = ["pascal-voc", photographs["pascal-voc"], tiny_backbone if backbone else "None"]
    words = ["--data.crops", "3", "--train.steps"]
    assert train(tmp_path, *where, *words, "2") == 0
    assert train(tmp_path, *where, *words, "4", "--resume") == 0
    assert read_run(tmp_path / "pascal-voc" / "seed-0").experiment.data.crops == 3
    words[1] = "2"
    explained(train(tmp_path, *where, *words, "4", "--resume"), "data.crops 3 -> 2")


def test_a_model_of_pixels_is_trained_on_photographs(
    photographs: dict, tmp_path: Path, train
) -> None:
    assert train(tmp_path, "pascal-voc", photographs["pascal-voc"], "None") == 0
    assert load(tmp_path / "pascal-voc").size == (32, 32)


def test_rows_of_photographs_name_them(
    tmp_path: Path, photographs, tiny_backbone: Path, train
) -> None:
    for dataset in ("pascal-voc", "folder"):
        assert train(tmp_path, dataset, photographs[dataset], tiny_backbone) == 0
    named = {row["name"] for row in scores.read(tmp_path / "pascal-voc" / "seed-0")}
    assert named == {"c", "d"}  # those of val
    named = {row["name"] for row in scores.read(tmp_path / "folder" / "seed-0")}
    assert named == {path.name for path in photographs["folder"].iterdir()}


def test_list_names_the_protocols_for_photographs_and_runs_without_ari(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, capsys, train
) -> None:
    assert train(tmp_path, "foodseg103", photographs["foodseg103"], tiny_backbone) == 0
    capsys.readouterr()
    assert main(["list", "--runs", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Protocols for photographs" in text
    assert "dinosaur: As DINOSAUR" in text
    assert "not scored yet" not in text


# --- Evaluate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ("--protocol dinosaur", ("dinosaur@32", "kmeans k=4")),
        ("--protocols spot", ("spot@32", "kmeans k=4")),
        ("--k auto", ("rf2023@32", "kmeans k=auto")),
        ("--cluster agglomerative", ("rf2023@32", "agglomerative t=5")),
        ("--k 2 --images 1", ("rf2023@32", "kmeans k=2")),
    ],
)
def test_a_run_is_scored_in_other_ways(run: Path, words: str, way: tuple[str, str]) -> None:
    before = scores.read(run / "seed-0")
    assert main(["evaluate", str(run), *words.split()]) == 0
    after = scores.read(run / "seed-0")
    assert after[: len(before)] == before
    new = after[len(before) :]
    assert {(row["protocol"], row["clustering"]) for row in new} == {way}
    assert len(new) == (1 if "--images" in words else 2)
    assert all("mse" not in row and math.isfinite(row["ari_bg"]) for row in new)


def test_scores_of_training_are_those_of_evaluate(run: Path) -> None:
    before = scores.read(run / "seed-0")
    assert main(["evaluate", str(run)]) == 0
    after = scores.read(run / "seed-0")
    assert sorted(map(str, after)) == sorted(map(str, before))  # though perhaps further down


@pytest.mark.parametrize("words", [["--protocol", "blind"], ["--k", "17"]])
def test_scoring_that_cannot_be_is_explained(run: Path, explained, words: list[str]) -> None:
    before = (run / "seed-0" / scores.FILE).read_bytes()
    explained(main(["evaluate", str(run), *words]), words[1])
    assert (run / "seed-0" / scores.FILE).read_bytes() == before


def test_photographs_may_move(
    tmp_path: Path, photographs, tiny_backbone: Path, explained, train
) -> None:
    """Where they are says nothing of what they are; that they are others is found out."""
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(photographs["pascal-voc"], here)
    assert train(tmp_path, "pascal-voc", here, tiny_backbone) == 0
    here.rename(there)
    more = ("--resume", "--train.steps", "3")
    assert train(tmp_path, "pascal-voc", there, tiny_backbone, *more) == 0
    moved = tmp_path / "moved"
    there.rename(moved)
    run = str(tmp_path / "pascal-voc")
    explained(main(["evaluate", run]), "There is no Pascal VOC 2012 in")
    before = scores.read(Path(run, "seed-0"))
    assert main(["evaluate", run, "--path", str(moved)]) == 0
    assert scores.read(Path(run, "seed-0")) == before


def test_scores_of_other_photographs_are_kept_apart(
    tmp_path: Path, photographs, tiny_backbone: Path, capsys, train
) -> None:
    own = photographs["pascal-voc"]
    assert train(tmp_path, "pascal-voc", own, tiny_backbone) == 0
    run = tmp_path / "pascal-voc"
    before = scores.read(run / "seed-0")
    others = renamed(own, tmp_path / "others")
    assert main(["evaluate", str(run), "--path", str(others)]) == 0
    after = scores.read(run / "seed-0")
    assert [row for row in after if not row["data"]] == before
    assert {row["data"] for row in after} == {"", f"path={others}"}
    assert "path=" in capsys.readouterr().out


@pytest.mark.parametrize("here", [True, False], ids=["own here", "own gone"])
@pytest.mark.parametrize("scored", [True, False])
def test_photographs_among_others_are_not_the_runs_own(
    tmp_path: Path, photographs, tiny_backbone: Path, train, here: bool, scored: bool
) -> None:
    """Whether the run's own are still in their place, and whether it was scored on them."""
    own, run, others = tmp_path / "own", tmp_path / "folder", tmp_path / "others"
    for folder in (own, others):
        shutil.copytree(photographs["folder"], folder)
    shutil.copy(own / "test-a.png", others / "test-z.png")
    assert train(tmp_path, "folder", own, tiny_backbone) == 0
    if not scored:
        (run / "seed-0" / "scores.csv").unlink()
    before = scores.read(run / "seed-0")
    if not here:
        shutil.rmtree(own)
    around = others / ".." / "others"  # one folder, one mark
    for path in (others, around):
        assert main(["evaluate", str(run), "--path", str(path)]) == 0
    rows = scores.read(run / "seed-0")
    assert [row for row in rows if not row["data"]] == before
    assert [row["data"] for row in rows if row["data"]] == 5 * [f"path={others.resolve()}"]


def test_one_mean_is_of_the_photographs_of_one_day(
    tmp_path: Path, photographs, tiny_backbone: Path, train
) -> None:
    """Where others have taken their places, in the same folder, scores of the former go."""
    own = photographs["folder"]
    assert train(tmp_path, "folder", own, tiny_backbone) == 0
    run, others = tmp_path / "folder", tmp_path / "others"
    shutil.copytree(own, others)
    for path in others.iterdir():
        path.rename(path.with_stem(f"{path.stem}x"))
    command = ["evaluate", str(run), "--path", str(others), "--k"]
    assert main([*command, "2"]) == 0
    for path in [*others.iterdir()][2:]:
        path.unlink()
    (others / "first.png").write_bytes((own / "test-a.png").read_bytes())
    assert main([*command, "3"]) == 0
    names = sorted(path.name for path in others.iterdir())
    for row in scores.read(run / "seed-0"):
        if row["data"]:
            assert row["name"] == names[row["image"]]
        else:
            assert (own / row["name"]).exists()


def test_scores_without_names_are_not_taken_for_those_of_other_photographs(
    tmp_path: Path, photographs, tiny_backbone: Path, train
) -> None:
    """As older versions wrote them; seeds that have names and seeds that have none agree."""
    own, others, run = tmp_path / "own", tmp_path / "others", tmp_path / "folder"
    shutil.copytree(photographs["folder"], own)
    assert train(tmp_path, "folder", own, tiny_backbone, "--seeds", "0", "1") == 0
    before = [
        {key: value for key, value in row.items() if key != "name"}
        for row in scores.read(run / "seed-0")
    ]
    (run / "seed-0" / "scores.csv").unlink()
    scores.merge(run / "seed-0", before, {})
    own.rename(others)
    assert main(["evaluate", str(run), "--path", str(others)]) == 0
    for seed in (0, 1):
        rows = scores.read(run / f"seed-{seed}")
        assert {row["data"] for row in rows} == {"", f"path={others}"}
    assert [row for row in scores.read(run / "seed-0") if not row["data"]] == before


# --- Segment --------------------------------------------------------------------------------------


def test_a_run_segments_a_folder_once(
    run: Path, photographs: dict, tiny_backbone: Path, tmp_path: Path, capsys, train
) -> None:
    """Files of the photographs' size; nothing twice; all anew with another backbone."""
    out, own = tmp_path / "masks", photographs["folder"]
    words = ["segment", str(own), "--out", str(out), "--k", "3", "--model"]
    assert main([*words, str(run)]) == 0
    for path in own.iterdir():
        with Image.open(out / f"{path.name}.labels.png") as mask, Image.open(path) as picture:
            assert mask.size == picture.size
            assert len(np.unique(np.array(mask))) <= 3
        assert (out / f"{path.name}.overlay.jpg").exists()
    before = contents(out)
    capsys.readouterr()
    assert main([*words, str(run)]) == 0
    assert "4 of them were done before" in " ".join(capsys.readouterr().out.split())
    assert contents(out) == before

    where = ["pascal-voc", photographs["pascal-voc"], tiny_backbone]
    assert train(tmp_path, *where, "--model.no-position-embedding") == 0
    capsys.readouterr()
    assert main([*words, str(tmp_path / "pascal-voc")]) == 0
    assert "done before" not in capsys.readouterr().out
    assert contents(out)["objects.jsonl"] != before["objects.jsonl"]
