"""The training loop, top to bottom."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from rotating_features._check import InputError
from rotating_features.data.sample import ImageDataset
from rotating_features.machine import Precision
from rotating_features.models import AutoEncoder
from rotating_features.train.batches import Batches
from rotating_features.train.checkpoint import load_checkpoint, save_checkpoint
from rotating_features.train.feed import Feed
from rotating_features.train.interrupt import Interrupted, interruptible
from rotating_features.train.log import Log
from rotating_features.train.photo_feed import PhotoFeed
from rotating_features.train.step import Step
from rotating_features.train.together import Together


class Trainee(NamedTuple):
    """A model to be trained, and where its run lives."""

    model: AutoEncoder  # on its device already; it is trained in place
    folder: Path  # a checkpoint in it is continued
    seed: int = 0  # decides, with the step's number, which images a step sees


def train(
    trainees: Sequence[Trainee],
    dataset: ImageDataset | PhotoFeed,
    *,
    steps: int,
    batch_size: int = 64,
    lr: float = 1e-3,
    warmup_steps: int = 500,
    cooldown_steps: int = 0,
    grad_clip: float | None = 0.1,
    weight_decay: float = 0.0,
    precision: Precision = "float32",
    compiled: bool = False,
    log_every: int = 50,
    checkpoint_every: int = 1_000,
    validate_every: int = 1_000,
    validate: Callable[[AutoEncoder], dict[str, float]] | None = None,
    title: str = "",
    quiet: bool = False,
) -> None:
    """Train models side by side on ``dataset`` until each has done ``steps`` steps.

    None knows of the others: each sees what it would see alone.

    Args:
        trainees: The models, on one device.
        dataset: The training images, and their classes if a model needs them; nothing else of it
            is looked at. Of photographs, a feed of crops or of their features.
        steps: Steps in all, those done before included.
        batch_size: Images in a step.
        lr, warmup_steps, cooldown_steps: The learning rate, over how many steps it rises to that
            linearly, and over how many last ones it falls linearly, nearly to 0.
        grad_clip, weight_decay, precision, compiled: As in :class:`Step`.
        log_every, checkpoint_every, validate_every: In steps.
        validate: Gives scores of a model to log along the way.
        title: What stands before the progress bar.
        quiet: No progress bar.

    Raises:
        Interrupted: After Ctrl-C or SIGTERM, once the state is saved.
    """
    if not trainees:
        raise InputError("train should get at least one trainee, got none.")
    team = []
    data = dataset.digest if isinstance(dataset, PhotoFeed) else ""
    for trainee in trainees:
        step = Step(
            trainee.model,
            grad_clip=grad_clip,
            weight_decay=weight_decay,
            precision=precision,
            compiled=compiled,
        )
        batches = Batches(
            len(dataset),
            batch_size=batch_size,
            seed=trainee.seed,
            draws=isinstance(dataset, PhotoFeed),
        )
        done = min(steps, load_checkpoint(trainee.folder, step, data=data))
        team.append(_Member(*trainee, step, batches, done))
    needs_labels = any(member.model.needs_labels for member in team)
    feed = (
        dataset
        if isinstance(dataset, PhotoFeed)
        else Feed(dataset, team[0].step.device, labels=needs_labels)
    )

    unfinished = any(member.done < steps for member in team)
    spent = dataset.look(quiet=quiet) if isinstance(dataset, PhotoFeed) and unfinished else 0.0

    # Those that a kill left behind the others catch up first.
    for begin, end in pairwise(sorted({*(member.done for member in team), steps})):
        here = [member for member in team if member.done <= begin]
        together = Together([member.step for member in here], feed)
        with ExitStack() as stack:
            logs = [
                stack.enter_context(
                    Log(
                        member.folder,
                        start=begin,
                        steps=steps,
                        title=title,
                        quiet=quiet or member is not here[0],
                        spent=spent,
                    )
                )
                for member in here
            ]
            asked = stack.enter_context(interruptible())
            now, spent = begin, 0.0
            while now < end:
                marks = (log_every, checkpoint_every, validate_every)
                then = min(end, now + together.stride, *(now - now % k + k for k in marks))
                order = np.array([[m.batches[i] for m in here] for i in range(now, then)])
                number = np.arange(now + 1, then + 1)
                rise = number / max(1, warmup_steps)
                fall = (steps + 1 - number) / max(1, cooldown_steps)
                rates = lr * np.minimum(1, np.minimum(rise, fall))
                losses = together.run(torch.from_numpy(order), torch.from_numpy(rates))
                for log in logs:
                    log.advance(then - now, batch_size)
                now = then

                stop = asked()  # once, or a signal between two looks would go unsaved
                save = now % checkpoint_every == 0 or now == end or stop
                if now % log_every == 0 or save:
                    for member, log, loss in zip(here, logs, losses[-1].tolist(), strict=True):
                        log.write(now, loss=loss)
                        if not math.isfinite(loss) or (save and not member.step.is_finite()):
                            _save_finite(here, now, data)
                            raise InputError(
                                f"Training has diverged: after {now} steps the loss in "
                                f"{member.folder} is {loss}.\n"
                                "  Its last checkpoint is intact. Start again with another --name "
                                "and a smaller --train.lr."
                            )
                if validate is not None and (now % validate_every == 0 or now == steps):
                    for member, log in zip(here, logs, strict=True):
                        log.write(now, **validate(member.model.eval()))
                        member.model.train()
                    for log in logs:
                        log.pause()
                if save:
                    for member in here:
                        save_checkpoint(member.folder, member.step, now, data=data)
                if stop and now < steps:
                    raise Interrupted(now)
    for member in team:
        member.model.eval()


def _save_finite(team: "list[_Member]", now: int, data: str) -> None:
    """What one loses, the others keep."""
    for member in team if len(team) > 1 else []:
        if member.step.is_finite():
            save_checkpoint(member.folder, member.step, now, data=data)


class _Member(NamedTuple):
    """A trainee with all that its steps need."""

    model: AutoEncoder
    folder: Path
    seed: int
    step: Step
    batches: Batches
    done: int  # steps of its last checkpoint
