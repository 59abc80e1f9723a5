"""Photographs go into one tensor, each once, whatever their files are like."""

import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.data.image_folder import ImageFolder
from rotating_features.data.memory import MOST_PIXELS
from rotating_features.data.packing import pack
from rotating_features.data.photographs import PhotographFiles, read_image
from rotating_features.data.resize import How


@pytest.fixture
def photos(tmp_path: Path, records: ModuleType) -> Path:
    """Every kind of file, good and bad; names tell the order."""
    folder = tmp_path / "photos"
    records.write_photograph(folder / "0.jpg", 30, 41)
    grey = Image.fromarray(np.random.default_rng(1).integers(256, size=(9, 20), dtype=np.uint8))
    grey.save(folder / "1 grey.jpg")
    grey.convert("CMYK").save(folder / "2 print.jpg")
    (folder / "3 empty.jpg").touch()
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it by 90 degrees to look at it
    grey.save(folder / "4 turned.jpg", exif=exif)
    Image.new("RGB", (1, 1), "red").save(folder / "5 tiny.png")
    (folder / "6 half.jpg").write_bytes((folder / "0.jpg").read_bytes()[:900])
    Image.new("RGB", (500, 1)).save(folder / "7 thread.png")
    records.write_photograph(folder / "8.jpg", 25, 16)
    return folder


GOOD = ["0.jpg", "1 grey.jpg", "2 print.jpg", "4 turned.jpg", "5 tiny.png", "8.jpg"]
BAD = ["3 empty.jpg", "6 half.jpg", "7 thread.png"]


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
@pytest.mark.parametrize("workers", [1, 3])
def test_photographs_are_those_of_pillow(photos: Path, how: How, workers: int) -> None:
    packed = pack(ImageFolder(photos), side=16, how=how, workers=workers)
    assert [Path(name).name for name in packed.names] == GOOD
    for index, name in enumerate(GOOD):
        picture = Image.open(photos / name).convert("RGB")
        if "turned" in name:
            picture = picture.transpose(Image.Transpose.ROTATE_270)
        scale = 16 / min(picture.size)
        size = tuple(max(16, int(x * scale)) for x in picture.size)
        wanted = np.asarray(picture.resize(size, Image.Resampling[how.upper()]))
        assert np.array_equal(packed.image(index).permute(1, 2, 0).numpy(), wanted), name


def test_nearest_pixels_are_those_of_pytorch(photos: Path) -> None:
    packed = pack(ImageFolder(photos), side=16, how="nearest")
    image = read_image(photos / "0.jpg")
    size = packed.image(0).shape[1:]
    wanted = F.interpolate(image[None].float(), size, mode="nearest")[0]
    assert torch.equal(packed.image(0).float(), wanted)


def test_what_is_broken_is_named_and_left_out(photos: Path) -> None:
    packed = pack(ImageFolder(photos), side=8)
    assert [Path(name).name for name, _ in packed.problems] == BAD
    assert "cannot be read" in packed.problems[0].problem
    assert "32 times as long as wide, got 1 x 500" in packed.problems[2].problem


def test_nothing_usable_is_explained(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(InputError, match=r"None of 1 images .*empty\.jpg cannot be read"):
        pack(ImageFolder(tmp_path))


def test_wrong_settings_are_no_fault_of_the_photographs(photos: Path) -> None:
    with pytest.raises(InputError, match=r"^how should be one of"):
        pack(ImageFolder(photos), how="cubic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^side should be at least 1"):
        pack(ImageFolder(photos), side=0)


def test_progress_counts_all(photos: Path) -> None:
    told: list[int] = []
    pack(ImageFolder(photos), side=8, progress=told.append)
    assert told == list(range(1, 10))


class Counting(PhotographFiles):
    def __init__(self, folder: Path) -> None:
        super().__init__(ImageFolder(folder).files)
        self.read: list[int] = []

    def image(self, index: int) -> torch.Tensor:
        self.read.append(index)
        return super().image(index)


def test_large_files_are_not_read_at_once(photos: Path) -> None:
    class Large(PhotographFiles):
        reading = most = 0

        def pixels(self, index: int) -> int:
            return MOST_PIXELS // 2 + 1

        def image(self, index: int) -> torch.Tensor:
            self.reading += 1
            self.most = max(self.most, self.reading)
            time.sleep(0.002)
            image = super().image(index) if index else torch.zeros(3, 8, 8, dtype=torch.uint8)
            self.reading -= 1
            return image

    images = Large([file for file in ImageFolder(photos).files if file.image.name in GOOD])
    assert len(pack(images, side=8, workers=4)) == len(GOOD)
    assert images.most == 1


def test_every_file_is_read_once(photos: Path) -> None:
    images = Counting(photos)
    pack(images, side=8)
    assert sorted(images.read) == list(range(9))
