"""Vision transformers of Hugging Face ``transformers``: DINO, DINOv2 and DINOv3.

Features are the hidden states of the last block, before the final norm, of the patches alone.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rotating_features._check import InputError
from rotating_features.features.attention import known_as
from rotating_features.features.backbone import Backbone
from rotating_features.features.hub import Source, load


class Kind(NamedTuple):
    """What differs between families, by the ``model_type`` of their configs."""

    model: str
    """Its class in ``transformers``."""
    norm: str = "layernorm"
    """The attribute with the final norm."""
    build: dict[str, Any] = {}  # noqa: RUF012 (nobody writes to it)
    call: dict[str, Any] = {}  # noqa: RUF012


KINDS = {
    "vit": Kind(
        "ViTModel",
        build={"add_pooling_layer": False},
        call={"interpolate_pos_encoding": True},
    ),
    "dinov2": Kind("Dinov2Model"),
    "dinov2_with_registers": Kind("Dinov2WithRegistersModel"),
    "dinov3_vit": Kind("DINOv3ViTModel", norm="norm"),
}


class Patches(nn.Module):
    """The patches' hidden states as a map, from a model of ``transformers`` without its norm.

    The model is taken over, and gets our attention.
    """

    def __init__(self, model: Any, *, patch: int, skip: int, call: dict[str, Any]) -> None:
        super().__init__()
        model.set_attn_implementation(known_as())
        self.model = model
        self.patch = patch
        self.skip = skip
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.model(pixel_values=x, **self.call).last_hidden_state[:, self.skip :]
        grid = (x.shape[2] // self.patch, x.shape[3] // self.patch)
        return tokens.transpose(1, 2).unflatten(2, grid)

    def __setstate__(self, state: dict[str, Any]) -> None:
        known_as()  # pickled elsewhere, where transformers had been told
        super().__setstate__(state)


def open_vit(
    source: str,
    *,
    name: str | None = None,
    position_embedding: bool = True,
    class_token: bool = True,
    dtype: torch.dtype | None = None,
    device: str | torch.device = "cpu",
) -> Backbone:
    """A vision transformer from the hub or a folder.

    Args:
        source: A name on the hub, such as ``facebook/dino-vitb16``, or a folder with a config and
            weights as ``save_pretrained`` writes them.
        name: What results call it; ``source`` by default.
        position_embedding: Whether patches know where they are. The paper's code left the
            embedding out by accident; False reproduces that, for models that learned one.
        class_token: Whether the class token, and register tokens where there are any, take part
            in attention. They are never part of the features. The paper's code left it out
            together with the position embedding.
        dtype: The type it computes in, float32 by default.
        device: Where it should live.
    """
    title = name or source
    found = load(source, KINDS)
    kind, config = KINDS[found.config.model_type], found.config
    patch = config.patch_size
    if not isinstance(patch, int) or config.num_channels != 3:
        raise InputError(
            f"{title} should have square patches and take RGB images, got patches of {patch} and "
            f"{config.num_channels} channels.\n  Wrap a model of your own with Backbone(module)."
        )
    if not isinstance(getattr(found.model, kind.norm, None), nn.LayerNorm):
        raise InputError(
            f"{title} should end in a LayerNorm called {kind.norm!r}, but has none in transformers "
            f"{found.version}.\n  Try another version: pip install 'transformers>=4.56'"
        )
    setattr(found.model, kind.norm, nn.Identity())
    if not position_embedding:
        _forget_positions(found.model, title)
    skip = 1 + getattr(config, "num_register_tokens", 0)
    if not class_token:
        found.model.embeddings.register_forward_hook(_Drop(skip))
    return Backbone(
        Patches(found.model, patch=patch, skip=skip if class_token else 0, call=kind.call),
        channels=config.hidden_size,
        stride=patch,
        name=_title(title, position_embedding=position_embedding, class_token=class_token),
        dtype=dtype,
        settings={"config": _facts(found), "class_token": class_token},
        **found.normalisation,
    ).to(device)


class _Drop:
    """A hook that leaves out the first tokens. A class, so that models can be pickled."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, _module: nn.Module, _inputs: Any, tokens: Tensor) -> Tensor:
        return tokens[:, self.count :]


def _forget_positions(model: Any, title: str) -> None:
    learned = getattr(model.embeddings, "position_embeddings", None)
    if not isinstance(learned, nn.Parameter):
        raise InputError(
            f"{title} has no learned position embedding to leave out: it turns queries and keys by "
            "their position (RoPE).\n  Use position_embedding=True, or DINO or DINOv2."
        )
    nn.init.zeros_(learned)  # zeros are still zeros when interpolated


def _title(title: str, *, position_embedding: bool, class_token: bool) -> str:
    without = [] if position_embedding else ["positions"]
    without += [] if class_token else ["class token"]
    return f"{title} (without {' or '.join(without)})" if without else title


def _facts(found: Source) -> dict[str, Any]:
    """The config without what changes with the library that reads it or the place it lies at."""
    passing = {"transformers_version", "_name_or_path", "dtype", "torch_dtype", "architectures"}
    return {key: value for key, value in found.config.to_dict().items() if key not in passing}
