"""From image files to mask files."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rotating_features._check import InputError
from rotating_features.data.memory import Memory
from rotating_features.evaluate import discover
from rotating_features.models import RotatingAutoEncoder
from rotating_features.segment import OUTPUTS, find_images, segment
from rotating_features.segment.load import load_image

SIZE = (40, 24)  # width and height
FOR_ALL = ["coco.json", "contact-sheet.png", "objects.jsonl", "report.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images, one of them in a folder inside, and a file that is none."""
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    picture().save(folder / "a.png")
    picture().save(folder / "more" / "B.JPG")
    (folder / "notes.txt").write_text("no image")
    return folder


def picture() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def run(model, paths, out: Path, **options) -> list:
    options = options or {"k": 3}
    return list(segment(model, find_images(paths), out, **options))


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def report(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "objects.jsonl").read_text().splitlines()]


def read(path: Path) -> np.ndarray:
    with Image.open(path) as file:
        return np.array(file)


def test_a_folder_is_searched_through_and_only_for_images(folder: Path) -> None:
    assert find_images([folder]) == [
        (folder / "a.png", Path("a.png")),
        (folder / "more" / "B.JPG", Path("more/B.JPG")),
    ]


def test_a_file_keeps_its_name(folder: Path) -> None:
    path = folder / "more" / "B.JPG"
    assert find_images([path]) == [(path, Path("B.JPG"))]


def test_files_and_folders_may_be_mixed(folder: Path) -> None:
    found = find_images([folder / "a.png", folder / "more"])
    assert [str(name) for _, name in found] == ["a.png", "B.JPG"]


def test_the_output_mirrors_the_folder(model, folder: Path, tmp_path: Path) -> None:
    run(model, [folder], tmp_path / "out")
    stems = ["a.png", "more/B.JPG"]
    wanted = [stem + suffix for stem in stems for suffix in OUTPUTS]
    assert names(tmp_path / "out") == sorted([*wanted, *FOR_ALL])


def test_the_mask_is_a_palette_image_whose_values_are_the_labels(model, folder, tmp_path) -> None:
    run(model, [folder / "a.png"], tmp_path)
    with Image.open(tmp_path / "a.png.labels.png") as mask:
        assert (mask.mode, mask.size) == ("P", SIZE)
    wanted = discover(model, picture(), k=3).labels
    assert read(tmp_path / "a.png.labels.png").tolist() == wanted.tolist()


@pytest.mark.parametrize("suffix", OUTPUTS)
def test_every_output_has_the_size_of_the_image(model, folder, tmp_path, suffix: str) -> None:
    run(model, [folder], tmp_path / "out")
    for stem in ("a.png", "more/B.JPG"):
        with Image.open(tmp_path / "out" / (stem + suffix)) as image:
            assert image.size == SIZE


def test_the_report_has_a_line_for_each_image(model, folder: Path, tmp_path: Path) -> None:
    run(model, [folder], tmp_path / "out")
    lines = report(tmp_path / "out")
    assert [line["image"] for line in lines] == [
        str(folder / "a.png"),
        str(folder / "more" / "B.JPG"),
    ]


def test_the_report_agrees_with_the_mask(model, folder: Path, tmp_path: Path) -> None:
    (done,) = run(model, [folder / "a.png"], tmp_path)
    (line,) = report(tmp_path)
    labels = read(tmp_path / "a.png.labels.png")
    objects = [label for label in np.unique(labels) if label > 0]
    assert line["objects"] == done.objects == len(objects) == len(line["uncertainty"])
    assert line["areas"] == [int((labels == label).sum()) for label in objects]
    for (left, top, width, height), label in zip(line["boxes"], objects, strict=True):
        inside = np.zeros_like(labels, dtype=bool)
        inside[top : top + height, left : left + width] = True
        mask = labels == label
        assert not (mask & ~inside).any()
        edges = mask[top], mask[top + height - 1], mask[:, left], mask[:, left + width - 1]
        assert all(edge.any() for edge in edges)


def test_without_k_the_number_of_objects_is_found(model, folder: Path, tmp_path: Path) -> None:
    run(model, [folder / "a.png"], tmp_path, distance_threshold=5.0)
    wanted = discover(model, picture()).labels
    assert read(tmp_path / "a.png.labels.png").tolist() == wanted.tolist()


def test_nothing_found_is_a_result_with_0_objects(model, folder: Path, tmp_path: Path) -> None:
    norm = model.decoder[-1].norm
    torch.nn.init.zeros_(norm.weight)
    torch.nn.init.constant_(norm.bias, -1.0)  # no channel responds any more
    done = run(model, [folder], tmp_path / "out")
    assert [(item.objects, item.problem) for item in done] == [(0, None)] * 2
    assert [line["objects"] for line in report(tmp_path / "out")] == [0, 0]
    assert not read(tmp_path / "out" / "a.png.labels.png").any()


