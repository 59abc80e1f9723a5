"""Models that come along: each is here, small, and finds objects by its name alone."""

from pathlib import Path

import pytest
import torch
from PIL import Image

import rotating_features as rf
from rotating_features._check import InputError
from rotating_features.bench.photographs import has_efficientnet
from rotating_features.cli import main
from rotating_features.experiments.folders import read_run
from rotating_features.models import TRAINED, OnFeatures, RotatingAutoEncoder, save
from rotating_features.models.store import find
from rotating_features.models.trained import folder_of

names = pytest.mark.parametrize("name", TRAINED)
installed = pytest.mark.skipif(not has_efficientnet(), reason="needs the extra cnn")
MOST_BYTES = 4_000_000


def scene(size: tuple[int, int]) -> torch.Tensor:
    """A striped ball before a plain sky."""
    y, x = torch.meshgrid(*(torch.linspace(-1, 1, side) for side in size), indexing="ij")
    sky = torch.stack([0.4 + 0.1 * y, 0.6 + 0.1 * y, 0.9 + 0.05 * y])
    stripes = torch.stack([0.8 + 0.2 * torch.sin(30 * x), 0.3 + 0.1 * y, 0.2 + 0 * x])
    return torch.where(x**2 + y**2 < 0.3, stripes, sky).clamp(0, 1)


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
@installed
def test_it_knows_more_than_a_new_model(name: str) -> None:
    """Of a drawn scene, unlike all it has seen; a new model explains nothing of the variance."""
    model = rf.load(name)
    assert isinstance(model, OnFeatures)
    features = model.backbone(scene(model.size)[None])
    with torch.no_grad():
        error = (model.autoencoder(features).reconstruction - features).square().mean()
    assert error < 0.9 * features.var()


@names
@installed
def test_it_finds_what_stands_apart(name: str) -> None:
    model = rf.load(name)
    assert isinstance(model, OnFeatures)
    height, width = model.size
    labels = rf.discover(model, scene(model.size), k=2).labels
    ball = labels[height // 2 - 40 : height // 2 + 40, width // 2 - 40 : width // 2 + 40]
    rim = torch.cat([labels[:20].flatten(), labels[-20:].flatten()])
    assert int(ball.flatten().mode().values) != int(rim.mode().values)


@names
@installed
def test_segment_takes_its_name(name: str, tmp_path: Path, capsys) -> None:
    Image.new("RGB", (64, 48), "red").save(tmp_path / "red.png")
    words = ["segment", str(tmp_path / "red.png"), "--model", name, "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert f"k={read_run(folder_of(name)).experiment.evaluate.k}" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.json").exists()


@names
@installed
def test_its_weights_alone_find_objects_too(name: str, tmp_path: Path, capsys) -> None:
    """Nobody says then how to cluster, and what suits shapes finds nothing in photographs."""
    picture = Image.fromarray((scene((64, 48)).permute(1, 2, 0) * 255).byte().numpy())
    picture.save(tmp_path / "scene.png")
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes(find(Path(name)).read_bytes())
    words = ["--model", str(alone), "--out", str(tmp_path / "out")]
    assert main(["segment", str(tmp_path / "scene.png"), *words]) == 0
    assert "as suits such a model, k=4" in " ".join(capsys.readouterr().out.split())
    assert rf.discover(rf.load(name), picture).objects > 1


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
    assert find(Path(name)).is_relative_to(folder_of(name))  # an empty folder is no run
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
