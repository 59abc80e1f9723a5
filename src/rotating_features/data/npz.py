"""Datasets as npz files with ``images`` and ``labels``, the format the paper's data comes in."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data.sample import ImageDataset, Sample

CHUNK = 2_000


class NpzDataset(Dataset[Sample]):
    """Images and instance labels from one npz file.

    Args:
        path: A file with ``images``, (N, c, h, w) in [0, 1], and ``labels``, (N, h, w).
    """

    def __init__(self, path: str | Path) -> None:
        self._images, self._labels = _read(Path(path))
        self.channels: int = self._images.shape[1]
        self.size: tuple[int, int] = self._images.shape[2:]

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is outside 0..{len(self) - 1}.")
        return self.draw([index]).first()

    def draw(self, indices: Sequence[int] | np.ndarray) -> Sample:
        """The samples at ``indices`` as one batch."""
        chosen = np.asarray(indices)
        return Sample(
            torch.from_numpy(self._images[chosen].astype(np.float32)),
            torch.from_numpy(self._labels[chosen].astype(np.int64)),
        )


def npz_name(dataset: str, split: str) -> str:
    """The file of a split, as it was published where it was."""
    published = {"multi-dsprites": "colored_on_grayscale", "clevr": "clevr_with_masks"}
    return f"{published.get(dataset, dataset.replace('shapes', 'Shapes'))}_{split}.npz"


def write_npz(
    dataset: ImageDataset, path: str | Path, *, progress: Callable[[int], object] | None = None
) -> None:
    """Write ``dataset`` to ``path``, telling ``progress`` how many images are drawn so far."""
    images, labels = [], []
    for start in range(0, len(dataset), CHUNK):
        batch = dataset.draw(np.arange(start, min(start + CHUNK, len(dataset))))
        whole = bool((batch.image == batch.image.round()).all())  # 0 and 1 fit a byte
        images.append(batch.image.numpy().astype(np.uint8 if whole else np.float32))
        labels.append(batch.instances.numpy().astype(np.int16))
        if progress is not None:
            progress(start + len(batch.image))
    with replacing(Path(path)) as partial, partial.open("wb") as file:
        np.savez_compressed(file, images=np.concatenate(images), labels=np.concatenate(labels))


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    wanted = "an npz file with 'images' (N, c, h, w) and 'labels' (N, h, w)"
    if not path.is_file():
        raise InputError(
            f"There is no file {path}; {wanted} was wanted.\n"
            f"  Write one with: rotating-features data NAME --out {path.parent}"
        )
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            images, labels = file["images"], file["labels"]
    except Exception as error:  # a damaged file fails in zip, zlib, NumPy or its header's parser
        raise InputError(f"{path} should be {wanted}, but could not be read: {error}") from error
    if images.ndim == 3:
        images = images[:, None]
    fits = images.ndim == 4 and images.size and labels.shape == (len(images), *images.shape[2:])
    if not fits or images.dtype.kind not in "buif" or labels.dtype.kind not in "bui":
        raise InputError(
            f"{path} should be {wanted} as numbers, got images {images.shape} of {images.dtype} "
            f"and labels {labels.shape} of {labels.dtype}."
        )
    if not (images.min() >= 0 and images.max() <= 1):  # also true of nan
        raise InputError(
            f"The images of {path} should lie in [0, 1], got {images.min()} to {images.max()}."
        )
    return images, labels
