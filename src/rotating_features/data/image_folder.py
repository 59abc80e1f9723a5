"""Any images: files, and folders searched through."""

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.decode import EXTENSIONS, check_file, is_output, looks_like_image
from rotating_features.data.photographs import Files, PhotographFiles


class ImageFolder(PhotographFiles):
    """Images of your own, without masks.

    Folders are searched through, see :func:`search`. A file that can be reached in several ways
    counts once. Nothing is opened yet.

    Args:
        paths: Folders and files, or one of them.
    """

    def __init__(self, paths: str | Path | Iterable[str | Path]) -> None:
        one = isinstance(paths, str | Path)
        given = [Path(path) for path in ([paths] if one else paths)]
        found: dict[str, Path] = {}
        for path in given:
            if not path.exists():
                raise InputError(f"There is no image or folder {path}.")
            check_file(path)
            for image in search(path) if path.is_dir() else [path]:
                place = os.path.realpath(image)
                if place not in found or not image.is_symlink():
                    found[place] = image
        if not found:
            raise InputError(
                f"No images found in {', '.join(map(str, given)) or 'nothing'}; "
                f"wanted files ending in {', '.join(sorted(EXTENSIONS))}."
            )
        super().__init__([Files(str(path), path) for path in found.values()])


def search(top: Path) -> list[Path]:
    """Image files in a folder and those inside it, sorted; links to folders are followed last.

    So a file is found at its own place, if that is in here, and only then where a link puts it.
    Hidden ones are passed over, and so is what this package wrote. A folder inside that may not be
    read counts as a file: whoever opens it is told so.
    """
    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    folders, links = deque([top]), deque[Path]()
    while folders or links:
        folder = (folders or links).popleft()
        try:
            place = folder.stat()
            if (place.st_dev, place.st_ino) in seen:
                continue
            seen.add((place.st_dev, place.st_ino))
            inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
            are_folders = [entry.is_dir() for entry in inside]
        except OSError as error:
            if folder == top:
                raise InputError(f"The folder {top} cannot be searched: {error}") from error
            found.append(folder)
            continue
        for entry, is_folder in zip(inside, are_folders, strict=True):
            if is_folder:
                (links if entry.is_symlink() else folders).append(entry)
            elif looks_like_image(entry) and not is_output(entry):
                found.append(entry)
    return sorted(found)
