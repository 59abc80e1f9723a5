"""Folders as people have them."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from rotating_features._check import InputError
from rotating_features.data.image_folder import ImageFolder
from rotating_features.data.packing import pack


def found(dataset: ImageFolder, root: Path) -> list[str]:
    return [str(Path(dataset.name(index)).relative_to(root)) for index in range(len(dataset))]


@pytest.fixture
def photos(tmp_path: Path, records: ModuleType) -> Path:
    for name in ("b.jpg", "a.JPEG", "deep/er/c.png", "deep/d.jpg"):
        records.write_photograph(tmp_path / name, 6, 8)
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / "._b.jpg").write_text("what some systems leave behind")
    return tmp_path


def test_folders_are_searched_in_order(photos: Path) -> None:
    wanted = ["a.JPEG", "b.jpg", "deep/d.jpg", "deep/er/c.png"]
    assert found(ImageFolder(photos), photos) == wanted
    assert found(ImageFolder(str(photos)), photos) == wanted


def test_files_and_folders_may_be_mixed_and_count_once(photos: Path) -> None:
    mixed = ImageFolder([photos / "deep", photos / "b.jpg", photos / "deep/er", photos / "b.jpg"])
    assert found(mixed, photos) == ["deep/d.jpg", "deep/er/c.png", "b.jpg"]


def test_a_file_named_outright_need_not_end_like_an_image(photos: Path) -> None:
    (photos / "b.jpg").rename(photos / "photo")
    assert ImageFolder(photos / "photo")[0].image.shape == (3, 6, 8)


def test_links_are_followed_but_never_in_circles(photos: Path, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other")
    Image.new("RGB", (2, 2)).save(other / "e.png")
    (photos / "deep" / "up").symlink_to(photos, target_is_directory=True)
    (photos / "deep" / "self").symlink_to(photos / "deep", target_is_directory=True)
    (other / "back").symlink_to(photos, target_is_directory=True)
    (photos / "out").symlink_to(other, target_is_directory=True)
    wanted = ["a.JPEG", "b.jpg", "deep/d.jpg", "deep/er/c.png", "out/e.png"]
    assert found(ImageFolder(photos), photos) == wanted


def test_a_pipe_is_not_waited_for(photos: Path) -> None:
    os.mkfifo(photos / "pipe.jpg")
    assert "pipe.jpg" not in found(ImageFolder(photos), photos)


def test_a_pipe_that_is_named_is_refused_by_name(photos: Path) -> None:
    os.mkfifo(photos / "pipe.jpg")
    with pytest.raises(InputError, match=r"pipe\.jpg should be an image .* but it is a pipe"):
        ImageFolder([photos / "b.jpg", photos / "pipe.jpg"])


def test_there_are_no_masks(photos: Path) -> None:
    assert ImageFolder(photos)[0][1:] == (None, None)


def test_nothing_found_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No images found in .*\.jpg"):
        ImageFolder(tmp_path)
    with pytest.raises(InputError, match="No images found in nothing"):
        ImageFolder([])
    with pytest.raises(InputError, match=r"no image or folder .*nowhere"):
        ImageFolder(tmp_path / "nowhere")


def test_a_folder_that_may_not_be_searched_is_named(photos: Path, monkeypatch) -> None:
    entries = Path.iterdir

    def refuse(path: Path) -> Iterator[Path]:
        if path.name == "er":
            raise PermissionError("not for you")
        return entries(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    packed = pack(ImageFolder(photos), side=4)
    assert [Path(name).name for name in packed.names] == ["a.JPEG", "b.jpg", "d.jpg"]
    assert [name for name, _ in packed.problems] == [str(photos / "deep" / "er")]
    with pytest.raises(InputError, match=rf"{photos / 'deep' / 'er'} cannot be searched: not for"):
        ImageFolder(photos / "deep" / "er")


def test_a_file_counts_once_however_it_is_reached(photos: Path) -> None:
    (photos / "again.jpg").symlink_to(photos / "b.jpg")
    other = [photos / "deep", photos / "deep" / ".." / "deep" / "d.jpg"]
    assert found(ImageFolder(photos), photos) == [
        "a.JPEG", "b.jpg", "deep/d.jpg", "deep/er/c.png"
    ]  # fmt: skip
    assert len(ImageFolder(other)) == 2


@pytest.mark.parametrize("workers", [1, 3, None])
def test_what_is_broken_is_named_and_stops_nothing(photos: Path, workers: int | None) -> None:
    (photos / "empty.jpg").touch()
    (photos / "text.jpg").write_text("no image at all")
    noise = np.random.default_rng(0).integers(256, size=(64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(photos / "half.jpg")
    (photos / "half.jpg").write_bytes((photos / "half.jpg").read_bytes()[:2000])
    (photos / "lost.jpg").symlink_to(photos / "nowhere.jpg")
    Image.new("L", (1, 1)).save(photos / "tiny.jpg")
    Image.new("CMYK", (5, 4)).save(photos / "print.jpg")

    Image.new("L", (2, 99)).save(photos / "thread.png")

    dataset, told = ImageFolder(photos), []
    packed = pack(dataset, side=4, workers=workers, progress=told.append)
    broken = {"empty.jpg", "text.jpg", "half.jpg", "lost.jpg", "thread.png"}
    assert {str(Path(name).relative_to(photos)) for name, _ in packed.problems} == broken
    assert all(name in problem for name, problem in packed.problems)
    good = [str(Path(name).relative_to(photos)) for name in packed.names]
    assert good == [name for name in found(dataset, photos) if name not in broken]
    assert told == list(range(1, len(dataset) + 1))


def test_what_segment_made_is_no_photograph(photos: Path) -> None:
    before = found(ImageFolder(photos), photos)
    for name in ("a.jpg.labels.png", "a.jpg.overlay.jpg", "a.jpg.uncertainty.png"):
        Image.new("L", (4, 4)).save(photos / name)
    Image.new("L", (4, 4)).save(photos / "contact-sheet.png")
    (photos / "objects.jsonl").touch()
    assert found(ImageFolder(photos), photos) == before
