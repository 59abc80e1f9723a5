"""Which images a step sees."""

import numpy as np

from rotating_features._check import InputError

INDEX_BITS, DRAW_BITS = 20, 43
"""Of a ticket: which image, and above that random bits for what is done to it."""


class Batches:
    """Shuffled batches, epoch after epoch; the batch of a step depends on (seed, step) alone.

    So a run that resumes needs no random state to see the images it would have seen.

    Args:
        images: How many there are.
        batch_size, seed: As in :func:`train`.
        draws: Whether to add random bits to each image's number, which makes it a ticket.

    Example:
        >>> sorted(np.concatenate([Batches(6, batch_size=2, seed=0)[i] for i in range(3)]).tolist())
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, images: int, *, batch_size: int, seed: int, draws: bool = False) -> None:
        if not 1 <= batch_size <= images:
            raise InputError(
                f"batch_size should lie between 1 and the number of images, {images}, "
                f"got {batch_size}.\n  Take fewer at a time: batch_size, or --train.batch-size."
            )
        if draws and images > 1 << INDEX_BITS:
            raise InputError(f"There should be at most {1 << INDEX_BITS:,} images, got {images:,}.")
        self.images, self.batch_size, self.seed, self.draws = images, batch_size, seed, draws
        self.per_epoch = images // batch_size
        self._epoch, self._order = -1, np.empty(0, dtype=np.int64)

    def __getitem__(self, step: int) -> np.ndarray:
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([self.seed, epoch]).permutation(self.images)
        batch = self._order[position * self.batch_size : (position + 1) * self.batch_size]
        if not self.draws:
            return batch
        rng = np.random.default_rng([self.seed, step, DRAW_BITS])  # unlike that of an epoch
        return rng.integers(1 << DRAW_BITS, size=len(batch)) << INDEX_BITS | batch
