"""Photographs and settings that cannot be, and what the command line says of them."""

import json
import shutil
from pathlib import Path

import pytest

from rotating_features.cli import main
from rotating_features.experiments import scores


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--evaluate.protocols blind", "Photographs are scored by rf2023, dinosaur, spot"),
        ("--model.kind classifier", "Photographs come without classes"),
        ("--model.kind standard", "a standard model finds none"),
        ("--data.side 30", "multiples of 8, got 30 x 30"),
        ("--data.side 0", "side should be at least 1 pixel, got 0"),
        ("--data.colors 3", "no option colors, got colors=3. It has crops, path, resize, side."),
        ("--data.path nowhere", "There is no Pascal VOC 2012 in"),
        ("--train.batch-size 3", "number of images, 2, got 3"),
        ("--evaluate.k 17", "got k=17"),
        ("--data.crops 100", "Features of 100 crops of 2 photographs take 0.0 GB beside"),
        ("--model.backbone no-such", "There is no folder or backbone 'no-such'"),
    ],
)
def test_mistakes_are_found_before_a_folder_is_made(
    photographs, tiny_backbone, tmp_path: Path, explained, words: str, wanted, monkeypatch, train
) -> None:
    monkeypatch.setattr("rotating_features.train.photo_feed.free_memory", lambda device: 9_999)
    status = train(tmp_path, "pascal-voc", photographs["pascal-voc"], tiny_backbone, *words.split())
    explained(status, wanted)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--evaluate.protocols dinosaur", "Drawn images are scored by blind, rf2023, got dinosaur"),
        ("--model.backbone dino-vitb16", "Backbones are for photographs (pascal-voc, foodseg103"),
        ("--data.side 64", "4shapes has no option side"),
        ("--data.crops 2", "4shapes has no option crops"),
        ("--model.no-position-embedding", "got no --model.backbone"),
    ],
)
def test_what_is_for_photographs_is_refused_for_drawn_images(
    tmp_path: Path, explained, words: str, wanted: str
) -> None:
    explained(main(["train", "4shapes", "--runs", str(tmp_path), *words.split()]), wanted)
    assert not list(tmp_path.iterdir())


def test_a_folder_has_to_be_named(tmp_path: Path, explained) -> None:
    explained(main(["train", "folder", "--runs", str(tmp_path)]), "--data.path FOLDER")


def test_photographs_are_not_fetched(tmp_path: Path, explained) -> None:
    status = main(["data", "pascal-voc", "--fetch", "--out", str(tmp_path)])
    explained(status, "pascal-voc cannot be fetched", "--data.path")


def test_a_folder_without_a_single_image_is_explained(tmp_path: Path, explained) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    words = ["data", "folder", "--path", str(tmp_path), "--picture", str(tmp_path / "it.png")]
    explained(main(words), "broken.png cannot be read")


def test_a_broken_photograph_is_named_and_stops_nothing(
    photographs: dict, tiny_backbone: Path, tmp_path: Path, capsys, train
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for path in photographs["folder"].iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    (own / "a-broken.png").write_text("no picture")
    assert train(tmp_path / "runs", "folder", own, tiny_backbone) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "a-broken.png cannot be read" in text
    run = tmp_path / "runs" / "folder" / "seed-0"
    assert [row["image"] for row in scores.read(run)] == [1, 2, 3, 4]
    (left_out,) = json.loads((run / "left-out.json").read_text())
    assert left_out["name"].endswith("a-broken.png")
    assert "cannot be read" in left_out["problem"]


def test_photographs_that_cannot_be_scored_are_named(
    tmp_path: Path, photographs, tiny_backbone: Path, explained, capsys, train
) -> None:
    assert train(tmp_path, "folder", photographs["folder"], tiny_backbone) == 0
    mixed = tmp_path / "mixed"
    shutil.copytree(photographs["folder"], mixed)
    (mixed / "not [red].jpg").write_bytes(b"no picture")
    command = ["evaluate", str(tmp_path / "folder"), "--protocols", "rf2023", "spot", "--path"]
    capsys.readouterr()
    assert main([*command, str(mixed)]) == 0
    assert capsys.readouterr().out.count("not [red].jpg cannot be read") == 1
    for path in mixed.iterdir():
        path.write_bytes(b"no picture")
    explained(main([*command, str(mixed)]), "None of the 5 photographs")


def test_a_folder_without_a_readable_photograph_leaves_no_run(
    tmp_path: Path, tiny_backbone: Path, explained, train
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in "abc":
        (broken / f"{name}.jpg").write_bytes(b"no picture")
    explained(train(tmp_path, "folder", broken, tiny_backbone), "None of 3 images can be used")
    assert not (tmp_path / "folder").exists()
