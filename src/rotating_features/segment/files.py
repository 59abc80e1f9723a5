"""What is written for each image, and how it is told from images."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data.decode import OUTPUTS, REPORT, is_page
from rotating_features.segment.blocks import Blocks

SUMMARY, COCO, SHEET = "report.json", "coco.json", "contact-sheet.png"
STRENGTH = 0.55
"""How much of an overlay is label."""


def output(out: Path, name: Path, ending: str) -> Path:
    """Where an image's file goes: that of ``photo.jpg`` is called ``photo.jpg.labels.png``."""
    return out / name.with_name(name.name + ending)


def pages(out: Path) -> list[Path]:
    """All pages of the contact sheet."""
    return [path for path in out.glob("contact-sheet*.png") if is_page(path)]


def check_folder(out: Path, names: Iterable[Path]) -> None:
    """Raise ``InputError`` if what we write for these images would replace somebody else's."""
    if out.exists() and not out.is_dir():
        raise InputError(f"The output should go to a folder, but {out} is a file.")
    if (out / REPORT).exists():
        return
    files = (output(out, name, ending) for name in names for ending in OUTPUTS)
    for path in (out / COCO, out / SUMMARY, *pages(out), *files):
        if os.path.lexists(path):  # also of a name that is too long, and will be said to be
            raise InputError(
                f"{path} would be overwritten, and it is not from here: there is no {REPORT}.\n"
                "  Choose another folder for the output."
            )


def check_same_image(one: str | Path, other: Path, name: str | Path) -> None:
    """Raise ``InputError`` if these, whose files would have the same names, are two images."""
    if os.path.realpath(one) != os.path.realpath(other):
        raise InputError(
            f"{one} and {other} would both be written as {name}.\n"
            "  Segment them one after the other, into two folders."
        )


def write_pictures(out: Path, name: Path, blocks: Blocks, picture: Image.Image) -> None:
    """Label map and uncertainty, of the image's size, and the overlay, of the picture's.

    Label maps are PNG at level 3 and uncertainty at level 1, whatever the size: higher levels take
    two to five times as long for a fifth less. Overlays are JPEG, 25 to 90 times as fast as PNG and
    a sixth of its size.

    Args:
        out: Folder for everything.
        name: Of the image, relative to it.
        blocks: Its label map and uncertainty.
        picture: The image, perhaps made smaller.
    """
    mask = Image.fromarray(blocks.paint())
    mask.putpalette(_palette())
    with replacing(output(out, name, OUTPUTS[0])) as partial:
        mask.save(partial, format="PNG", compress_level=3)
    colors = mask.resize(picture.size, Image.Resampling.NEAREST).convert("RGB")
    del mask
    with replacing(output(out, name, OUTPUTS[1])) as partial:
        Image.blend(picture, colors, STRENGTH).save(partial, format="JPEG", quality=85)
    doubt = Image.fromarray(blocks.paint_uncertainty())
    with replacing(output(out, name, OUTPUTS[2])) as partial:
        doubt.save(partial, format="PNG", compress_level=1)


def _palette() -> list[int]:
    """Colours of labels 0..255, as all our pictures have them."""
    from rotating_features.plots.colors import color_labels  # and with it matplotlib, which is slow

    return color_labels(torch.arange(256)).astype(np.uint8).ravel().tolist()
