"""Models that come along: each is here, small, and finds objects by its name alone."""

from pathlib import Path

import pytest
import torch
from PIL import Image

import rotating_features as rf
from rotating_features._check import InputError
from rotating_features.cli import main
from rotating_features.experiments.folders import read_run
from rotating_features.models import TRAINED, OnFeatures, RotatingAutoEncoder, save
from rotating_features.models.store import find
from rotating_features.models.trained import folder_of

names = pytest.mark.parametrize("name", TRAINED)
MOST_BYTES = 4_000_000


def make() -> RotatingAutoEncoder:
    return RotatingAutoEncoder(channels=2, size=(9, 14), hidden_dim=16, rotation_dim=3).eval()


def test_each_folder_has_a_name_and_each_name_a_folder() -> None:
    assert {path.name for path in folder_of("").iterdir()} == set(TRAINED)


@names
def test_it_is_small_enough_to_come_along(name: str) -> None:
    assert find(Path(name)).stat().st_size <= MOST_BYTES


@names
def test_its_settings_name_no_folder_of_ours(name: str) -> None:
    path = read_run(folder_of(name)).experiment.data.path
    assert path is None or "/" not in path


@names
def test_it_finds_objects_in_a_photograph(name: str) -> None:
    model = rf.load(name)
    assert isinstance(model, OnFeatures)
    rng = torch.rand(3, 6, 8)
    photograph = torch.nn.functional.interpolate(rng[None], size=(240, 320))[0]
    found = rf.discover(model, photograph, k=4)
    assert found.labels.shape == (240, 320)
    assert 1 <= int(found.objects) <= 4


@names
def test_segment_takes_its_name(name: str, tmp_path: Path, capsys) -> None:
    Image.new("RGB", (64, 48), "red").save(tmp_path / "red.png")
    words = ["segment", str(tmp_path / "red.png"), "--model", name, "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert f"k={read_run(folder_of(name)).experiment.evaluate.k}" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.json").exists()


@names
def test_list_shows_it(name: str, tmp_path: Path, capsys) -> None:
    assert main(["list", "--runs", str(tmp_path)]) == 0
    assert f"  {name}: " in capsys.readouterr().out


def test_a_run_of_the_same_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = next(iter(TRAINED))
    Path(name).mkdir()
    model = make()
    save(model, Path(name) / "model.safetensors")
    assert rf.load(name).settings == model.settings


def test_another_name_is_explained() -> None:
    with pytest.raises(InputError, match=next(iter(TRAINED))):
        rf.load("voc-large")


def test_half_a_model_is_half_as_large_and_nearly_the_same(tmp_path: Path) -> None:
    model = make()
    save(model, tmp_path / "whole.safetensors")
    save(model, tmp_path / "half.safetensors", half=True)
    whole, half = (rf.load(tmp_path / f"{name}.safetensors") for name in ("whole", "half"))
    assert {weight.dtype for weight in half.parameters()} == {torch.float32}
    x = torch.rand(2, 2, 9, 14)
    torch.testing.assert_close(half(x).z, whole(x).z, rtol=2e-2, atol=2e-3)
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.6 * sizes[1]
