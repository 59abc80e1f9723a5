"""Photographs held as one tensor, from which a device cuts its own random crops."""

import hashlib
import json
from collections.abc import Sequence

import torch
from torch import Tensor

from rotating_features._check import InputError
from rotating_features.data.workers import Problem

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
        problems: Sequence[Problem] = (),
    ) -> None:
        self.pixels, self.heights, self.widths = pixels, heights, widths
        self.starts = (heights * widths).cumsum(0) - heights * widths
        self.names, self.problems = tuple(names), tuple(problems)
        self.side = side

    def __len__(self) -> int:
        return len(self.names)

    def name(self, index: int) -> str:
        return self.names[index]

    def digest(self) -> str:
        """16 digits that stand for which photographs these are: their files' names and sizes."""
        files = [name.replace("\\", "/").rpartition("/")[2] for name in self.names]
        told = json.dumps([files, self.heights.tolist(), self.widths.tolist()])
        return hashlib.sha256(told.encode()).hexdigest()[:16]

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


def _fraction(bits: Tensor, count: Tensor) -> Tensor:
    """A whole number below ``count`` from the lowest 20 bits."""
    return ((bits & ((1 << POSITION_BITS) - 1)) * count) >> POSITION_BITS
