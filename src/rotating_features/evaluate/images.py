"""Images of any kind as one float tensor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from rotating_features._check import InputError, check_image_values
from rotating_features.data.decode import as_rgb, eight_bits

Images = Tensor | np.ndarray | Image.Image | Sequence[Any]
"""One image or several: torch (c, h, w), NumPy (h, w, c), either without c if grey, or PIL."""


def as_batch(images: Images, channels: int) -> tuple[Tensor, bool]:
    """Images as a (b, c, h, w) float32 tensor in [0, 1], and whether it was a single one."""
    if isinstance(images, str | Path):
        raise TypeError(f"Images should be opened first, with PIL.Image.open({str(images)!r}).")
    if isinstance(images, Tensor | np.ndarray | Image.Image):
        x = _as_tensor(images, channels)
        single = x.ndim == 3
        x = x.unsqueeze(0) if single else x
    else:
        single = False
        items = [_as_tensor(image, channels) for image in images]
        sizes = sorted({tuple(item.shape) for item in items})
        if len(sizes) > 1:
            raise InputError(
                f"Images of one call should have one size, got {sizes}.\n"
                "  Resize them first, or call once for each size."
            )
        if items and items[0].ndim != 3:
            raise InputError(f"A list should hold single images, got shape {sizes[0]} in it.")
        x = torch.stack(items) if items else torch.empty(0, channels, 1, 1)
    if 0 in x.shape:
        raise InputError(f"There should be at least one image with pixels, got {tuple(x.shape)}.")
    if x.shape[1] != channels:
        raise InputError(
            f"The model wants images of {channels} channel{'s'[: channels > 1]}, "
            f"got {x.shape[1]} (shape {tuple(x.shape)})."
        )
    check_image_values("images", x)
    if (high := float(x.max())) > 1:
        raise InputError(
            f"Pixels should lie in [0, 1] as floats or in 0..255 as uint8, got a maximum of "
            f"{high:.4g}.\n  Divide by 255, or pass uint8."
        )
    return x, single


def _as_tensor(image: Tensor | np.ndarray | Image.Image, channels: int) -> Tensor:
    """A (c, h, w) or (b, c, h, w) float tensor."""
    if isinstance(image, Image.Image):
        if channels not in (1, 3):
            raise InputError(f"The model wants {channels} channels; pass a tensor, not a picture.")
        image = np.asarray(eight_bits(image).convert("L") if channels == 1 else as_rgb(image))
    if isinstance(image, np.ndarray):
        x = torch.from_numpy(np.array(image))  # a copy: pictures lend out read-only memory
        if x.ndim == 2 or (x.ndim == 3 and channels == 1 and x.shape[-1] not in (1, 3, 4)):
            x = x.unsqueeze(-1)  # grey, the channel left out
        x = x.movedim(-1, -3) if x.ndim in (3, 4) else x
    elif isinstance(image, Tensor):
        x = image.detach()
        x = x.unsqueeze(0) if x.ndim == 2 else x
        if x.ndim == 3 and channels == 1 and len(x) not in (1, 3, 4):
            x = x.unsqueeze(1)  # several grey images; three or four would be a colour image
    else:
        raise TypeError(f"An image should be a tensor, an array or a picture, got {type(image)}.")
    if x.ndim not in (3, 4):
        raise InputError(
            f"An image should have 2 axes (grey) or 3, several of them 4, got {tuple(x.shape)}."
        )
    if x.dtype == torch.uint8:
        return x.float() / 255
    if x.dtype == torch.bool or x.is_floating_point():
        return x.float()
    raise InputError(f"Pixels should be uint8, bool or float, got {x.dtype}.")
