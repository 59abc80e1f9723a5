"""Pascal VOC 2012: photographs of everyday objects, with masks of instances and of classes."""

from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.photographs import Files, PhotographFiles
from rotating_features.data.sample import SPLITS, Split

FOLDER = Path("data/voc2012")
"""Where the files are looked for unless a folder is given."""

LISTS: dict[Split, str] = {"train": "trainaug", "val": "val", "test": "val"}

CLASSES = (
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "dining table",
    "dog",
    "horse",
    "motorbike",
    "person",
    "potted plant",
    "sheep",
    "sofa",
    "train",
    "tv monitor",
)
"""Class ``i`` of a mask is ``CLASSES[i - 1]``."""


class PascalVoc(PhotographFiles):
    """Photographs of Pascal VOC 2012, as published (``VOCtrainval_11-May-2012.tar``).

    Training is on ``trainaug``, 10,582 photographs: the 1,464 of the official training set and
    9,118 that the SBD dataset (Hariharan et al., 2011) has masks for. Those masks are not read,
    so photographs that only SBD has masks for come with None. The masks of VOC's test set are not
    public, so ``"val"`` and ``"test"`` both are its 1,449 photographs for validation.

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``.
        folder: ``VOC2012``, the folder ``VOCdevkit`` that has it, or the one that has that;
            ``data/voc2012`` by default.
        names: Another list of photographs: one of ``ImageSets/Segmentation``, such as ``"train"``
            for the official training set alone, or a file ending in ``.txt``.
    """

    def __init__(
        self,
        split: Split,
        folder: str | Path | None = None,
        *,
        names: str | Path | None = None,
    ) -> None:
        if split not in SPLITS:
            raise InputError(f"split should be one of {list(SPLITS)}, got {split!r}.")
        self.split: Split = split
        self.folder = find_voc(FOLDER if folder is None else Path(folder))
        listed = _read_names(self.folder, LISTS[split] if names is None else names)
        super().__init__(_find_files(self.folder, listed), highest_class=len(CLASSES))
        if split != "train":
            _need_masks(self.files)


def find_voc(folder: Path) -> Path:
    """The folder ``VOC2012`` at, in or below ``folder``."""
    for candidate in (folder, folder / "VOC2012", folder / "VOCdevkit" / "VOC2012"):
        if (candidate / "JPEGImages").is_dir():
            return candidate
    raise InputError(
        f"There is no Pascal VOC 2012 in {folder.absolute()}: neither it nor VOC2012 or "
        "VOCdevkit/VOC2012 in it has a folder JPEGImages.\n"
        f"  Unpack VOCtrainval_11-May-2012.tar there, or name the folder in which it is."
    )


def _read_names(folder: Path, names: str | Path) -> list[str]:
    lists = folder / "ImageSets" / "Segmentation"
    path = Path(names) if str(names).endswith(".txt") else lists / f"{names}.txt"
    if not path.is_file():
        raise InputError(f"There is no list of photographs {path.absolute()}.\n  {_advice(path)}")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a list of photographs: {error}") from error
    # Some lists of trainaug have the paths of a photograph and its mask on each line.
    listed = [Path(line.split()[0]).stem for line in lines if line.strip()]
    if not listed:
        raise InputError(f"{path} should list photographs, one a line, but is empty.")
    return list(dict.fromkeys(listed))


def _advice(path: Path) -> str:
    if path.stem != "trainaug":
        return "It is part of VOCtrainval_11-May-2012.tar."
    return (
        "The list of trainaug, 10,582 names such as 2007_000032, is not part of VOC itself; it is "
        "published with many\n  projects on segmentation. Put it there."
    )


def _find_files(folder: Path, names: list[str]) -> list[Files]:
    """Folders are listed once: asking for ten thousand files one by one takes its time."""
    photographs = {path.stem: path for path in (folder / "JPEGImages").glob("*.jpg")}
    instances = {path.stem: path for path in (folder / "SegmentationObject").glob("*.png")}
    classes = {path.stem: path for path in (folder / "SegmentationClass").glob("*.png")}
    if missing := [name for name in names if name not in photographs]:
        raise InputError(
            f"{len(missing)} of {len(names)} photographs are not in {folder / 'JPEGImages'}, "
            f"the first of them {missing[0]}.jpg.\n"
            "  Unpack VOCtrainval_11-May-2012.tar again, or list only those you have."
        )
    return [
        Files(name, photographs[name], instances.get(name), classes.get(name)) for name in names
    ]


def _need_masks(files: tuple[Files, ...]) -> None:
    """A score is over the whole split or none."""
    for kind, folder in (("instances", "SegmentationObject"), ("classes", "SegmentationClass")):
        if missing := [one for one in files if getattr(one, kind) is None]:
            where = missing[0].image.parents[1] / folder / f"{missing[0].name}.png"
            raise InputError(
                f"{len(missing)} of {len(files)} photographs have no mask of {kind}, the first of "
                f"them {where}.\n  Unpack VOCtrainval_11-May-2012.tar again."
            )