@pytest.mark.parametrize("options", [{"k": 3}, {"distance_threshold": 5.0}])
def test_a_black_image_is_an_image(model, tmp_path: Path, options) -> None:
    Image.new("L", SIZE).save(tmp_path / "black.png")
    (done,) = run(model, [tmp_path / "black.png"], tmp_path / "out", **options)
    assert done.problem is None
    assert names(tmp_path / "out") == sorted([*(f"black.png{end}" for end in OUTPUTS), *FOR_ALL])


BROKEN = {"zero bytes": b"", "text": b"no image", "only a header": b"\x89PNG\r\n\x1a\n"}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_image_is_reported_and_the_rest_is_done(model, folder, tmp_path, kind) -> None:
    (folder / "aa.png").write_bytes(BROKEN[kind])
    done = run(model, [folder], tmp_path / "out")
    assert [item.source.name for item in done] == ["a.png", "aa.png", "B.JPG"]
    assert [item.problem is None for item in done] == [True, False, True]
    assert "aa.png cannot be read as an image" in done[1].problem
    assert len(report(tmp_path / "out")) == 2
    assert not [name for name in names(tmp_path / "out") if name.startswith("aa.png")]


@pytest.mark.parametrize("ending", ["png", "jpg", "bmp", "gif", "tif", "webp"])
def test_an_image_cut_short_is_reported(model, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"half.{ending}"
    picture().save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (done,) = run(model, [path], tmp_path / "out")
    assert "cannot be read as an image" in done.problem


def test_an_error_inside_the_decoder_is_reported(model, folder, tmp_path, monkeypatch) -> None:
    """Some damaged TIFF files make Pillow raise a TypeError."""

    def fail(*_: object) -> None:
        raise TypeError("'float' object cannot be interpreted as an integer")

    monkeypatch.setattr("PIL.ImageOps.exif_transpose", fail)
    (done,) = run(model, [folder / "a.png"], tmp_path / "out")
    assert "cannot be read as an image" in done.problem


def test_own_output_is_no_input_of_the_next_run(model, folder: Path) -> None:
    run(model, [folder], folder)
    once = names(folder)
    run(model, [folder], folder)
    assert names(folder) == once
    assert len(report(folder)) == 2


def test_a_picture_turned_by_its_camera_is_turned_back(model, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: a quarter turn
    picture().save(tmp_path / "turned.png", exif=exif)
    run(model, [tmp_path / "turned.png"], tmp_path / "out")
    assert read(tmp_path / "out" / "turned.png.labels.png").shape == SIZE


@pytest.mark.parametrize(
    ("mode", "ending"),
    [(mode, "png") for mode in ("1", "L", "LA", "P", "RGB", "RGBA")]
    + [("CMYK", "tif"), ("CMYK", "jpg"), ("RGB", "jpg"), ("L", "jpg")],
)
def test_pictures_of_every_mode_are_read_as_they_look(
    model, tmp_path: Path, mode: str, ending: str
) -> None:
    path = tmp_path / f"image.{ending}"
    looks = picture().resize((4, 3)).resize(SIZE).convert(mode)
    looks.save(path)
    (done,) = run(model, [path], tmp_path / "out")
    assert done.problem is None
    loaded = load_image(path, model.channels, model.size, Memory()).picture
    error = np.abs(np.asarray(loaded).astype(int) - np.asarray(looks.convert("RGB")))
    assert error.max() <= (20 if ending == "jpg" else 0)


def test_a_picture_of_16_bits_is_not_blown_out(model, tmp_path: Path) -> None:
    """Its overlay is that of the same picture of 8 bits."""
    grey = np.asarray(picture().convert("L"))
    Image.fromarray(grey).save(tmp_path / "8.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "16.png")
    run(model, [tmp_path / "8.png", tmp_path / "16.png"], tmp_path / "out")
    one, two = (read(tmp_path / "out" / f"{bits}.png.overlay.jpg") for bits in (8, 16))
    assert np.abs(one.astype(int) - two).max() <= 2


def test_a_grey_model_takes_colour_files(folder: Path, tmp_path: Path) -> None:
    grey = RotatingAutoEncoder(channels=1, size=(32, 32), hidden_dim=4, rotation_dim=3)
    assert [item.problem for item in run(grey, [folder], tmp_path / "out")] == [None, None]


def test_two_images_with_one_output_name_are_explained(folder: Path) -> None:
    """Otherwise the second would overwrite the masks of the first."""
    picture().save(folder / "more" / "a.png")
    with pytest.raises(InputError, match=r"a\.png"):
        find_images([folder, folder / "more"])


def test_more_objects_than_a_mask_can_number_are_reported(model, tmp_path: Path) -> None:
    """A palette has 256 places; label 256 must not come out as background."""
    picture().save(tmp_path / "a.png")
    options = {"distance_threshold": 1e-4}
    assert discover(model, picture(), **options).objects > 255
    (done,) = run(model, [tmp_path / "a.png"], tmp_path / "out", **options)
    assert "255" in done.problem
    assert not list((tmp_path / "out").glob("a.png*"))


def test_a_missing_path_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no image or folder .*nowhere"):
        find_images([tmp_path / "nowhere"])


def test_a_folder_without_images_is_explained(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(InputError, match=rf"No images found in {tmp_path}; .*\.jpeg, \.jpg"):
        find_images([tmp_path])
