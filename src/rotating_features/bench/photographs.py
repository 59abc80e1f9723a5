"""What benchmarks of photographs need: made-up photographs, and backbones without a download."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from rotating_features.data.packed import Packed
from rotating_features.features import Backbone, open_backbone
from rotating_features.features.efficientnet import PACKAGES
from rotating_features.features.vit import KINDS, Patches
from rotating_features.models.on_features import suitable_dtype

PATCH = 16
OCTAVES = {4: 70.0, 16: 40.0, 64: 20.0, 256: 40.0}
"""How many patches a photograph has from left to right, by how strongly they differ."""


def write_photographs(folder: Path, count: int, size: tuple[int, int] = (500, 375)) -> None:
    """Made-up photographs: noise, coarse and fine, as JPEG files.

    They have VOC's size in pixels and, at some 80 kB, in bytes, on which decoding depends.
    """
    rng = np.random.default_rng(0)
    for i in range(count):
        pixels = np.full((size[1], size[0], 3), 128.0)
        for across, strength in OCTAVES.items():
            coarse = rng.random((across * size[1] // size[0], across, 3)).astype(np.float32) - 0.5
            for channel in range(3):
                plane = Image.fromarray(coarse[..., channel])
                pixels[..., channel] += (
                    2 * strength * np.asarray(plane.resize(size, Image.Resampling.BICUBIC))
                )
        picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        picture.save(folder / f"{i:06}.jpg", quality=90)


def packed_noise(count: int, side: int) -> Packed:
    """Photographs of noise, a third wider than high, as training keeps them."""
    height, width = side, side * 4 // 3
    pixels = torch.randint(256, (count * height * width, 3), dtype=torch.uint8)
    heights, widths = torch.full((count,), height), torch.full((count,), width)
    names = [str(i) for i in range(count)]
    return Packed(pixels, heights, widths, names, side=side)


def random_vit(
    width: int,
    *,
    layers: int = 12,
    side: int = 224,
    dtype: torch.dtype | None = None,
    device: str | torch.device = "cpu",
) -> Backbone:
    """A vision transformer such as DINO's, with patches of 16 pixels and random weights.

    A width of 384 makes it ViT-S, one of 768 ViT-B.
    """
    import transformers  # an extra, and seconds to import

    kind = KINDS["vit"]
    config = transformers.ViTConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width,
        image_size=side,
        patch_size=PATCH,
    )
    model: Any = transformers.ViTModel(config, **kind.build)
    setattr(model, kind.norm, nn.Identity())
    patches = Patches(model, patch=PATCH, skip=1, call=kind.call)
    name = f"random ViT of width {width}"
    return Backbone(patches, channels=width, stride=PATCH, name=name, dtype=dtype).to(device)


def has_efficientnet() -> bool:
    """Whether the packages with EfficientNet-Lite0 are here."""
    return all(find_spec(package) is not None for package in PACKAGES)


def small_backbone(device: torch.device) -> Backbone:
    """EfficientNet-Lite0 if it is here, and a random ViT-S/16 otherwise."""
    dtype = suitable_dtype(device)
    if has_efficientnet():
        return open_backbone("efficientnet-lite0-s16", dtype=dtype, device=device)
    return random_vit(384, dtype=dtype, device=device)
