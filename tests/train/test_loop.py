import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from rotating_features.data import FourShapes
from rotating_features.machine import can_compile
from rotating_features.models import RotatingAutoEncoder, load
from rotating_features.train import Interrupted, Trainee, train
from rotating_features.train.checkpoint import read_metrics


def make() -> RotatingAutoEncoder:
    torch.manual_seed(0)
    return RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=2, rotation_dim=2)


def run(folder: Path, steps: int, dataset=None, **options) -> RotatingAutoEncoder:
    model = make()
    defaults = {"batch_size": 4, "log_every": 1, "checkpoint_every": 2, "quiet": True}
    trainees = [Trainee(model, folder)]
    train(trainees, dataset or FourShapes("train"), steps=steps, **{**defaults, **options})
    return model


def assert_same_run(a: Path, b: Path) -> None:
    """Weights, optimiser and losses agree to the last bit."""
    one, other = (torch.load(f / "trainer.pt", weights_only=True) for f in (a, b))
    assert one["step"] == other["step"]
    for name, weight in one["model"].items():
        assert torch.equal(weight, other["model"][name]), name
    for name, value in one["optimiser"].items():
        assert torch.equal(value, other["optimiser"][name]), name
    losses = [[(r["step"], r["loss"]) for r in read_metrics(f) if "loss" in r] for f in (a, b)]
    assert losses[0] == losses[1]


class Signalling(FourShapes):
    """Sends a signal to this process while the batch of one step is drawn."""

    def __init__(self, at: int, number: int) -> None:
        super().__init__("train")
        self.calls, self.at, self.number = 0, at, number

    def draw(self, indices):
        self.calls += 1
        if self.calls == self.at:
            os.kill(os.getpid(), self.number)
        return super().draw(indices)


def test_a_run_resumed_gives_the_same_bits_as_one_never_stopped(tmp_path: Path) -> None:
    run(tmp_path / "whole", 7)
    run(tmp_path / "parts", 3)
    run(tmp_path / "parts", 7)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed_gives_the_same_bits(tmp_path: Path, number: int) -> None:
    run(tmp_path / "whole", 6)
    with pytest.raises(Interrupted) as stop:
        run(tmp_path / "parts", 6, dataset=Signalling(at=3, number=number))
    assert stop.value.done == 3
    run(tmp_path / "parts", 6)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.slow
@pytest.mark.skipif(not can_compile(torch.device("cpu")), reason="needs a C++ compiler")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_compiled_runs_resume_to_the_same_bits(tmp_path: Path, precision: str) -> None:
    options = {"compiled": True, "precision": precision}
    run(tmp_path / "whole", 6, **options)
    run(tmp_path / "parts", 3, **options)
    run(tmp_path / "parts", 6, **options)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


def test_a_signal_during_validation_loses_no_step(tmp_path: Path) -> None:
    def validate(model: RotatingAutoEncoder) -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGINT)
        return {}

    with pytest.raises(Interrupted) as stop:
        run(tmp_path, 9, validate=validate, validate_every=3, checkpoint_every=100)
    saved = torch.load(tmp_path / "trainer.pt", weights_only=True)["step"]
    assert saved == stop.value.done


def test_signal_handlers_are_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run(tmp_path, 1)
    assert signal.getsignal(signal.SIGINT) is before


def test_validating_on_the_way_changes_nothing(tmp_path: Path) -> None:
    def validate(model: RotatingAutoEncoder) -> dict[str, float]:
        assert not model.training
        torch.rand(3)
        return {"val_ari_bg": 0.5}

    run(tmp_path / "plain", 4)
    run(tmp_path / "scored", 4, validate=validate, validate_every=2)
    assert_same_run(tmp_path / "plain", tmp_path / "scored")
    scored = [row["step"] for row in read_metrics(tmp_path / "scored") if "val_ari_bg" in row]
    assert scored == [2, 4]


def test_the_model_file_holds_the_last_weights(tmp_path: Path) -> None:
    model = run(tmp_path, 3)
    saved = load(tmp_path)
    x = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(model(x).reconstruction, saved(x).reconstruction)


def test_the_learning_rate_rises_and_falls_linearly(tmp_path: Path, monkeypatch) -> None:
    rates = []
    from rotating_features.train import Step

    original = Step.__call__
    monkeypatch.setattr(
        Step,
        "__call__",
        lambda self, x, rate: (rates.append(rate), original(self, x, rate))[1],
    )
    run(tmp_path, 5, lr=1.0e-3, warmup_steps=4)
    np.testing.assert_allclose(rates, [0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3])
    rates.clear()
    run(tmp_path / "falling", 5, lr=1.0e-3, warmup_steps=2, cooldown_steps=2)
    np.testing.assert_allclose(rates, [0.5e-3, 1e-3, 1e-3, 1e-3, 0.5e-3])


def test_a_line_cut_short_by_a_kill_is_dropped_when_resuming(tmp_path: Path) -> None:
    run(tmp_path, 2)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "seconds": 9.0, "loss": 0.1}\n{"step": 4, "lo')
    run(tmp_path, 3)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]


def test_a_run_that_diverges_says_so_and_keeps_its_last_checkpoint(tmp_path: Path) -> None:
    run(tmp_path, 2)
    with pytest.raises(ValueError, match=r"diverged.*\n.*smaller --train.lr"):
        run(tmp_path, 40, lr=float("inf"), warmup_steps=0, checkpoint_every=1)
    assert torch.load(tmp_path / "trainer.pt", weights_only=True)["step"] == 2


def test_a_run_that_is_past_its_steps_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path, 4)
    before = (tmp_path / "trainer.pt").read_bytes()
    run(tmp_path, 2)
    assert (tmp_path / "trainer.pt").read_bytes() == before


def test_nobody_to_train_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one trainee"):
        train([], FourShapes("train"), steps=1)


def test_one_that_diverges_does_not_cost_the_others_their_work(tmp_path: Path) -> None:
    good, bad = make(), make()
    torch.nn.init.constant_(bad.readout.bias, torch.nan)
    trainees = [Trainee(bad, tmp_path / "bad"), Trainee(good, tmp_path / "good")]
    options = {"batch_size": 4, "log_every": 2, "quiet": True}
    with pytest.raises(ValueError, match=r"diverged: after 2 steps the loss in .*bad is nan"):
        train(trainees, FourShapes("train"), steps=9, **options)
    assert torch.load(tmp_path / "good" / "trainer.pt", weights_only=True)["step"] == 2
    assert not (tmp_path / "bad" / "trainer.pt").exists()


def test_tensorboard_can_read_the_run(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run(tmp_path, 3)
    board = EventAccumulator(str(tmp_path))
    board.Reload()
    assert [event.step for event in board.Scalars("loss")] == [1, 2, 3]
