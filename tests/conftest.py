"""What every test starts from: the same random numbers and arithmetic, whatever ran before."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
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


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for published files, in their formats: digits that are bars, scenes of noise."""
    folder = tmp_path_factory.mktemp("published")
    for part, count in (("train", 60_000), ("t10k", 10_000)):
        names = np.arange(count) % 10
        bars = np.zeros((count, 28, 28), dtype=np.uint8)
        bars[:, 8:20, 8:12] = 20 * names[:, None, None] + 60
        for kind, array in (("images-idx3", bars), ("labels-idx1", names)):
            header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            path = folder / f"{part}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes(), 1))
    rng = np.random.default_rng(0)
    for split in ("train", "val", "test"):
        images = rng.random((8, 3, 128, 128), dtype=np.float32)
        labels = rng.integers(0, 7, (8, 16, 16)).repeat(8, 1).repeat(8, 2)
        np.savez(folder / f"clevr_with_masks_{split}.npz", images=images, labels=labels)
    return folder
