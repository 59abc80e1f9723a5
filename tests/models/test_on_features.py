"""A backbone and the autoencoder of its features, as one model."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from rotating_features._check import InputError
from rotating_features.evaluate import discover
from rotating_features.features import Backbone, open_backbone
from rotating_features.models import OnFeatures, RotatingAutoEncoder, load, on_features, save
from rotating_features.models.on_features import suitable_dtype

SIZE = (32, 40)


def make_autoencoder(channels: int = 12, size: tuple[int, int] = (4, 5), **options):
    options = {"hidden_dim": 2, "rotation_dim": 3, "features": True, **options}
    return RotatingAutoEncoder(channels=channels, size=size, **options)


def own_backbone() -> Backbone:
    """With all that could move if it were not frozen: weights, statistics, chance."""
    module = nn.Sequential(nn.Conv2d(3, 12, 8, stride=8), nn.BatchNorm2d(12), nn.Dropout(0.5))
    return Backbone(module, channels=12, stride=8, name="mine")


def make(backbone: Backbone | Path) -> OnFeatures:
    if not isinstance(backbone, Backbone):
        backbone = open_backbone(backbone, dtype=suitable_dtype("cpu"))  # as load does
    model = OnFeatures(backbone, make_autoencoder(), size=SIZE)
    model.train()(torch.rand(4, 3, *SIZE))  # norms have seen data, so their statistics matter
    return model.eval()


def assert_same_answers(one: OnFeatures, other: OnFeatures) -> None:
    x = torch.rand(2, 3, *SIZE)
    for ours, theirs in zip(one(x), other(x), strict=True):
        assert torch.equal(ours, theirs)


def metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return file.metadata()


def test_it_is_the_autoencoder_of_what_the_backbone_makes() -> None:
    model = make(own_backbone())
    x = torch.rand(2, 3, *SIZE)
    for whole, parts in zip(model(x), model.autoencoder(model.backbone(x)), strict=True):
        assert torch.equal(whole, parts)
    assert torch.equal(model((255 * x).byte()).z, model((255 * x).byte() / 255).z)


@pytest.mark.parametrize(
    "other",
    [{"channels": 11}, {"size": (4, 4)}, {"size": (5, 4)}, {"features": False}],
    ids=["channels", "grid", "sides exchanged", "of images"],
)
def test_an_autoencoder_of_something_else_is_explained(other: dict) -> None:
    with pytest.raises(InputError, match=r"features=True for mine.*32 x 40.*12 channels.*\(4, 5\)"):
        OnFeatures(own_backbone(), make_autoencoder(**other), size=SIZE)


def test_sides_that_no_patch_divides_are_explained() -> None:
    with pytest.raises(InputError, match="multiples of 8, got 30 x 40"):
        OnFeatures(own_backbone(), make_autoencoder(), size=(30, 40))


def test_training_leaves_the_backbone_as_it_was() -> None:
    model = make(own_backbone()).train()
    assert model.autoencoder.training
    assert not any(module.training for module in model.backbone.modules())
    before = {name: value.clone() for name, value in model.backbone.state_dict().items()}
    norm = model.autoencoder.prepare[0].running_mean.clone()
    model(torch.rand(3, 3, *SIZE)).reconstruction.sum().backward()
    for name, value in model.backbone.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(p.grad is None and not p.requires_grad for p in model.backbone.parameters())
    assert any(p.grad is not None for p in model.autoencoder.parameters())
    assert not torch.equal(model.autoencoder.prepare[0].running_mean, norm)
    assert not model.eval().autoencoder.training


def test_a_loaded_model_gives_the_answers_of_the_saved_one(
    tmp_path: Path, tiny_backbone: Path
) -> None:
    model = make(tiny_backbone)
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path)
    assert isinstance(loaded, OnFeatures)
    assert loaded.settings == model.settings
    assert loaded.size == SIZE
    assert not any(module.training for module in loaded.modules())
    assert_same_answers(loaded, model)


def test_the_options_of_the_backbone_come_back(tmp_path: Path, tiny_backbone: Path) -> None:
    options = {"position_embedding": False, "class_token": False}
    model = make(open_backbone(tiny_backbone, dtype=suitable_dtype("cpu"), **options))
    save(model, tmp_path / "model.safetensors")
    assert_same_answers(load(tmp_path), model)


def test_the_autoencoder_alone_is_saved_with_what_makes_its_features(
    tmp_path: Path, tiny_backbone: Path
) -> None:
    """As a checkpoint does it."""
    model = make(tiny_backbone)
    save(model, tmp_path / "whole.safetensors")
    save(model.autoencoder, tmp_path / "alone.safetensors")
    assert metadata(tmp_path / "whole.safetensors") == metadata(tmp_path / "alone.safetensors")
    assert_same_answers(load(tmp_path / "alone.safetensors"), model)


def test_of_the_backbone_the_file_has_the_name_alone(tmp_path: Path, tiny_backbone: Path) -> None:
    model = make(tiny_backbone)
    save(model, tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert set(file.keys()) == set(model.autoencoder.state_dict())
    origin = json.loads(metadata(tmp_path / "model.safetensors")["origin"])
    assert origin["backbone"]["name"] == str(tiny_backbone)
    assert origin["size"] == [*SIZE]


def test_a_module_of_ones_own_cannot_be_saved_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'mine' was made from a module of your own"):
        save(make(own_backbone()), tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_an_autoencoder_forgets_the_backbone_it_had_before(
    tmp_path: Path, tiny_backbone: Path
) -> None:
    autoencoder = make(tiny_backbone).autoencoder
    OnFeatures(own_backbone(), autoencoder, size=SIZE)
    save(autoencoder, tmp_path / "model.safetensors")
    assert isinstance(load(tmp_path), RotatingAutoEncoder)


def test_a_backbone_that_is_gone_is_explained(tmp_path: Path, tiny_backbone: Path) -> None:
    moved = shutil.copytree(tiny_backbone, tmp_path / "vit")
    save(make(moved), tmp_path / "model.safetensors")
    shutil.rmtree(moved)
    with pytest.raises(InputError) as error:
        load(tmp_path / "model.safetensors")
    for word in (str(tmp_path / "model.safetensors"), str(moved), "no folder or backbone"):
        assert word in str(error.value)


def test_a_backbone_may_be_in_another_place_now(tmp_path: Path, tiny_backbone: Path) -> None:
    path, old = tmp_path / "model.safetensors", shutil.copytree(tiny_backbone, tmp_path / "old")
    model = make(old)
    save(model, path)
    now = old.rename(tmp_path / "now")
    with pytest.raises(InputError, match="in another place now, name that: --backbone"):
        load(path)
    assert_same_answers(load(path, backbone=now), model)
    weights = load_file(now / "model.safetensors")
    changed = weights | {"embeddings.cls_token": weights["embeddings.cls_token"] + 1}
    save_file(changed, now / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"the weights of .*now are others now"):
        load(path, backbone=now)


def test_a_model_of_images_has_no_backbone_to_move(tmp_path: Path) -> None:
    model = RotatingAutoEncoder(channels=1, size=(8, 8), hidden_dim=2, rotation_dim=2)
    save(model, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="trained on images and has no backbone"):
        load(tmp_path / "model.safetensors", backbone="vit")


def test_other_weights_under_the_same_name_are_told(tmp_path: Path, tiny_backbone: Path) -> None:
    path, vit = tmp_path / "model.safetensors", shutil.copytree(tiny_backbone, tmp_path / "vit")
    model = make(vit)
    save(model, path)
    assert_same_answers(load(path), model)
    weights = load_file(vit / "model.safetensors")
    changed = weights | {"embeddings.cls_token": weights["embeddings.cls_token"] + 1}
    save_file(changed, vit / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"the weights of .*vit are others now\.\n  Put back"):
        load(path)


def test_weights_are_told_alike_in_float32_and_bfloat16(tiny_backbone: Path) -> None:
    kinds = torch.float32, torch.bfloat16
    full, half = (open_backbone(tiny_backbone, dtype=kind).weights_id() for kind in kinds)
    assert full == half
    assert open_backbone(tiny_backbone, dtype=torch.float16).weights_id() is None


@pytest.mark.parametrize(
    "change",
    [
        {"backbone": {"name": None, "depth": 3}},
        {"backbone": 7},
        {"size": [32, 32]},
        {"size": 32},
        {"size": None},
    ],
    ids=["an unknown option", "no options", "another size", "one side", "no size"],
)
def test_an_origin_that_makes_no_sense_is_explained(
    tmp_path: Path, tiny_backbone: Path, change: dict
) -> None:
    path = tmp_path / "model.safetensors"
    model = make(tiny_backbone)
    save(model, path)
    told = metadata(path)
    told["origin"] = json.dumps({**json.loads(told["origin"]), **change})
    save_file(model.autoencoder.state_dict(), path, told)
    with pytest.raises(InputError, match=r"model\.safetensors was trained on features"):
        load(path)


@pytest.mark.parametrize("k", [3, "auto", None])
def test_objects_are_found_at_the_size_of_the_photograph(k) -> None:
    photograph = torch.rand(3, 50, 70)
    found = discover(make(own_backbone()), photograph, k=k)
    assert found.labels.shape == found.uncertainty.shape == (50, 70)
    assert found.labels.min() >= 0
    assert found.labels.unique().tolist()[-1] == int(found.objects)
    assert found.reconstruction.shape == (12, 4, 5)


def test_settings_are_plain_and_tell_backbones_apart(tiny_backbone: Path) -> None:
    dtype = suitable_dtype("cpu")
    backbones = [
        open_backbone(tiny_backbone, dtype=dtype, position_embedding=p) for p in (True, False)
    ]
    told = [json.dumps(make(b).settings) for b in (*backbones, own_backbone(), own_backbone())]
    assert len(set(told)) == 4
    assert json.dumps(make(tiny_backbone).settings) == told[0]


@pytest.mark.parametrize("has_instructions", [True, False])
def test_a_backbone_hurries_where_the_machine_can(
    monkeypatch: pytest.MonkeyPatch, has_instructions: bool
) -> None:
    monkeypatch.setattr(on_features, "multiplies_bfloat16", lambda: has_instructions)
    wanted = torch.bfloat16 if has_instructions else torch.float32
    assert suitable_dtype("cpu") == wanted
    assert suitable_dtype("cuda:1") == torch.bfloat16
    assert suitable_dtype("meta") == torch.float32
