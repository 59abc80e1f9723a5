"""Datasets that others publish as one large TFRecord file, and how they are cut into splits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data.npz import NpzDataset
from rotating_features.data.remote import RemoteFile, missing
from rotating_features.data.sample import SPLITS, ImageDataset, Sample, Split
from rotating_features.data.tfrecord import Example, read_examples

TELL_EVERY = 100


class Parts(NamedTuple):
    """How many images, in the order of the file, go where; what is over is not used.

    These are the parts the paper's author cut: the test images come early in the file, after those
    set aside for pictures.
    """

    set_aside: int
    test: int
    val: int
    train: int

    def span(self, split: Split) -> tuple[int, int]:
        """First image of ``split``, and the first after it."""
        test = self.set_aside
        val = test + self.test
        train = val + self.val
        start = {"test": test, "val": val, "train": train}[split]
        return start, start + {"test": self.test, "val": self.val, "train": self.train}[split]


class Published(Dataset[Sample]):
    """Images of a published file, found in ``folder`` in one of three forms, tried in this order.

    1. ``NPZ_split.npz`` with ``images`` and ``labels``, as the paper's author has them.
    2. The TFRecord file turned into a ``.npy`` of bytes, which stays on the disk and is only looked
       into (memory-mapped). Once it is there, the TFRecord file is no longer needed.
    3. The TFRecord file itself. Finding an image in it means reading all before it, so at first
       use it is turned into the ``.npy`` beside it. Killed meanwhile, this starts anew.

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``.
        folder: Where the files are.
        progress: Told from time to time how many images are turned so far.
    """

    title: ClassVar[str]
    name: ClassVar[str]
    npz: ClassVar[str]
    remote: ClassVar[RemoteFile]
    side: ClassVar[int]
    parts: ClassVar[Parts]

    def __init__(
        self,
        split: Split,
        *,
        folder: str | Path,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        if split not in SPLITS:
            raise InputError(f"split should be one of {list(SPLITS)}, got {split!r}.")
        self.split: Split = split
        self._images = self._find(Path(folder), progress)
        self.channels: int = self._images.channels
        self.size: tuple[int, int] = self._images.size

    @classmethod
    def decode(cls, example: Example) -> tuple[np.ndarray, np.ndarray] | None:
        """Image (side, side, rgb) and labels (side, side) in bytes; None for one not wanted."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is outside {self.split!r} (0..{len(self) - 1}).")
        return self._images[index]

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        return self._images.draw(indices)

    def _find(self, folder: Path, progress: Callable[[int], object] | None) -> ImageDataset:
        npz = folder / f"{self.npz}_{self.split}.npz"
        if npz.exists():
            return NpzDataset(npz)
        records = folder / self.remote.name
        stored = records.with_suffix(".npy")
        if not stored.exists():
            if not records.exists():
                raise missing(self.title, self.name, folder, [npz.name, stored.name])
            self._store(records, stored, progress)
        return _Stored(stored, self._dtype(), self.parts, self.split)

    @classmethod
    def _dtype(cls) -> np.dtype:
        """An image and its labels as one item, so that no two files need to agree."""
        side = cls.side
        return np.dtype([("image", np.uint8, (3, side, side)), ("labels", np.uint8, (side, side))])

    @classmethod
    def _store(cls, records: Path, stored: Path, progress: Callable[[int], object] | None) -> None:
        kept, most = 0, cls.parts.span("train")[1]
        item = np.zeros((), dtype=cls._dtype())
        with replacing(stored) as partial, partial.open("wb") as file:
            _write_header(file, item.dtype, 0)
            begin = file.tell()
            for number, example in enumerate(read_examples(records)):
                try:
                    decoded = cls.decode(example)
                except InputError as error:
                    raise InputError(f"Record {number} of {records}: {error}") from error
                if decoded is not None:
                    item["image"], item["labels"] = decoded[0].transpose(2, 0, 1), decoded[1]
                    file.write(item.tobytes())
                    kept += 1
                    if progress is not None and kept % TELL_EVERY == 0:
                        progress(kept)
                if kept == most:
                    break
            if kept == 0:
                raise InputError(f"{records} has no image that {cls.title} could use.")
            file.seek(0)
            _write_header(file, item.dtype, kept)
            assert file.tell() == begin  # NumPy leaves room for the length to grow
        if progress is not None:
            progress(kept)


class _Stored(Dataset[Sample]):
    """A split of a ``.npy`` file written by ``Published``."""

    def __init__(self, path: Path, dtype: np.dtype, parts: Parts, split: Split) -> None:
        advice = f"\n  Remove {path}; it is made again from the TFRecord file."
        try:
            items = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # not NumPy's, cut short, or of no sense to its header's parser
            raise InputError(f"{path} could not be read: {error}.{advice}") from error
        if items.dtype != dtype or items.ndim != 1:
            raise InputError(f"{path} should hold {dtype}, got {items.dtype}.{advice}")
        start, stop = parts.span(split)
        wanted = start + 1 if split == "train" else stop  # a score is over the whole split or none
        if len(items) < wanted:
            raise InputError(
                f"{path} has {len(items)} images, but {split!r} needs {wanted}: numbers {start} "
                f"to {wanted - 1} in the order of the file. Was the TFRecord file whole?{advice}"
            )
        self._items = items[start:stop]
        self.channels: int = dtype["image"].shape[0]
        self.size: tuple[int, int] = dtype["labels"].shape

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Sample:
        return self.draw([index]).first()

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        chosen = self._items[np.asarray(indices)]
        image = torch.from_numpy(chosen["image"].astype(np.float32)).div_(255)
        return Sample(image, torch.from_numpy(chosen["labels"].astype(np.int64)))


def pixels(example: Example, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The bytes of feature ``name`` as an array of ``shape``."""
    stored = example.get(name)
    if stored is None:
        raise InputError(f"it should have a feature {name!r}, got {sorted(example)}.")
    flat = np.frombuffer(b"".join(stored), np.uint8) if isinstance(stored, list) else stored
    if flat.dtype != np.uint8 or flat.size != np.prod(shape):
        raise InputError(
            f"{name!r} should have {'×'.join(map(str, shape))} bytes, got {flat.size} values of "
            f"{flat.dtype}."
        )
    return flat.reshape(shape)


def _write_header(file: BinaryIO, dtype: np.dtype, length: int) -> None:
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)
