"""Any images: files, and folders searched through."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.decode import EXTENSIONS, is_output, looks_like_image
from rotating_features.data.photographs import Files, PhotographFiles


class ImageFolder(PhotographFiles):
    """Images of your own, without masks.

    Folders are searched through, in the order of names, for files that end as images do; hidden
    ones are passed over, and so is what ``segment`` made. Links are followed, but no folder is
    searched twice. Nothing is opened yet.

    Args:
        paths: Folders and files, or one of them.
    """

    def __init__(self, paths: str | Path | Iterable[str | Path]) -> None:
        one = isinstance(paths, str | Path)
        given = [Path(path) for path in ([paths] if one else paths)]
        searched: set[tuple[int, int]] = set()
        found = [image for path in given for image in _search(path, searched)]
        if not found:
            raise InputError(
                f"No images found in {', '.join(map(str, given)) or 'nothing'}; "
                f"wanted files ending in {', '.join(sorted(EXTENSIONS))}."
            )
        super().__init__([Files(str(path), path) for path in dict.fromkeys(found)])


def _search(path: Path, searched: set[tuple[int, int]]) -> Iterator[Path]:
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"There is no image or folder {path}.")
        yield path
        return
    inside, folders = [], []
    for entry in _entries(path, searched):
        if entry.is_dir():
            folders.append(entry)
        elif looks_like_image(entry) and not is_output(entry):
            inside.append(entry)
    yield from inside
    for folder in folders:
        yield from _search(folder, searched)


def _entries(folder: Path, searched: set[tuple[int, int]]) -> list[Path]:
    """What a folder has, in order; nothing if it was searched before under any name."""
    try:
        status = folder.stat()
        if (status.st_dev, status.st_ino) in searched:
            return []
        searched.add((status.st_dev, status.st_ino))
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be searched: {error}") from error
