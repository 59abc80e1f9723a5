"""The training loop, top to bottom."""

import math
from collections.abc import Callable
from pathlib import Path

from rotating_features._check import InputError
from rotating_features.data.sample import ImageDataset
from rotating_features.models import RotatingAutoEncoder
from rotating_features.train.batches import Batches
from rotating_features.train.checkpoint import load_checkpoint, save_checkpoint
from rotating_features.train.interrupt import Interrupted, interruptible
from rotating_features.train.log import Log
from rotating_features.train.machine import Precision
from rotating_features.train.step import Step


def train(
    model: RotatingAutoEncoder,
    dataset: ImageDataset,
    folder: Path,
    *,
    steps: int,
    batch_size: int = 64,
    lr: float = 1e-3,
    warmup_steps: int = 500,
    grad_clip: float | None = 0.1,
    weight_decay: float = 0.0,
    seed: int = 0,
    precision: Precision = "float32",
    compiled: bool = False,
    log_every: int = 50,
    checkpoint_every: int = 1_000,
    validate_every: int = 1_000,
    validate: Callable[[RotatingAutoEncoder], dict[str, float]] | None = None,
    title: str = "",
    quiet: bool = False,
) -> None:
    """Train ``model`` on ``dataset`` until ``steps`` steps are done, going on where ``folder`` is.

    Args:
        model: On its device already. It is trained in place.
        dataset: The training images; nothing else of it is looked at.
        folder: The run's folder. A checkpoint in it is continued.
        steps: Steps in all, those done before included.
        batch_size, seed: Decide, with the step's number, which images a step sees.
        lr, warmup_steps: The learning rate, and over how many steps it rises to that linearly.
        grad_clip, weight_decay, precision, compiled: As in :class:`Step`.
        log_every, checkpoint_every, validate_every: In steps.
        validate: Gives scores of the model to log along the way.
        title: What stands before the progress bar.
        quiet: No progress bar.

    Raises:
        Interrupted: After Ctrl-C or SIGTERM, once the state is saved.
    """
    step = Step(
        model,
        grad_clip=grad_clip,
        weight_decay=weight_decay,
        precision=precision,
        compiled=compiled,
    )
    batches = Batches(len(dataset), batch_size=batch_size, seed=seed)
    done = load_checkpoint(folder, step)
    with (
        Log(folder, start=done, steps=steps, title=title, quiet=quiet) as log,
        interruptible() as asked,
    ):
        for index in range(done, steps):
            x = dataset.draw(batches[index]).image.to(step.device, non_blocking=True)
            loss = step(x, rate=lr * min(1.0, (index + 1) / max(1, warmup_steps)))
            log.advance(len(x))
            done = index + 1

            stop = asked()  # once, or a signal between two looks would go unsaved
            last = done == steps or stop
            save = done % checkpoint_every == 0 or last
            if done % log_every == 0 or save:
                log.write(done, loss=float(loss))
                if not (math.isfinite(loss) and (not save or step.is_finite())):
                    raise InputError(
                        f"Training has diverged: after {done} steps the loss is {float(loss)}.\n"
                        "  The last checkpoint is intact. Start again with another --name and a "
                        "smaller --train.lr."
                    )
            if validate is not None and (done % validate_every == 0 or done == steps):
                model.eval()
                log.write(done, **validate(model))
                model.train()
                log.pause()
            if save:
                save_checkpoint(folder, step, done)
            if stop and done < steps:
                raise Interrupted(done)
    model.eval()
