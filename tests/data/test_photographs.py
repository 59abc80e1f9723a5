"""Photographs and masks as they lie on disk."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

from rotating_features._check import InputError
from rotating_features.data.photographs import (
    Files,
    Images,
    Photograph,
    PhotographFiles,
    Photographs,
    read_image,
    read_labels,
)
from rotating_features.data.sample import IGNORE

LABELS = np.array([[0, 1, 255], [7, 20, 255]], dtype=np.uint8)
WANTED = [[0, 1, IGNORE], [7, 20, IGNORE]]


@pytest.fixture
def files(tmp_path: Path, records: ModuleType) -> PhotographFiles:
    records.write_photograph(tmp_path / "photo.jpg", 2, 3)
    records.write_mask(tmp_path / "photo.png", LABELS)
    one = Files("photo", tmp_path / "photo.jpg", None, tmp_path / "photo.png")
    return PhotographFiles([one, Files("bare", tmp_path / "photo.jpg")], highest_class=20)


def test_labels_are_numbers_of_colours_not_colours(tmp_path: Path, records: ModuleType) -> None:
    records.write_mask(tmp_path / "mask.png", LABELS)
    assert read_labels(tmp_path / "mask.png").tolist() == WANTED


def test_labels_may_be_grey(tmp_path: Path) -> None:
    Image.fromarray(LABELS).save(tmp_path / "mask.png")
    labels = read_labels(tmp_path / "mask.png")
    assert labels.tolist() == WANTED
    assert labels.dtype == torch.int64


def test_a_small_palette_is_no_other_mask(tmp_path: Path) -> None:
    """Pillow stores few colours in few bits."""
    mask = Image.fromarray(np.array([[0, 1], [2, 3]], dtype=np.uint8)).convert("P")
    mask.putpalette([9, 9, 9, 0, 0, 0, 200, 0, 0, 0, 0, 200])
    mask.putdata([0, 1, 2, 3])
    mask.save(tmp_path / "mask.png", bits=2)
    assert read_labels(tmp_path / "mask.png").tolist() == [[0, 1], [2, 3]]


def test_a_mask_saved_in_colours_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (3, 2)).save(tmp_path / "mask.png")
    with pytest.raises(InputError, match=r"mask\.png should be a mask with a palette.*got mode 'R"):
        read_labels(tmp_path / "mask.png")


@pytest.mark.parametrize("content", [b"", b"no image at all"])
def test_a_damaged_mask_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mask.png").write_bytes(content)
    with pytest.raises(InputError, match=r"mask\.png cannot be read as a mask"):
        read_labels(tmp_path / "mask.png")


def test_a_label_that_cannot_be_is_named(tmp_path: Path, records: ModuleType) -> None:
    records.write_mask(tmp_path / "mask.png", LABELS)
    with pytest.raises(InputError, match=r"mask\.png should have labels 0 to 19 and 255, got a 20"):
        read_labels(tmp_path / "mask.png", highest=19)


def test_an_image_has_the_pixels_of_its_file(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(256, size=(5, 7, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "photo.png")
    image = read_image(tmp_path / "photo.png")
    assert image.shape == (3, 5, 7)
    assert np.array_equal(image.permute(1, 2, 0).numpy(), noise)


def test_a_photograph_has_the_masks_it_has(files: PhotographFiles) -> None:
    image, instances, classes = files[0]
    assert (image.shape, instances) == ((3, 2, 3), None)
    assert classes is not None
    assert classes.tolist() == WANTED
    assert files[1][1:] == (None, None)
    assert torch.equal(files.image(1), image)


def test_they_are_photographs_and_images(files: PhotographFiles) -> None:
    photographs: Photographs = files
    images: Images = files
    assert [photographs.name(i) for i in range(len(images))] == ["photo", "bare"]
    assert [type(photograph) for photograph in files] == [Photograph, Photograph]


def test_a_mask_of_another_size_is_named(files: PhotographFiles, records: ModuleType) -> None:
    mask = files.files[0].classes
    assert mask is not None
    records.write_mask(mask, LABELS.T)
    with pytest.raises(InputError, match=r"photo\.png should be as large as .*got \(3, 2\)"):
        files[0]


def test_an_index_outside_is_named(files: PhotographFiles) -> None:
    with pytest.raises(IndexError, match=r"index 2 is outside 0\.\.1"):
        files[2]
    with pytest.raises(IndexError, match="index -1"):
        files.image(-1)
