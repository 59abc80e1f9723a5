"""The oracle is ``transformers`` itself: its final norm, applied to our features, has to give its
``last_hidden_state`` of the patches."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from rotating_features._check import InputError
from rotating_features.features import BACKBONES, attention, hub, open_backbone
from rotating_features.features.vit import KINDS, open_vit

AttentionInterface = pytest.importorskip("transformers").AttentionInterface

Build = Callable[[str], Any]
Write = Callable[[str], Path]

PATCH = {"dino": 8, "dinov2": 14, "dinov2-registers": 14, "dinov3": 16}
PREFIX = {"dino": 1, "dinov2": 1, "dinov2-registers": 4, "dinov3": 5}
LEARNED = ["dino", "dinov2", "dinov2-registers"]
GRIDS = [(4, 4), (1, 1), (3, 5), (7, 2), (2, 8)]  # (2, 8) has as many patches as they learned


def images(family: str, grid: tuple[int, int], count: int = 2) -> Tensor:
    return torch.rand(count, 3, grid[0] * PATCH[family], grid[1] * PATCH[family])


def norm_of(model: Any) -> nn.Module:
    return model.norm if hasattr(model, "norm") else model.layernorm


def last_hidden_state(model: Any, family: str, x: Tensor) -> Tensor:
    options = {"interpolate_pos_encoding": True} if family == "dino" else {}
    with torch.no_grad():
        return model(pixel_values=x, **options).last_hidden_state


def normalised(backbone: Any, x: Tensor) -> Tensor:
    return (x - backbone.mean) / backbone.std


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("family", PATCH)
def test_features_are_the_patches_before_the_norm(
    family: str, grid: tuple[int, int], build: Build, write: Write
) -> None:
    backbone, model, x = open_backbone(write(family)), build(family), images(family, grid)
    features = backbone(x)
    assert features.shape == (2, 24, *grid)
    assert (backbone.channels, backbone.stride) == (24, PATCH[family])
    wanted = last_hidden_state(model, family, normalised(backbone, x))[:, PREFIX[family] :]
    assert wanted.shape[1] == grid[0] * grid[1]
    ours = norm_of(model)(features.flatten(2).transpose(1, 2))
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", PATCH)
def test_features_are_what_the_last_block_hands_on(family: str, build: Build, write: Write) -> None:
    backbone, model, x = open_backbone(write(family)), build(family), images(family, (2, 3))
    seen: list[Tensor] = []
    norm_of(model).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    last_hidden_state(model, family, normalised(backbone, x))
    wanted = seen[0][:, PREFIX[family] :].transpose(1, 2).unflatten(2, (2, 3))
    torch.testing.assert_close(backbone(x), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", LEARNED)
def test_without_positions_equals_an_embedding_of_zeros(
    family: str, build: Build, write: Write
) -> None:
    backbone = open_backbone(write(family), position_embedding=False)
    model, x = build(family), images(family, (3, 5))
    nn.init.zeros_(model.embeddings.position_embeddings)
    wanted = last_hidden_state(model, family, normalised(backbone, x))[:, PREFIX[family] :]
    features = backbone(x)
    ours = norm_of(model)(features.flatten(2).transpose(1, 2))
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-4)
    assert (features - open_backbone(write(family))(x)).abs().mean() > 0.1
    assert "without positions" in backbone.name


@pytest.mark.parametrize("class_token", [True, False])
@pytest.mark.parametrize("family", LEARNED)
def test_without_positions_patches_may_change_places(
    family: str, class_token: bool, write: Write
) -> None:
    x, side = images(family, (2, 3)), PATCH[family]
    cells = x.unflatten(3, (3, side)).unflatten(2, (2, side)).transpose(3, 4).flatten(2, 3)
    order = torch.tensor([4, 2, 5, 0, 3, 1])
    moved = cells[:, :, order].unflatten(2, (2, 3)).transpose(3, 4).flatten(4).flatten(2, 3)
    for known in (False, True):
        backbone = open_backbone(write(family), position_embedding=known, class_token=class_token)
        wanted = backbone(x).flatten(2)[:, :, order]
        error = (backbone(moved).flatten(2) - wanted).abs().max()
        assert error > 0.1 if known else error < 1e-3


@pytest.mark.parametrize("family", PATCH)
def test_without_the_class_token_only_patches_attend(family: str, write: Write) -> None:
    """The norm of the first block sees every token that takes part."""
    counts = []
    for class_token in (True, False):
        backbone = open_vit(str(write(family)), class_token=class_token)
        norms = [part for part in backbone.modules() if isinstance(part, nn.LayerNorm)]
        seen: list[Tensor] = []
        norms[0].register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(inputs[0]))
        assert backbone(images(family, (2, 3))).shape == (2, 24, 2, 3)
        counts.append(seen[0].shape[1])
    assert counts == [PREFIX[family] + 6, 6]


class Reads(TorchDispatchMode):
    """Counts values that are read from tensors: each would wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in (
            torch.ops.aten._local_scalar_dense.default,
            torch.ops.aten.nonzero.default,
        )
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("class_token", [True, False])
@pytest.mark.parametrize("family", PATCH)
def test_after_the_first_call_no_value_is_read(
    family: str, class_token: bool, write: Write
) -> None:
    backbone, x = open_backbone(write(family), class_token=class_token), images(family, (3, 5))
    with Reads() as first:
        backbone(x)
    with Reads() as second:
        backbone(x)
    assert (first.count > 0, second.count) == (True, 0)


