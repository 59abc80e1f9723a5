"""Several models trained side by side, each as it would be alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rotating_features.ops.beside import Beside, run_beside
from rotating_features.train.feed import Feed
from rotating_features.train.photo_feed import PhotoFeed
from rotating_features.train.step import Step

SIDE_BY_SIDE = 4
"""Models that train at once on a GPU; four fill the largest."""
STRIDE = {"cpu": 1, "cuda": 100}
"""Steps that are taken at once, without a look at what happened."""


class Together:
    """The steps of several models, taken many at a time.

    On a GPU all of it is one CUDA graph with a branch for each model: gathering the batch, forward,
    backward, clipping and Adam. A step of all models then costs one launch, and where one model
    cannot fill the GPU the others do.

    Args:
        steps: Models on the same device, each with its own optimiser.
        feed: Where the images come from, and the labels where a model needs them.
    """

    def __init__(self, steps: Sequence[Step], feed: Feed | PhotoFeed) -> None:
        self.steps, self.feed = list(steps), feed
        self.device = self.steps[0].device
        self.stride = STRIDE.get(self.device.type, 1)
        self._graph: _Graph | None = None

    def run(self, order: Tensor, rates: Tensor) -> Tensor:
        """Take ``k`` steps; the losses before each, (k, models).

        Args:
            order: Which images each step sees, (k, models, b); k is at most ``stride``.
            rates: The learning rate of each step, (k,).
        """
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                self._graph = self._graph or _Graph(self.steps, self.feed, order, self.stride)
                return self._graph.run(order, rates)
        losses = []
        for row, rate in zip(order, rates.tolist(), strict=True):
            for step, indices in zip(self.steps, row, strict=True):
                x, *labels = self.feed.batch(indices, labels=step.model.needs_labels)
                losses.append(step(x, rate, *labels))
        return torch.stack(losses).view(order.shape[:2])


class _Graph:
    """A step of all models, recorded once and replayed: no Python, no launches in between."""

    def __init__(
        self, steps: list[Step], feed: Feed | PhotoFeed, order: Tensor, capacity: int
    ) -> None:
        device = steps[0].device
        self.steps, self.feed = steps, feed
        self.order = torch.zeros(capacity, *order.shape[1:], dtype=torch.int64, device=device)
        self.rates = torch.zeros(capacity, device=device)
        self.losses = torch.zeros(capacity, len(steps), device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        first = -1  # in line before gradients of weights, which nothing waits for
        self.branches = [torch.cuda.Stream(device, priority=first) for _ in steps]
        for step in steps:  # several models fill the GPU without
            alone = len(steps) == 1 and not step.compiled
            step.beside = Beside(device) if alone else None
        self.order[0].copy_(order[0])
        undo = [step.snapshot() for step in steps]
        for _ in range(3):  # compiles, chooses kernels, makes the optimisers' buffers
            self._step()
            self.position.zero_()
        for put_back in undo:
            put_back()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()

    def run(self, order: Tensor, rates: Tensor) -> Tensor:
        k = len(rates)
        self.order[:k].copy_(order)
        self.rates[:k].copy_(rates)
        self.position.zero_()
        for _ in range(k):
            self.graph.replay()
        return self.losses[:k].clone()

    def _set_rate(self, rate: Tensor) -> Tensor:
        return torch.index_select(self.rates, 0, self.position, out=rate.view(1))

    def _step(self) -> None:
        main = torch.cuda.current_stream()
        order = self.order.index_select(0, self.position)[0]
        for i, (step, branch) in enumerate(zip(self.steps, self.branches, strict=True)):
            branch.wait_stream(main)
            with torch.cuda.stream(branch):
                run_beside(step.beside, self._set_rate, step.rate)
                batch = self.feed.batch(order[i], labels=step.model.needs_labels)
                loss = step.update(*batch)
                self.losses[:, i].index_copy_(0, self.position, loss.view(1))
        for branch in self.branches:
            main.wait_stream(branch)
        self.position += 1
