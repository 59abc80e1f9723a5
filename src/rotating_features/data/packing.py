"""From files of photographs to one tensor of them, once."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.packed import Packed
from rotating_features.data.photographs import Images
from rotating_features.data.resize import How, check_resize, resize_short
from rotating_features.data.workers import Problem, in_order


def pack(
    images: Images,
    *,
    side: int = 224,
    how: How = "bilinear",
    folder: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Packed:
    """All ``images``, their shorter sides resized to ``side`` pixels, on the CPU.

    Each file is read once. One that is broken is left out and named in ``problems``.

    Args:
        images: The dataset.
        side: 224 in the paper.
        how: ``"nearest"`` in the paper's code.
        folder: Where the result is kept. The next call with the same names, ``side`` and ``how``
            finds it there and reads no image. Names are all it goes by: remove the file if
            there are other photographs under the same names.
        workers: How many threads decode; as many as there are cores by default.
        progress: Told how many images are done.
    """
    check_resize(side, how)  # here, not as a problem of every image
    names = [images.name(index) for index in range(len(images))]
    path = None if folder is None else Path(folder) / packed_name(names, side=side, how=how)
    if path is not None and path.exists():
        return Packed.load(path)
    pixels = bytearray()  # grows in place, so that the photographs are never there twice
    sizes: list[tuple[int, int]] = []
    kept: list[str] = []
    problems: list[Problem] = []
    for done, image in enumerate(
        in_order(len(images), lambda index: _fitted(images, index, side, how), workers)
    ):
        if isinstance(image, Problem):
            problems.append(image)
        else:
            pixels += image.permute(1, 2, 0).contiguous().numpy().data
            sizes.append((image.shape[1], image.shape[2]))
            kept.append(names[done])
        if progress is not None:
            progress(done + 1)
    if not kept:
        raise InputError(
            f"None of {len(names)} images can be used"
            + (f"; the first: {problems[0].problem}" if problems else ".")
        )
    heights, widths = torch.tensor(sizes, dtype=torch.int64).unbind(1)
    packed = Packed(
        torch.frombuffer(pixels, dtype=torch.uint8).view(-1, 3),
        heights.contiguous(),
        widths.contiguous(),
        kept,
        side=side,
        how=how,
        problems=problems,
    )
    if path is not None:
        packed.save(path)
    return packed


def packed_name(names: Sequence[str], *, side: int, how: How) -> str:
    """The file that :func:`pack` keeps these photographs in."""
    key = hashlib.sha256(json.dumps([list(names), side, how]).encode()).hexdigest()
    return f"packed-{side}-{how}-{key[:16]}.safetensors"


def _fitted(images: Images, index: int, side: int, how: How) -> Tensor | Problem:
    try:
        return resize_short(images.image(index), side, how)
    except InputError as error:
        return Problem(images.name(index), str(error))
