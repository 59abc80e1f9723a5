"""One feature map as a file that knows whether it is whole."""

import hashlib
import zlib
from typing import NamedTuple

import torch
from safetensors.torch import load, save
from torch import Tensor

from rotating_features._check import InputError, check_shape
from rotating_features.features.fingerprint import raw

STORED = (torch.float32, torch.bfloat16, torch.float16)


class Key(NamedTuple):
    """What the features of an image depend on."""

    weights: str
    """``Backbone.fingerprint()``."""
    transform: str
    """What was done to the image, in any words that are the same each time and for that only."""
    image: str
    """``hash_image`` of the image before that."""

    def digits(self) -> str:
        """40 digits for a file's name."""
        return hashlib.sha256("\0".join(self).encode()).hexdigest()[:40]


def encode(features: Tensor) -> bytes:
    """A safetensors file with (c, h, w) features in the type they have, and their checksum."""
    check_shape("features", features, "c h w")
    if features.dtype not in STORED:
        kinds = ", ".join(str(dtype).removeprefix("torch.") for dtype in STORED)
        raise InputError(f"features should be of {kinds}, got {features.dtype}.")
    features = features.detach().cpu().contiguous()
    return save({"features": features, "checksum": torch.tensor(_checksum(features))})


def decode(content: bytes) -> Tensor | None:
    """The features in a file, or None if it is damaged."""
    try:
        entry = load(content)
        features, checksum = entry["features"], int(entry["checksum"])
    except Exception:  # damage shows in safetensors, its json or the numbers
        return None
    return features if checksum == _checksum(features) else None


def _checksum(features: Tensor) -> int:
    head = f"{features.dtype} {tuple(features.shape)} ".encode()
    return zlib.crc32(raw(features), zlib.crc32(head))
