"""Features on disk, so that no photograph is looked at twice."""

import os
import re
import time
import uuid
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features._files import SUFFIX
from rotating_features.features.backbone import Backbone
from rotating_features.features.entry import Key, decode, encode

ENTRY = ".safetensors"
OURS = re.compile(rf"[0-9a-f]{{38}}({re.escape(ENTRY)}|-[0-9a-f]{{32}}{re.escape(SUFFIX)})")
"""Names in a cache's folders. Other files there are somebody else's."""
STALE = 3600
"""Seconds after which a file that nobody finished is one that nobody will finish."""


class FeatureCache:
    """Feature maps in a folder that several processes may share.

    Entries are written under another name and renamed, and carry a checksum: one that is damaged
    counts as missing and is removed. When the folder outgrows its limit, the entries that were
    not used for longest go. A full disk costs time, not the run.

    Args:
        folder: Made if it is not there.
        limit_bytes: What all entries may take. Each of several processes that write at the same
            time may exceed it by a sixteenth.
    """

    def __init__(self, folder: str | Path, limit_bytes: int = 10_000_000_000) -> None:
        if limit_bytes < 0:
            raise InputError(f"limit_bytes should be at least 0, got {limit_bytes}.")
        self.folder = Path(folder)
        self.limit_bytes = limit_bytes
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be a folder for features: {error}\n  Name another folder."
            ) from error
        self._size: int | None = None  # as far as known; others may write too
        self._unseen = 0

    def get(self, key: Key) -> Tensor | None:
        """The features under ``key``, or None."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        features = decode(content)
        with suppress(OSError):  # another process may be faster
            path.unlink() if features is None else os.utime(path)
        return features

    def put(self, key: Key, features: Tensor) -> None:
        """Keep ``features``, (c, h, w), under ``key``."""
        content = encode(features)
        if len(content) > self.limit_bytes:
            return
        path = self._path(key)
        partial = path.with_name(f"{path.stem}-{uuid.uuid4().hex}{SUFFIX}")
        try:
            path.parent.mkdir(exist_ok=True)
            partial.write_bytes(content)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            warnings.warn(f"Features could not be kept in {self.folder}: {error}", stacklevel=2)
            return
        self._account(len(content))

    def _path(self, key: Key) -> Path:
        digits = key.digits()
        return self.folder / digits[:2] / f"{digits[2:]}{ENTRY}"

    def _account(self, size: int) -> None:
        self._unseen += size
        known = None if self._size is None else self._size + size
        if known is None or known > self.limit_bytes or self._unseen > self.limit_bytes / 16:
            known = self._tidy()
            self._unseen = 0
        self._size = known

    def _tidy(self) -> int:
        """Remove what is over the limit, and return the size of what is left."""
        entries: list[tuple[int, int, Path]] = []
        for path in self.folder.glob("[0-9a-f][0-9a-f]/*"):
            if not OURS.fullmatch(path.name):
                continue
            with suppress(OSError):  # another process may be faster
                facts = path.stat()
                if path.suffix == ENTRY:
                    entries.append((facts.st_mtime_ns, facts.st_size, path))
                elif time.time() - facts.st_mtime > STALE:
                    path.unlink()
        left = sum(size for _, size, _ in entries)
        if left <= self.limit_bytes:
            return left
        for _, size, path in sorted(entries):
            if left <= self.limit_bytes * 7 / 8:  # some room, not to look again at every entry
                break
            with suppress(FileNotFoundError):
                path.unlink()
            left -= size
        return left


def cached(backbone: Backbone, cache: FeatureCache, images: Tensor, keys: Sequence[Key]) -> Tensor:
    """Features of a batch, (b, c, h, w) float32; what is not in ``cache`` is computed in one go.

    Args:
        backbone: What computes them.
        cache: Where they are looked for and kept.
        images: The batch, (b, 3, h, w).
        keys: One for each image, with the fingerprint of ``backbone``.
    """
    if any(key.weights != backbone.fingerprint() for key in keys):
        raise InputError(
            f"keys should be of {backbone.name}, {backbone.fingerprint()}, got others.\n"
            "  Make them with Key(backbone.fingerprint(), transform, hash_image(image))."
        )
    if not keys or len(images) != len(keys):
        raise InputError(
            f"There should be one key for each image, got {len(keys)} for {len(images)}."
        )
    known = {key: features for key in set(keys) if (features := cache.get(key)) is not None}
    missing = {key: i for i, key in enumerate(keys) if key not in known}
    if missing:
        batch = images[list(missing.values())].to(backbone.mean.device)
        computed = backbone(batch).to(backbone.dtype).cpu()  # it has no more digits than these
        for key, features in zip(missing, computed, strict=True):
            cache.put(key, features)
            known[key] = features
    return torch.stack([known[key].float() for key in keys]).to(backbone.mean.device)
