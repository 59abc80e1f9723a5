import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from rotating_features._check import InputError
from rotating_features.models import MODELS, AutoEncoder, RotatingAutoEncoder, load, save

FORMAT = "rotating_features/1"
OPTIONS = {
    "default": {},
    "features": {"features": True},
    "bias_only_turns": {"bias_in_magnitude": False},
    "no_binding": {"binding": False},
}


def make(**options: bool) -> RotatingAutoEncoder:
    """A small model whose norms have seen data, so that their statistics matter."""
    model = RotatingAutoEncoder(
        channels=2, size=(9, 14), hidden_dim=2, rotation_dim=3, **options
    ).train()
    model(torch.rand(4, 2, 9, 14))
    return model


def outputs_agree(one: AutoEncoder, other: AutoEncoder) -> bool:
    x = torch.rand(2, 2, 9, 14)
    ours, theirs = one.eval()(x), other.eval()(x)
    if ours.z is None or theirs.z is None:
        return ours.z is theirs.z and torch.equal(ours.reconstruction, theirs.reconstruction)
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def explain(path: Path) -> str:
    """What a person reads who asks for a model that cannot be had; it names the path."""
    with pytest.raises(InputError) as error:
        load(path)
    assert str(path) in str(error.value)
    return str(error.value)


all_options = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


@all_options
def test_a_loaded_model_gives_the_output_of_the_saved_one(tmp_path: Path, options: dict) -> None:
    model = make(**options)
    save(model, tmp_path / "model.safetensors")
    assert outputs_agree(load(tmp_path / "model.safetensors"), model)


@all_options
def test_a_loaded_model_has_the_settings_of_the_saved_one(tmp_path: Path, options: dict) -> None:
    model = make(**options)
    save(model, tmp_path / "model.safetensors")
    assert load(tmp_path).settings == model.settings


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_of_any_kind_comes_back(tmp_path: Path, kind: str) -> None:
    extra = {"classes": 5} if kind == "classifier" else {}
    model = MODELS[kind](channels=2, size=(9, 14), hidden_dim=2, **extra).train()
    model(torch.rand(4, 2, 9, 14))
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path)
    assert type(loaded) is MODELS[kind]
    assert loaded.settings == model.settings
    assert outputs_agree(loaded, model)


def test_a_file_without_a_kind_is_a_rotating_model(tmp_path: Path) -> None:
    """As files were when there was one kind."""
    model = make()
    metadata = {"format": FORMAT, "model": json.dumps(model.settings)}
    save_file(model.state_dict(), tmp_path / "model.safetensors", metadata)
    assert type(load(tmp_path)) is RotatingAutoEncoder
    assert outputs_agree(load(tmp_path), model)


def test_an_unknown_kind_is_explained(tmp_path: Path) -> None:
    model = make()
    metadata = {"format": FORMAT, "kind": "spinning", "model": json.dumps(model.settings)}
    save_file(model.state_dict(), tmp_path / "model.safetensors", metadata)
    told = explain(tmp_path / "model.safetensors")
    assert "a known kind, rotating, complex, standard, classifier, got 'spinning'" in told


