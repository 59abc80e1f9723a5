"""Image files of any kind as RGB pictures."""

import re
import warnings
from pathlib import Path
from threading import Lock

import numpy as np
from PIL import Image, ImageOps

from rotating_features._check import InputError

TELEPHONE = frozenset({".heic", ".heif"})
"""How photographs end that Pillow cannot read by itself; found, so that they are named."""
EXTENSIONS = TELEPHONE | {
    *(".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".jp2"),
    *(".tif", ".tiff", ".bmp", ".gif", ".webp", ".avif"),
}
"""How files end that are taken for images when a folder is searched."""
OUTPUTS = (".labels.png", ".overlay.jpg", ".uncertainty.png")
"""What comes after an image's name in those that ``segment`` makes of it."""
REPORT = "objects.jsonl"
"""What ``segment`` leaves in a folder that it has filled."""

_OUTPUT = re.compile(rf".+\..+({'|'.join(map(re.escape, OUTPUTS))})")
_PAGE = re.compile(r"contact-sheet(-\d+)?\.png")

_opening = Lock()


def is_output(path: Path) -> bool:
    """Whether ``segment`` made the file, so that nobody takes it for a photograph."""
    if is_page(path):
        return (path.parent / REPORT).exists()
    return _OUTPUT.fullmatch(path.name) is not None


def is_page(path: Path) -> bool:
    """Whether the file is called as pages of contact sheets are."""
    return _PAGE.fullmatch(path.name) is not None


def looks_like_image(entry: Path) -> bool:
    """Whether what a search has found is to be opened.

    A link to nothing is, too, so that it will be named; a pipe is not, or one would wait for it.
    """
    return entry.suffix.lower() in EXTENSIONS and (entry.is_file() or not entry.exists())


def check_file(path: Path) -> None:
    """Raise ``InputError`` for a pipe or a device: one would wait for it."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            f"{path} should be an image or a folder, but it is a pipe or a device.\n"
            "  Save what comes out of it as a file."
        )


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
        advice = ""
        if Path(path).suffix.lower() in TELEPHONE:
            advice = "\n  Pillow does not know HEIC: convert it to JPEG."
        raise InputError(f"{path} cannot be read as an image: {error}{advice}") from error


def open_file(path: str | Path) -> Image.Image:
    """The file, opened, its size known and its pixels not yet read.

    Large is no mistake, up to Pillow's limit of 179 megapixels.

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
    """The picture with 8 bits a channel; Pillow itself would clip 16-bit greys to white.

    White is 1 of floats that go no higher, which Pillow would turn to black, and 255 of others.
    It is 255 of 32-bit integers that go no higher, and 65535 of others.
    """
    if picture.mode.startswith("I;16"):
        values = np.asarray(picture) / 257
    elif picture.mode == "I":
        values = np.asarray(picture)
        if values.min() < 0 or values.max() > 65535:
            raise _out_of_range("32-bit integers", "0..255 or 0..65535", values)
        values = values / 257 if values.max() > 255 else values
    elif picture.mode == "F":
        values = np.asarray(picture)
        if not (values.min() > -1 and values.max() < 256):  # also true of nan; resizing overshoots
            raise _out_of_range("floats", "[0, 1] or [0, 255]", values)
        values = values * 255 if values.max() <= 1.1 else values
    else:
        return picture
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def _out_of_range(kind: str, wanted: str, values: np.ndarray) -> InputError:
    return InputError(
        f"pixels that are {kind} should lie in {wanted}, got {values.min():.6g} "
        f"to {values.max():.6g}.\n  Save it with 8 or 16 bits a channel."
    )
