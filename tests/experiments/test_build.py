"""Datasets and models from settings."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rotating_features._check import InputError
from rotating_features.cli import main
from rotating_features.data import DATASETS
from rotating_features.experiments.build import make_dataset, make_model
from rotating_features.experiments.config import DataConfig, ModelConfig
from rotating_features.models import MODELS

DRAWN = ["4shapes", "4shapes-rgb", "4shapes-rgbd", "10shapes", "multi-dsprites"]


@pytest.mark.parametrize(
    ("dataset", "option"),
    [
        ("4shapes", {"colors": 2}),
        ("4shapes-rgb", {"shapes": 3}),
        ("10shapes", {"colors": 2}),
        ("multi-dsprites", {"ring_diameter": 11}),
        ("mnist1shape", {"shapes": 2}),
    ],
)
def test_an_option_that_a_dataset_does_not_have_is_refused(dataset, option) -> None:
    (name,) = option
    with pytest.raises(InputError, match=rf"{dataset} has no option {name}.*\n  It has .*seed"):
        make_dataset(DataConfig(dataset=dataset, **option), "test")


@pytest.mark.parametrize(
    ("dataset", "option", "channels"),
    [
        ("4shapes", {"ring_diameter": 11}, 1),
        ("4shapes-rgb", {"colors": 2}, 3),
        ("4shapes-rgbd", {"depth_from_zero": False}, 4),
        ("4shapes-rgb", {"hue_offset": "image"}, 3),
        ("10shapes", {"hue_offset": "image"}, 4),
        ("10shapes", {"objects": 3}, 4),
        ("10shapes", {"shapes": 5}, 4),
        ("multi-dsprites", {"seed": 4}, 3),
    ],
)
def test_an_option_changes_the_images(dataset, option, channels) -> None:
    usual, other = (
        make_dataset(DataConfig(dataset=dataset, **changes), "test").draw(range(4)).image
        for changes in ({}, option)
    )
    assert usual.shape[1] == channels
    assert not torch.equal(usual, other)


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_model_is_made(kind, published: Path) -> None:
    dataset = make_dataset(DataConfig(dataset="mnist1shape", path=str(published)), "test")
    config = ModelConfig(kind=kind, hidden_dim=2, rotation_dim=3)
    model = make_model(config, dataset, seed=0, device=torch.device("cpu"))
    again = make_model(config, dataset, seed=0, device=torch.device("cpu"))
    assert type(model) is MODELS[kind]
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_classifier_wants_classes() -> None:
    with pytest.raises(InputError, match="dataset with classes"):
        make_model(
            ModelConfig(kind="classifier"),
            make_dataset(DataConfig(), "test"),
            seed=0,
            device=torch.device("cpu"),
        )


@pytest.mark.parametrize("dataset", DRAWN)
def test_what_is_drawn_can_be_written_and_read(
    dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(make_dataset(DataConfig(dataset=dataset), "test"))
    monkeypatch.setattr(kind, "__len__", lambda _: 3)
    assert main(["data", dataset, "--out", str(tmp_path), "--splits", "test"]) == 0
    read = make_dataset(DataConfig(dataset=dataset, path=str(tmp_path)), "test")
    drawn = make_dataset(DataConfig(dataset=dataset), "test")
    for a, b in zip(read.draw(range(3))[:2], drawn.draw(range(3))[:2], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_dataset_has_a_picture(dataset, tmp_path: Path, published: Path) -> None:
    path = ["--path", str(published)] if dataset.startswith(("mnist", "clevr")) else []
    assert main(["data", dataset, "--picture", str(tmp_path / "it.png"), *path]) == 0
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["it.png"]


def test_a_picture_replaces_nothing(tmp_path: Path, explained) -> None:
    (tmp_path / "a.png").write_text("mine")
    status = main(["data", "4shapes", "--picture", str(tmp_path / "a.png")])
    explained(status, "a.png exists already")
    assert (tmp_path / "a.png").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["4shapes"], "--out FOLDER"),
        (["4shapes", "--fetch", "--out", "x"], "nothing to fetch"),
        (["clevr", "--picture", "x.png"], "rotating-features data clevr --fetch"),
        (["mnist1shape", "--picture", "x.png", "--path", "nowhere"], "t10k-images-idx3-ubyte.gz"),
    ],
)
def test_mistakes_are_explained(
    words, said, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", *words]) == 2
    assert said in capsys.readouterr().err


def test_missing_files_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "rotating_features.commands.data.fetch", lambda file, out, progress: asked.append(file.name)
    )
    assert main(["data", "mnist2shape", "--fetch", "--out", str(tmp_path)]) == 0
    assert len(asked) == 4
