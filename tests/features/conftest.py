"""Small vision transformers with random weights, as folders that ``save_pretrained`` wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
FAMILIES = {
    "dino": ("ViT", {"image_size": 32, "patch_size": 8, "intermediate_size": 48}),
    "dinov2": ("Dinov2", {"image_size": 56, "patch_size": 14, "mlp_ratio": 2}),
    "dinov2-registers": (
        "Dinov2WithRegisters",
        {"image_size": 56, "patch_size": 14, "mlp_ratio": 2, "num_register_tokens": 3},
    ),
    "dinov3": (
        "DINOv3ViT",
        {"image_size": 32, "patch_size": 16, "intermediate_size": 48, "num_register_tokens": 4},
    ),
}


def build(family: str) -> Any:
    """A model all of whose weights matter; as initialised, many are zero or nearly so."""
    transformers = pytest.importorskip("transformers")
    name, settings = FAMILIES[family]
    if not hasattr(transformers, f"{name}Config"):
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    config = getattr(transformers, f"{name}Config")(**SIZES, **settings)
    options: dict[str, Any] = {"add_pooling_layer": False} if name == "ViT" else {}
    model = getattr(transformers, f"{name}Model")(config, **options).eval()
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3, generator=generator)
    return model


@pytest.fixture(name="build", scope="session")
def _build() -> Callable[[str], Any]:
    return build


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's model."""
    folders: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in folders:
            build(family).save_pretrained(path := tmp_path_factory.mktemp(family))
            folders[family] = path
        return folders[family]

    return folder
