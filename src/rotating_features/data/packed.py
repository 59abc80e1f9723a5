"""Photographs held as one tensor, from which a device cuts its own random crops."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from rotating_features._check import InputError
from rotating_features._files import replacing
from rotating_features.data.resize import HOWS, How
from rotating_features.data.workers import Problem

FORMAT = "rotating_features/packed/1"
POSITION_BITS = 20


class Packed:
    """Photographs of one shorter side and any longer one, in bytes, end to end in one tensor.

    No file is decoded during training, and nothing about a batch is decided by the host: crops are
    found by arithmetic on the device, so that a CUDA graph can hold it.

    Args:
        pixels: (N, 3) uint8, rows of all photographs one after another.
        heights, widths: (m,) int64.
        names: m names.
        side: The shorter side of every photograph.
        how: How they were resized.
        problems: Photographs that are not here, and why.
    """

    def __init__(
        self,
        pixels: Tensor,
        heights: Tensor,
        widths: Tensor,
        names: Sequence[str],
        *,
        side: int,
        how: How,
        problems: Sequence[Problem] = (),
    ) -> None:
        self.pixels, self.heights, self.widths = pixels, heights, widths
        self.starts = (heights * widths).cumsum(0) - heights * widths
        self.names, self.problems = tuple(names), tuple(problems)
        self.side = side
        self.how: How = how

    def __len__(self) -> int:
        return len(self.names)

    def name(self, index: int) -> str:
        return self.names[index]

    def image(self, index: int) -> Tensor:
        """All of one photograph, (3, h, w) uint8."""
        start, h, w = (int(x[index]) for x in (self.starts, self.heights, self.widths))
        return self.pixels[start : start + h * w].view(h, w, 3).permute(2, 0, 1)

    def to(self, device: str | torch.device) -> "Packed":
        """The same on ``device``."""
        return Packed(
            self.pixels.to(device),
            self.heights.to(device),
            self.widths.to(device),
            self.names,
            side=self.side,
            how=self.how,
            problems=self.problems,
        )

    def crops(
        self,
        indices: Tensor,
        draws: Tensor,
        size: int,
        *,
        flip: bool = True,
        quarter_turns: bool = False,
    ) -> Tensor:
        """Random crops of the photographs at ``indices``, (b, 3, size, size) uint8.

        What is random is in the bits of ``draws``, so the same draw gives the same crop:

        - bit 0: whether left and right are exchanged (with ``flip``);
        - bit 1: whether the crop is turned by 90 degrees (with ``quarter_turns``), after that;
        - bit 2: which way, 0 to the left and 1 to the right;
        - bits 3 to 22: its row, and bits 23 to 42: its column, as fractions of all there are.

        With draws from ``torch.randint(2**43, (b,))``, every position is as likely as any other,
        to a part in a thousand.

        Args:
            indices: (b,) int64, on the device of the photographs.
            draws: (b,) int64, on the same.
            size: Height and width of a crop, ``side`` at most.
            flip, quarter_turns: What may be done to a crop, each to every second one.
        """
        self._check_size(size)
        h, w = self.heights.index_select(0, indices), self.widths.index_select(0, indices)
        top = _fraction(draws >> 3, h - size + 1)
        left = _fraction(draws >> (3 + POSITION_BITS), w - size + 1)
        # A crop is a walk over pixels: where it starts, and its steps down and to the right.
        start = self.starts.index_select(0, indices) + top * w + left
        down, right = w, torch.ones_like(w)
        if flip:
            flipped = draws & 1
            start = start + flipped * (size - 1)
            right = 1 - 2 * flipped
        if quarter_turns:
            turned, to_right = ((draws >> 1) & 1).bool(), ((draws >> 2) & 1).bool()
            corner = torch.where(to_right, down, right) * (size - 1)
            start = torch.where(turned, start + corner, start)
            down, right = (
                torch.where(turned, torch.where(to_right, right, -right), down),
                torch.where(turned, torch.where(to_right, -down, down), right),
            )
        return self._walk(start, down, right, size)

    def _walk(self, start: Tensor, down: Tensor, right: Tensor, size: int) -> Tensor:
        steps = torch.arange(size, device=start.device)
        rows = start[:, None] + down[:, None] * steps
        where = rows[:, :, None] + right[:, None, None] * steps
        found = self.pixels.index_select(0, where.flatten())
        return found.view(*where.shape, 3).permute(0, 3, 1, 2)

    def _check_size(self, size: int) -> None:
        if not 1 <= size <= self.side:
            raise InputError(
                f"Crops should be of 1 to {self.side} pixels, the shorter side of the photographs, "
                f"got {size}.\n  Pack them anew with side={size}."
            )

    def save(self, path: str | Path) -> None:
        """Write all to one file, with which :meth:`load` needs no photograph any more."""
        tensors = {"pixels": self.pixels, "heights": self.heights, "widths": self.widths}
        metadata = {
            "format": FORMAT,
            "names": json.dumps(self.names),
            "side": str(self.side),
            "how": self.how,
            "problems": json.dumps(self.problems),
        }
        try:
            with replacing(Path(path)) as partial:
                save_file({name: x.cpu() for name, x in tensors.items()}, partial, metadata)
        except SafetensorError as error:
            raise InputError(f"{path} could not be written: {error}") from error

    @classmethod
    def load(cls, path: str | Path, *, device: str | torch.device = "cpu") -> "Packed":
        """The photographs of a file that :meth:`save` wrote.

        The file is looked into, not read: on a CPU its pixels stay on the disk until asked for.
        """
        if not Path(path).is_file():
            raise InputError(f"There is no file of packed photographs {path}.")
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise InputError(f"its format is {metadata.get('format')!r}, not {FORMAT!r}.")
                packed = cls(
                    file.get_tensor("pixels"),
                    file.get_tensor("heights"),
                    file.get_tensor("widths"),
                    json.loads(metadata["names"]),
                    side=int(metadata["side"]),
                    how=cast(How, metadata["how"]),
                    problems=[Problem(*problem) for problem in json.loads(metadata["problems"])],
                )
            _check_whole(packed)
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            raise InputError(
                f"{path} should be a file of packed photographs, but could not be used: {error}\n"
                "  Remove it and pack them again."
            ) from error
        return packed.to(device)


def _fraction(bits: Tensor, count: Tensor) -> Tensor:
    """A whole number below ``count`` from the lowest 20 bits."""
    return ((bits & ((1 << POSITION_BITS) - 1)) * count) >> POSITION_BITS


def _check_whole(packed: Packed) -> None:
    """Nothing outside the tensor may ever be asked for: on a GPU that ends the process."""
    h, w = packed.heights, packed.widths
    count = int((h * w).sum())
    fits = packed.pixels.shape == (count, 3) and packed.pixels.dtype == torch.uint8
    if not fits or not len(h) == len(w) == len(packed) > 0:
        raise InputError("its parts do not fit together.")
    if packed.how not in HOWS:
        raise InputError(f"it was resized by {packed.how!r}, which is none of {list(HOWS)}.")
    if not torch.equal(torch.minimum(h, w), torch.full_like(h, packed.side)):
        raise InputError(f"not every photograph has a shorter side of {packed.side}.")
