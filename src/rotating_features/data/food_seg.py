"""FoodSeg103: photographs of dishes, with masks of their ingredients."""

from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.photographs import Files, PhotographFiles
from rotating_features.data.sample import SPLITS, Split

FOLDER = Path("data/foodseg103")
"""Where the files are looked for unless a folder is given."""

PARTS: dict[Split, str] = {"train": "train", "val": "test", "test": "test"}
CLASSES = 103
CATEGORIES = "category_id.txt"


class FoodSeg103(PhotographFiles):
    """FoodSeg103 (Wu et al., 2021), as published: 4,983 photographs to train on, 2,135 to test on.

    Its masks have classes alone, 1 to 103 and 0 for the background: what is not labelled and what
    is no food are not told apart, and two eggs are one. There is no third part, so ``"val"`` is
    the same as ``"test"``.

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``.
        folder: The one with ``img_dir`` and ``ann_dir``, or up to two above it;
            ``data/foodseg103`` by default.
    """

    def __init__(self, split: Split, folder: str | Path | None = None) -> None:
        if split not in SPLITS:
            raise InputError(f"split should be one of {list(SPLITS)}, got {split!r}.")
        self.split: Split = split
        self.folder = find_food_seg(FOLDER if folder is None else Path(folder))
        super().__init__(_find_files(self.folder, PARTS[split]), highest_class=CLASSES)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Class ``i`` is ``class_names[i - 1]``; None without the dataset's ``category_id.txt``."""
        paths = (self.folder / CATEGORIES, self.folder.parent / CATEGORIES)
        path = next((path for path in paths if path.is_file()), None)
        return None if path is None else _read_categories(path)


def find_food_seg(folder: Path) -> Path:
    """The folder that has ``img_dir`` at, in or below ``folder``."""
    below = ("", "Images", "FoodSeg103", "FoodSeg103/Images")
    for candidate in (folder / part for part in below):
        if (candidate / "img_dir").is_dir():
            return candidate
    raise InputError(
        f"There is no FoodSeg103 in {folder.absolute()}: neither it nor "
        f"{' or '.join(below[1:])} in it has a folder img_dir.\n"
        "  Unpack FoodSeg103.zip there, or name the folder in which it is."
    )


def _find_files(folder: Path, part: str) -> list[Files]:
    """All photographs there are; the dataset's own lists name the same."""
    pictures, masks = folder / "img_dir" / part, folder / "ann_dir" / part
    photographs = sorted(pictures.glob("*.jpg"))
    if not photographs:
        raise InputError(f"There are no photographs (*.jpg) in {pictures}.\n  {_ADVICE}")
    there = {path.stem: path for path in masks.glob("*.png")}
    if missing := [path for path in photographs if path.stem not in there]:
        raise InputError(
            f"{len(missing)} of {len(photographs)} photographs in {pictures} have no mask, "
            f"the first of them {masks / missing[0].stem}.png.\n  {_ADVICE}"
        )
    return [Files(path.stem, path, None, there[path.stem]) for path in photographs]


def _read_categories(path: Path) -> tuple[str, ...]:
    """Lines of a number and a name, from 0 on, which is the background."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        names = {
            int(number): name.strip() for number, name in (s.split(None, 1) for s in lines if s)
        }
        return tuple(names[number] for number in range(1, CLASSES + 1))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} should have a number and a name on each line, 0 to {CLASSES}, "
            f"but could not be read: {error}.\n  {_ADVICE}"
        ) from error


_ADVICE = "Unpack FoodSeg103.zip again; nothing in it should be renamed."
