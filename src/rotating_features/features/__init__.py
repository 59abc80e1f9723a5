"""Frozen backbones for photographs: by name, from a folder, or any module of your own.

>>> sorted(BACKBONES)[:2]
['dino-vitb16', 'dino-vits16']
"""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rotating_features._check import InputError
from rotating_features.features.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, Spec
from rotating_features.features.cache import FeatureCache, cached
from rotating_features.features.efficientnet import open_efficientnet
from rotating_features.features.entry import Key
from rotating_features.features.fingerprint import hash_image
from rotating_features.features.vit import open_vit

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class Listed(NamedTuple):
    """A backbone one can ask for by a short name."""

    about: str
    open: Callable[..., Backbone]
    arguments: dict[str, Any]
    side: int = 224
    """Of images that give a grid of 14 x 14, the paper's."""


def _vit(source: str, about: str) -> Listed:
    return Listed(about, open_vit, {"source": source}, 196 if "dinov2" in source else 224)


def _efficientnet(stride: int, about: str) -> Listed:
    return Listed(about, open_efficientnet, {"stride": stride}, 14 * stride)


BACKBONES: dict[str, Listed] = {
    "dino-vits16": _vit("facebook/dino-vits16", "DINO ViT-S/16, self-supervised"),
    "dino-vitb16": _vit("facebook/dino-vitb16", "DINO ViT-B/16, self-supervised, the paper's"),
    "dinov2-small": _vit("facebook/dinov2-small", "DINOv2 ViT-S/14, self-supervised"),
    "dinov2-base": _vit("facebook/dinov2-base", "DINOv2 ViT-B/14, self-supervised"),
    "dinov2-base-registers": _vit(
        "facebook/dinov2-with-registers-base", "DINOv2 ViT-B/14 with registers, self-supervised"
    ),
    "dinov3-vits16": _vit(
        "facebook/dinov3-vits16-pretrain-lvd1689m", "DINOv3 ViT-S/16, self-supervised"
    ),
    "dinov3-vitb16": _vit(
        "facebook/dinov3-vitb16-pretrain-lvd1689m", "DINOv3 ViT-B/16, self-supervised"
    ),
    "efficientnet-lite0-s16": _efficientnet(
        16, "EfficientNet-Lite0, supervised with ImageNet's labels, 14 x 14 at 224 pixels"
    ),
    "efficientnet-lite0-s32": _efficientnet(
        32, "EfficientNet-Lite0, supervised with ImageNet's labels, 14 x 14 at 448 pixels"
    ),
}


def open_backbone(
    name: str | Path,
    *,
    position_embedding: bool = True,
    class_token: bool = True,
    dtype: torch.dtype | str | None = None,
    device: str | torch.device = "cpu",
) -> Backbone:
    """A frozen backbone, ready to use. ``open_backbone(**backbone.spec)`` opens it again.

    Args:
        name: One of ``BACKBONES``, a name on the hub (``owner/model``), or a folder with a model
            of ``transformers``.
        position_embedding, class_token: See :func:`~rotating_features.features.vit.open_vit`.
            Both False is what the paper's code did.
        dtype: The type it computes in, float32 by default; bfloat16 is faster on a GPU.
        device: Where it should live.
    """
    dtype = _dtype(dtype)
    name = str(name)
    with suppress(RuntimeError):  # a home of nobody is no folder
        if (folder := Path(name).expanduser()).is_dir():
            name = str(folder.absolute())
    listed = BACKBONES.get(name) or _unlisted(name)
    options: dict[str, Any] = {}
    if listed.open is open_vit:
        options = {"position_embedding": position_embedding, "class_token": class_token}
    elif not (position_embedding and class_token):
        raise InputError(
            f"{name} is no vision transformer: it has no position embedding or class token to "
            "leave out.\n  Use position_embedding=True and class_token=True."
        )
    backbone = listed.open(**listed.arguments, name=name, **options, dtype=dtype, device=device)
    short = None if dtype is None else str(dtype).removeprefix("torch.")
    backbone.spec = {"name": name, **options, "dtype": short}
    return backbone


def about(name: str) -> str:
    """What a backbone is, in a few words, for results; of one that is not listed, its name."""
    return f"{name} ({BACKBONES[name].about})" if name in BACKBONES else name


def _unlisted(name: str) -> Listed:
    if Path(name).is_dir() or (HUB_NAME.fullmatch(name) and name[0] != "."):
        return _vit(name, "")
    raise InputError(
        f"There is no folder or backbone {name!r}.\n"
        f"  Backbones: {', '.join(BACKBONES)}; or a model on the hub as owner/name; or the path of "
        "a folder with config.json and model.safetensors."
    )


def _dtype(dtype: torch.dtype | str | None) -> torch.dtype | None:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if dtype is not None and not (isinstance(found, torch.dtype) and found.is_floating_point):
        raise InputError(f"dtype should be float32, bfloat16 or float16, got {dtype!r}.")
    return found


__all__ = [
    "BACKBONES",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Backbone",
    "FeatureCache",
    "Key",
    "Listed",
    "Spec",
    "about",
    "cached",
    "hash_image",
    "open_backbone",
    "open_efficientnet",
    "open_vit",
]
