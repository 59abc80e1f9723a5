"""All overlays of a folder on a few pages, to be looked through."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from rotating_features._files import replacing
from rotating_features.data.decode import OUTPUTS, REPORT
from rotating_features.data.workers import in_order
from rotating_features.segment.files import SHEET, output, pages
from rotating_features.segment.journal import read_lines

COLUMNS, ROWS = 8, 8
SIDE, GAP, TEXT = 192, 12, 22
PAPER, INK = (255, 255, 255), (40, 44, 52)


def write_sheet(out: Path) -> None:
    """Draw the overlays of all images of the report, unless that was done since it last changed.

    Pages are ``contact-sheet.png``, ``contact-sheet-2.png``, and so on.
    """
    names = [(line["name"], line["objects"]) for line in read_lines(out / REPORT)]
    at_once = COLUMNS * ROWS
    wanted = [page_path(out, i) for i in range(-(-len(names) // at_once))]
    changed = (out / REPORT).stat().st_mtime_ns
    if all(path.exists() and path.stat().st_mtime_ns >= changed for path in wanted):
        wanted = []

    def write(i: int) -> None:
        page = draw_page(out, names[i * at_once :][:at_once])
        with replacing(wanted[i]) as partial:
            page.save(partial, format="PNG", compress_level=3)

    for _ in in_order(len(wanted), write):
        pass
    for path in set(pages(out)) - {page_path(out, i) for i in range(-(-len(names) // at_once))}:
        path.unlink()


def page_path(out: Path, index: int) -> Path:
    """Where page ``index``, from 0, goes."""
    return out / (SHEET if index == 0 else SHEET.replace(".png", f"-{index + 1}.png"))


def draw_page(out: Path, names: Sequence[tuple[str, int]]) -> Image.Image:
    """Thumbnails in rows, each with its name and number of objects below."""
    columns, rows = min(COLUMNS, len(names)), -(-len(names) // COLUMNS)
    width, height = SIDE + GAP, SIDE + TEXT + GAP
    page = Image.new("RGB", (GAP + columns * width, GAP + rows * height), PAPER)
    draw, font = ImageDraw.Draw(page), _font()
    for i, (name, objects) in enumerate(names):
        left, top = GAP + i % COLUMNS * width, GAP + i // COLUMNS * height
        small = _thumbnail(output(out, Path(name), OUTPUTS[1]))
        page.paste(small, (left + (SIDE - small.width) // 2, top + (SIDE - small.height) // 2))
        label = _shorten(_printable(name), f" · {objects}", draw, font)
        draw.text((left + SIDE // 2, top + SIDE + 4), label, INK, font, anchor="ma")
    return page


def _font() -> ImageFont.FreeTypeFont:
    """One with Latin, Greek and Cyrillic letters, and boxes for Chinese; Pillow's has English."""
    from matplotlib import get_data_path  # slow to import

    return ImageFont.truetype(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), 11)


def _thumbnail(path: Path) -> Image.Image:
    """An overlay made small; the decoder itself leaves out what would not be seen."""
    try:
        with Image.open(path) as file:
            file.draft("RGB", (SIDE, SIDE))
            file.thumbnail((SIDE, SIDE))
            return file.convert("RGB")
    except OSError:  # taken away since: its place stays empty
        return Image.new("RGB", (1, 1), PAPER)


def _shorten(
    name: str,
    tail: str,
    draw: ImageDraw.ImageDraw,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
) -> str:
    """The name's end, as far as there is room: that is where names differ."""
    text, start = name + tail, 0
    while draw.textlength(text, font) > SIDE and start < len(name):
        start += 1
        text = ".." + name[start:] + tail
    return text


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)