def test_a_model_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    class Own(RotatingAutoEncoder):
        pass

    with pytest.raises(InputError, match="got a Own"):
        save(Own(channels=1, size=(8, 8), hidden_dim=2), tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_weight_beyond_half_precision_is_named(tmp_path: Path) -> None:
    model = make()
    with torch.no_grad():
        next(model.encoder.parameters()).fill_(65504)
    save(model, tmp_path / "largest" / "model.safetensors", half=True)
    assert all(weight.isfinite().all() for weight in load(tmp_path / "largest").parameters())
    with torch.no_grad():
        next(model.encoder.parameters()).fill_(7e4)
    with pytest.raises(InputError, match=r"encoder\.0\.bias .* 65,504, got 70000"):
        save(model, tmp_path / "model.safetensors", half=True)
    assert not (tmp_path / "model.safetensors").exists()


def test_a_loaded_model_is_ready_to_use(tmp_path: Path) -> None:
    """It is in eval mode, all of it, whatever the mode of the saved one."""
    save(make().train(), tmp_path / "model.safetensors")
    assert not any(module.training for module in load(tmp_path).modules())


def test_saving_leaves_the_model_in_its_mode(tmp_path: Path) -> None:
    model = make().train()
    save(model, tmp_path / "model.safetensors")
    assert model.training


@pytest.mark.parametrize("place", ["any-name.bin", "model.safetensors", "seed-3/model.safetensors"])
def test_a_model_is_found_by_its_file(tmp_path: Path, place: str) -> None:
    model = make()
    save(model, tmp_path / place)
    assert outputs_agree(load(tmp_path / place), model)


@pytest.mark.parametrize("place", ["model.safetensors", "seed-0/model.safetensors"])
@pytest.mark.parametrize("kind", [Path, str])
def test_a_model_is_found_by_its_run(tmp_path: Path, place: str, kind: type) -> None:
    model = make()
    save(model, tmp_path / place)
    assert outputs_agree(load(kind(tmp_path)), model)


def test_a_model_can_be_saved_over_another(tmp_path: Path) -> None:
    model = make()
    save(make(), tmp_path / "model.safetensors")
    save(model, tmp_path / "model.safetensors")
    assert outputs_agree(load(tmp_path), model)


def test_a_run_of_several_seeds_names_them(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        save(make(), tmp_path / f"seed-{seed}" / "model.safetensors")
    told = explain(tmp_path)
    assert "holds several models" in told
    for seed in (0, 1, 2):
        assert str(tmp_path / f"seed-{seed}") in told


def test_a_missing_path_is_explained(tmp_path: Path) -> None:
    told = explain(tmp_path / "nowhere")
    assert told.startswith("There is no run or model file at ")
    assert "rotating-features list" in told


def test_a_folder_without_a_model_is_explained(tmp_path: Path) -> None:
    assert "holds no model.safetensors" in explain(tmp_path)


@pytest.mark.parametrize("left", [0.0, 0.00001, 0.0005, 0.01, 0.1, 0.5, 0.9, 0.9999])
def test_a_file_cut_short_is_explained(tmp_path: Path, left: float) -> None:
    path = tmp_path / "model.safetensors"
    save(make(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(left * len(whole))])
    told = explain(path)
    assert "should be a model file, but could not be read" in told
    assert "cut short" in told


@pytest.mark.parametrize("text", ["", "hello", "a text of several words\n" * 100])
def test_a_text_file_is_explained(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    assert "should be a model file, but could not be read" in explain(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "rotating_features/0"}])
def test_the_weights_of_another_project_are_explained(
    tmp_path: Path, metadata: dict | None
) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(2)}, path, metadata)
    told = explain(path)
    came = None if metadata is None else metadata["format"]
    assert f"a safetensors file of format {came!r}, not {FORMAT!r}" in told
    assert "Weights of other projects cannot be loaded." in told


@pytest.mark.parametrize(
    "description",
    [
        None,
        "{",
        "[]",
        json.dumps({"channels": 2, "size": [9, 14], "depth": 3}),
        json.dumps({"channels": 2, "size": [9, 14], "rotation_dim": 1}),
        json.dumps({"channels": 2, "size": [9, 14], "hidden_dim": 2, "rotation_dim": 4}),
    ],
)
def test_weights_that_do_not_fit_their_description_are_explained(
    tmp_path: Path, description: str | None
) -> None:
    """Not there, not JSON, not settings, an unknown one, an impossible one, another model's."""
    path = tmp_path / "model.safetensors"
    told = {} if description is None else {"model": description}
    save_file(make().state_dict(), path, {"format": FORMAT, **told})
    assert "does not fit the model it describes" in explain(path)


def fail(*_: object, **__: object) -> None:
    raise OSError("No space left on device")


def write_half(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content[: len(content) // 2])
    fail()


@pytest.mark.parametrize("moment", ["writing", "flushing", "replacing"])
def test_a_save_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = tmp_path / "model.safetensors"
    save(make(), path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        match moment:
            case "writing":
                patch.setattr(Path, "write_bytes", write_half)
            case "flushing":
                patch.setattr(os, "fsync", fail)
            case "replacing":
                patch.setattr(os, "replace", fail)
                patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="No space left"):
            save(make(), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