def test_turned_positions_cannot_be_left_out(write: Write) -> None:
    with pytest.raises(InputError, match=r"RoPE.*\n.*position_embedding=True"):
        open_backbone(write("dinov3"), position_embedding=False)


@pytest.mark.parametrize("family", PATCH)
def test_bfloat16_is_close(family: str, write: Write) -> None:
    x = images(family, (3, 5), count=4)
    exact, rough = (open_backbone(write(family), dtype=dtype)(x) for dtype in (None, "bfloat16"))
    assert rough.dtype == torch.float32
    assert (rough - exact).norm() < 0.05 * exact.norm()
    assert not torch.equal(rough, exact)


@pytest.mark.parametrize("family", PATCH)
def test_a_spec_opens_the_same_backbone(family: str, write: Write) -> None:
    backbone = open_backbone(write(family), class_token=False, dtype=torch.bfloat16)
    spec = json.loads(json.dumps(backbone.spec_to_save()))
    again, x = open_backbone(**spec), images(family, (2, 2))
    assert again.fingerprint() == backbone.fingerprint()
    assert again.name == backbone.name
    assert torch.equal(again(x), backbone(x))


def test_what_changes_features_changes_the_fingerprint(write: Write, tmp_path: Path) -> None:
    folder = write("dino")
    config = json.loads((folder / "config.json").read_text())
    config["num_attention_heads"] = 2  # the weights have the same shapes
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    opened = [
        open_backbone(folder),
        open_backbone(tmp_path),
        open_backbone(folder, position_embedding=False),
        open_backbone(folder, class_token=False),
        open_backbone(folder, dtype="bfloat16"),
    ]
    assert len({backbone.fingerprint() for backbone in opened}) == len(opened)


def test_the_normalisation_a_folder_states_is_used(write: Write, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((write("dino") / name).read_bytes())
    stated = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.5, 0.5]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(stated))
    backbone = open_backbone(tmp_path)
    assert backbone.mean.flatten().tolist() == stated["image_mean"]
    assert backbone.std.flatten().tolist() == stated["image_std"]


@pytest.mark.parametrize("family", PATCH)
def test_attention_is_ours(family: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone, x = open_backbone(write(family)), images(family, (2, 3))
    wanted, calls = backbone(x), []

    def watched(*inputs: Any, **options: Any) -> tuple[Tensor, None]:
        calls.append(inputs)
        return attention.attend(*inputs, **options)

    monkeypatch.setitem(AttentionInterface._global_mapping, attention.NAME, watched)
    assert torch.equal(backbone(x), wanted)
    assert len(calls) == 2  # blocks


def test_a_pickled_backbone_works_where_transformers_was_not_told(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone, x = open_backbone(write("dino")), images("dino", (2, 3))
    wanted, pickled = backbone(x), pickle.dumps(backbone)
    monkeypatch.delitem(AttentionInterface._global_mapping, attention.NAME)
    assert torch.equal(pickle.loads(pickled)(x), wanted)


def test_every_listed_transformer_has_a_name_on_the_hub() -> None:
    sources = [v.arguments["source"] for v in BACKBONES.values() if v.open is open_vit]
    assert len(sources) == len(set(sources)) >= 7
    assert all(source.startswith("facebook/dino") for source in sources)


def test_a_model_that_lost_its_norm_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "vit", KINDS["vit"]._replace(norm="elsewhere"))
    with pytest.raises(InputError, match="another version"):
        open_backbone(write("dino"))


def test_patches_that_are_not_square_are_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrow(*arguments: Any) -> hub.Source:
        found = hub.load(*arguments)
        found.config.patch_size = [8, 4]
        return found

    monkeypatch.setattr("rotating_features.features.vit.load", narrow)
    with pytest.raises(InputError, match="square patches"):
        open_backbone(write("dino"))
