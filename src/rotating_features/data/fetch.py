"""Files from elsewhere: fetched in pieces, checked, and only then given their name."""

import base64
import hashlib
import http.client
import os
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rotating_features._check import InputError
from rotating_features._files import SUFFIX
from rotating_features.data.crc32c import crc32c
from rotating_features.data.remote import FILES, RemoteFile, by_hand, missing

__all__ = ["FILES", "Progress", "RemoteFile", "fetch", "missing"]

Progress = Callable[[int, "int | None"], object]
"""Told the bytes that are here, and the bytes there will be where this is known."""

PIECE = 1 << 20
TIMEOUT = 30


class _FetchError(Exception):
    """Why a file could not be had from one place."""


def fetch(file: RemoteFile, folder: str | Path, progress: Progress | None = None) -> Path:
    """The path of ``file`` in ``folder``, fetched first if it is not there.

    A file that is there is checked as far as its size and checksum are known. What a broken
    connection leaves has ``.partial`` behind its name, and the next call goes on from there.

    Raises:
        InputError: No place gave a file that is whole and right, or a wrong one is in the way.
    """
    path = Path(folder) / file.name
    if path.exists():
        try:
            _check(file, path, {})
        except _FetchError as error:
            raise InputError(
                f"{path} is not the file it should be: {error}.\n  Remove it, then try again."
            ) from error
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + SUFFIX)
    failures = []
    for url in file.urls:
        problem = _fetch_from(url, file, partial, progress)
        if problem is None:
            partial.replace(path)
            return path
        failures.append(f"  {url}: {problem}.")
    raise InputError("\n".join([f"{file.name} could not be had.", *failures, by_hand(file, path)]))


def _fetch_from(
    url: str, file: RemoteFile, partial: Path, progress: Progress | None
) -> _FetchError | None:
    """Fill ``partial`` from ``url``, going on while each try gets further; what went wrong."""
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        try:
            headers = _download(url, partial, before, progress)
        except _FetchError as error:
            if partial.exists() and partial.stat().st_size > before:
                continue
            return error
        try:
            _check(file, partial, _declared(headers))
        except _FetchError as error:
            partial.unlink()
            if not before:
                return error
            continue  # perhaps it was the beginning, fetched earlier, that was wrong
        return None


def _download(url: str, partial: Path, have: int, progress: Progress | None) -> Message:
    """Add to the first ``have`` bytes what follows them; the headers of the answer."""
    have = max(have - 1, 0)  # the last is asked for again: a part that is whole gets an answer, too
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        if have and error.code == 416:  # longer than the file, so no part of it
            partial.unlink()
            return _download(url, partial, 0, progress)
        raise _FetchError(f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _FetchError(f"no answer ({getattr(error, 'reason', error)})") from error
    with response:
        start = have if response.status == 206 else 0  # 200: the whole file, from its beginning
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with partial.open("rb+" if start else "wb") as out:
            out.seek(start)
            for piece in _pieces(response):
                out.write(piece)
                if progress is not None:
                    progress(out.tell(), total)
            out.flush()
            os.fsync(out.fileno())
            have = out.tell()
    if total is not None and have < total:
        raise _FetchError(f"the connection ended after {have} of {total} bytes")
    return response.headers


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """What comes; a failing connection is no matter of the disk, whose errors pass through."""
    while True:
        try:
            piece = response.read(PIECE)
        except (OSError, http.client.HTTPException) as error:
            raise _FetchError(f"the connection broke ({error})") from error
        if not piece:
            return
        yield piece


def _declared(headers: Message) -> dict[str, str]:
    """The checksum that the server states in ``x-goog-hash``, by its kind.

    The md5 if there is one; files sent there in parts have a crc32c alone.
    """
    stated = ",".join(headers.get_all("x-goog-hash", [])).split(",")
    for kind in ("md5", "crc32c"):
        for part in stated:
            if part.strip().startswith(f"{kind}="):
                return {kind: base64.b64decode(part.strip()[len(kind) + 1 :]).hex()}
    return {}


def _check(file: RemoteFile, path: Path, declared: dict[str, str]) -> None:
    """Raise unless ``path`` has the size and the checksum wanted, or else the one ``declared``."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise _FetchError(f"it has {size} bytes instead of {file.size}")
    known = {"sha256": file.sha256, "md5": file.md5}
    known = {kind: digest for kind, digest in known.items() if digest is not None} or declared
    for kind, wanted in known.items():
        if (got := _digest(path, kind)) != wanted:
            raise _FetchError(f"its {kind} is {got} instead of {wanted}")


def _digest(path: Path, kind: str) -> str:
    state = 0
    digest = None if kind == "crc32c" else hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            if digest is None:
                state = crc32c(piece, state)
            else:
                digest.update(piece)
    return f"{state:08x}" if digest is None else digest.hexdigest()
