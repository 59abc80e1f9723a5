"""Short names for large things: networks, images, features."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def fingerprint(module: nn.Module, settings: Mapping[str, Any]) -> str:
    """16 digits that change with a module's weights, its structure or ``settings``.

    They do not depend on the device it is on, or on the process that asks.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    digest.update(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(module)).encode())  # addresses in memory
    for name, weight in sorted(module.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode())
        digest.update(raw(weight))
    return digest.hexdigest()[:16]


def weights_id(module: nn.Module) -> str:
    """16 digits that stand for a module's weights, be they in float32 or rounded to bfloat16.

    Names are left out: they change with versions of the library that the module is from.
    """
    weights = (weight for weight in module.state_dict().values() if weight.is_floating_point())
    each = sorted(hash_image(weight.bfloat16()) for weight in weights)
    return hashlib.sha256("".join(each).encode()).hexdigest()[:16]


def hash_image(image: bytes | Tensor) -> str:
    """32 digits that stand for the bytes of an image file, or for a tensor with its shape."""
    if isinstance(image, Tensor):
        image = f"{image.dtype} {tuple(image.shape)} ".encode() + raw(image)
    return hashlib.sha256(image).hexdigest()[:32]


def raw(x: Tensor) -> bytes:
    """The bytes of a tensor, row after row; NumPy has no bfloat16 to ask."""
    return x.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
