"""What every test starts from: the same random numbers and arithmetic, whatever ran before."""

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

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
        half = images[:, :, ::2, ::2], labels[:, ::2, ::2].clip(0, 5)
        np.savez(folder / f"colored_on_grayscale_{split}.npz", images=half[0], labels=half[1])
    return folder


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of noise in the layout of each dataset of photographs, with masks of two objects."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)

    def write(path: Path, array: np.ndarray) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(path)

    def write_pair(image: Path, *masks: Path) -> None:
        h, w = rng.integers(40, 60, 2)
        labels = np.zeros((h, w), dtype=np.uint8)
        labels[4:18, 6:24], labels[20:35, 8:32], labels[4] = 1, 2, 255
        write(image, rng.integers(256, size=(h, w, 3), dtype=np.uint8))
        for mask in masks:
            write(mask, labels)

    voc, food = folder / "voc", folder / "food" / "FoodSeg103"
    for name in ("a", "b", "c", "d"):
        kinds = ("SegmentationObject", "SegmentationClass")
        write_pair(voc / "JPEGImages" / f"{name}.jpg", *(voc / k / f"{name}.png" for k in kinds))
    lists = voc / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "trainaug.txt").write_text("a\nb\n")
    (lists / "val.txt").write_text("c\nd\n")
    for part in ("train", "test"):
        for name in ("a", "b"):
            image = food / "img_dir" / part / f"{name}.jpg"
            write_pair(image, food / "ann_dir" / part / f"{name}.png")
            write_pair(folder / "own" / f"{part}-{name}.png")
    return {"pascal-voc": voc, "foodseg103": food.parent, "folder": folder / "own"}


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vision transformer of no size, as a folder: patches of 8 pixels, 12 channels."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.ViTConfig(**sizes, intermediate_size=8, image_size=32, patch_size=8)
    folder = tmp_path_factory.mktemp("tiny-vit")
    transformers.ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture
def explained(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """How a user's mistake ends."""

    def check(status: int, *words: str) -> None:
        """Status 2, a message with these words, no traceback."""
        captured = capsys.readouterr()
        text = " ".join((captured.err + captured.out).split())
        assert status == 2
        assert "Traceback" not in text
        for word in words:
            assert word in text

    return check
