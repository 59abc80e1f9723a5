"""Image files of any kind as RGB pictures."""

import warnings
from pathlib import Path
from threading import Lock

import numpy as np
from PIL import Image, ImageOps

from rotating_features._check import InputError

EXTENSIONS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"})
"""How files end that are taken for images when a folder is searched."""

_opening = Lock()


def looks_like_image(entry: Path) -> bool:
    """Whether what a search has found is to be opened.

    A link to nothing is, too, so that it will be named; a pipe is not, or one would wait for it.
    """
    return entry.suffix.lower() in EXTENSIONS and (entry.is_file() or not entry.exists())


def open_image(path: str | Path) -> Image.Image:
    """The picture in a file: upright, RGB, 8 bits a channel, on white where it is transparent.

    Raises:
        InputError: If it cannot be read, whatever the reason; the message names the file.
    """
    try:
        with open_file(path) as file:
            file.load()
            ImageOps.exif_transpose(file, in_place=True)  # otherwise a copy, and pictures are large
            return as_rgb(file)
    except Exception as error:  # what decoders raise on damaged files knows no bounds
        raise InputError(f"{path} cannot be read as an image: {error}") from error


def open_file(path: str | Path) -> Image.Image:
    """The file, opened, its size known and its pixels not yet read; large is no mistake.

    Which warnings are given is a matter of the whole process, so threads open one at a time.
    """
    with _opening, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(path)


def as_rgb(picture: Image.Image) -> Image.Image:
    """The picture as RGB, on white where it is transparent."""
    picture = eight_bits(picture)
    if not picture.has_transparency_data:
        return picture if picture.mode == "RGB" else picture.convert("RGB")
    clear = picture.convert("RGBA")
    white = Image.new("RGBA", clear.size, "white")
    return Image.alpha_composite(white, clear).convert("RGB")


def eight_bits(picture: Image.Image) -> Image.Image:
    """The picture with 8 bits a channel; Pillow itself would clip 16-bit greys to white."""
    if not picture.mode.startswith("I"):
        return picture
    return Image.fromarray((np.asarray(picture) / 257).round().clip(0, 255).astype(np.uint8))
