"""From files of photographs to one tensor of them, once."""

from collections.abc import Callable

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.memory import Memory
from rotating_features.data.packed import Packed
from rotating_features.data.photographs import Images
from rotating_features.data.resize import How, check_resize, resize_short
from rotating_features.data.workers import Problem, in_order


def pack(
    images: Images,
    *,
    side: int = 224,
    how: How = "bilinear",
    workers: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Packed:
    """All ``images``, their shorter sides resized to ``side`` pixels, on the CPU.

    Each file is read once. One that is broken is left out and named in ``problems``.

    Args:
        images: The dataset.
        side: 224 in the paper.
        how: ``"nearest"`` in the paper's code.
        workers: How many threads decode; as many as there are cores by default.
        progress: Told how many images are done.
    """
    check_resize(side, how)  # here, not as a problem of every image
    names = [images.name(index) for index in range(len(images))]
    pixels = bytearray()  # grows in place, so that the photographs are never there twice
    sizes: list[tuple[int, int]] = []
    kept: list[str] = []
    problems: list[Problem] = []
    memory = Memory()
    for done, image in enumerate(
        in_order(len(images), lambda index: _fitted(images, index, side, how, memory), workers)
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
        raise _none(problems)
    heights, widths = torch.tensor(sizes, dtype=torch.int64).unbind(1)
    return Packed(
        torch.frombuffer(pixels, dtype=torch.uint8).view(-1, 3),
        heights.contiguous(),
        widths.contiguous(),
        kept,
        side=side,
        problems=problems,
    )


def check_any(images: Images) -> None:
    """Raise ``InputError`` if :func:`pack` would find none that it can use."""
    problems: list[Problem] = []
    for index in range(len(images)):
        if (problem := _problem(images, index)) is None:
            return
        problems.append(problem)
    raise _none(problems)


def _problem(images: Images, index: int) -> Problem | None:
    try:
        images.image(index)
    except InputError as error:
        return Problem(images.name(index), str(error))
    return None


def _none(problems: list[Problem]) -> InputError:
    first = f"; the first: {problems[0].problem}" if problems else "."
    return InputError(f"None of {len(problems)} images can be used{first}")


def _fitted(images: Images, index: int, side: int, how: How, memory: Memory) -> Tensor | Problem:
    try:
        with memory.take(images.pixels(index)):
            return resize_short(images.image(index), side, how)
    except InputError as error:
        return Problem(images.name(index), str(error))
