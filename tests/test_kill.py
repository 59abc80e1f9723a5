"""A run killed at any moment opens and resumes."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import rotating_features as rf
from rotating_features.experiments.folders import read_run

COMMAND = shlex.split(
    f"{sys.executable} -m rotating_features train 4shapes --resume "
    "--model.hidden-dim 2 --model.rotation-dim 2 --train.batch-size 2 "
    "--train.checkpoint-every 1 --train.log-every 1 --train.validate-every 60 "
    "--train.precision float32 --train.compile no --evaluate.images 2"
)
STEPS = 30
"""For each kill: more than a quick machine takes before it."""


def start(runs: Path, steps: int) -> subprocess.Popen:
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads only get in each other's way here
    words = [*COMMAND, "--train.steps", str(steps), "--runs", str(runs)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, env=alone)


def wait_for_another_step(process: subprocess.Popen, trainer: Path) -> None:
    """Until the process has written a checkpoint of its own."""
    before = trainer.stat().st_mtime_ns if trainer.exists() else 0
    deadline = time.monotonic() + 60
    while not trainer.exists() or trainer.stat().st_mtime_ns == before:
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "the run does not get going"
        time.sleep(0.002)


def kill_and_resume(runs: Path, kills: int) -> None:
    folder = runs / "4shapes" / "seed-0"
    moments = random.Random(0)
    for _ in range(kills):
        process = start(runs, STEPS * kills)
        wait_for_another_step(process, folder / "trainer.pt")
        time.sleep(moments.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        read_run(folder)
        if (folder / "model.safetensors").exists():  # trainer.pt is written first
            rf.load(folder)
    assert start(runs, STEPS * kills).wait() == 0


def weights(runs: Path) -> dict[str, torch.Tensor]:
    return torch.load(runs / "4shapes" / "seed-0" / "trainer.pt", weights_only=True)["model"]


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_again_and_again_a_run_ends_with_the_same_bits(tmp_path: Path, kills: int) -> None:
    assert start(tmp_path / "whole", STEPS * kills).wait() == 0
    kill_and_resume(tmp_path / "killed", kills)
    whole, killed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(whole[name], killed[name]) for name in whole)
