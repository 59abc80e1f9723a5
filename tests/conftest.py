"""What every test starts from: the same random numbers and arithmetic, whatever ran before."""

import os

import pytest
from hypothesis import settings

# Threads that wait should sleep: spinning makes small tensors several times slower on busy cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # reads the line above

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)
    torch.set_flush_denormal(False)  # training on the CPU sets it, and Hypothesis refuses to run so
