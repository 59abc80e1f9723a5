"""Which images to segment, and what their outputs are called."""

import glob
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.decode import EXTENSIONS, check_file, is_output, looks_like_image
from rotating_features.data.image_folder import search
from rotating_features.segment.files import check_same_image


def find_images(paths: Iterable[str | Path]) -> list[tuple[Path, Path]]:
    """Image files in ``paths``, each with the name its output gets.

    Folders are searched through, links among them; a folder that can be reached in several ways,
    or through itself, is searched once. Patterns such as ``photos/*.jpg`` are those of the shell,
    ``**`` being any number of folders. What this package wrote is left out.

    A name is relative to the folder that was given, or to a pattern's part without wildcards.
    """
    paths = [Path(path) for path in paths]
    sources: dict[Path, Path] = {}
    for source, name in (pair for path in paths for pair in _expand(path)):
        if is_output(source):
            continue
        other = sources.setdefault(name, source)
        check_same_image(other, source, name)
    if not sources:
        raise InputError(
            f"No images found in {', '.join(map(str, paths))}; "
            f"wanted files ending in {', '.join(sorted(EXTENSIONS))}, and none that segment wrote."
        )
    return [(source, name) for name, source in sources.items()]


def _expand(path: Path) -> Iterator[tuple[Path, Path]]:
    if path.is_dir():
        yield from ((found, found.relative_to(path)) for found in search(path))
    elif os.path.lexists(path):
        check_file(path)
        yield path, Path(path.name)
    elif not glob.has_magic(str(path)):
        raise InputError(f"There is no image or folder {path}.")
    else:
        plain = next(i for i, part in enumerate(path.parts) if glob.has_magic(part))
        base = Path(*path.parts[:plain])
        found = _match(path)
        if not found:
            raise InputError(f"There is no image or folder like {path}.")
        yield from ((source, source.relative_to(base)) for source in found)


def _match(pattern: Path) -> list[Path]:
    """Images that a pattern means, or that are in folders it means.

    Python's own ``**`` runs round where folders are linked to each other, so it is ours.
    """
    parts = pattern.parts
    deep = parts.index("**") if "**" in parts else len(parts)
    tail = parts[deep:]
    found: set[Path] = set()
    for match in map(Path, glob.glob(str(Path(*parts[:deep])))):  # noqa: PTH207 (any root)
        if match.is_dir():
            found.update(p for p in search(match) if _fits(p.relative_to(match).parts, tail))
        elif looks_like_image(match) and not tail:
            found.add(match)
    return sorted(found)


def _fits(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a pattern means a path inside a folder, or a folder on the way to it."""
    if not pattern or not path:
        return not pattern
    if pattern[0] == "**":
        return _fits(path, pattern[1:]) or _fits(path[1:], pattern)
    return fnmatch(path[0], pattern[0]) and _fits(path[1:], pattern[1:])
