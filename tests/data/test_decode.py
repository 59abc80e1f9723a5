import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rotating_features._check import InputError
from rotating_features.data.decode import as_rgb, looks_like_image, open_image

RED, WHITE = (255, 0, 0), (255, 255, 255)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "L", "LA", "1", "I;16", "F"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    picture = Image.new("RGB", (3, 2), WHITE)
    picture = Image.new(mode, (3, 2), 65535) if mode == "I;16" else picture.convert(mode)
    rgb = as_rgb(picture)
    assert rgb.mode == "RGB"
    assert rgb.getpixel((1, 1)) == WHITE


@pytest.mark.parametrize("white", [1.0, 255.0])
def test_floats_may_go_up_to_1_or_to_255(tmp_path: Path, white: float) -> None:
    grey = np.linspace(0, white, 256, dtype=np.float32)[None]
    Image.fromarray(grey).save(tmp_path / "grey.tif")
    assert np.asarray(open_image(tmp_path / "grey.tif"))[0, :, 0].tolist() == list(range(256))


def test_floats_that_overshoot_are_clipped(tmp_path: Path) -> None:
    Image.fromarray(np.array([[-0.01, 0.5, 1.01]], dtype=np.float32)).save(tmp_path / "sharp.tif")
    assert np.asarray(open_image(tmp_path / "sharp.tif"))[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("odd", [-1.0, 256.0, float("nan")])
def test_other_floats_are_refused_by_name(tmp_path: Path, odd: float) -> None:
    Image.fromarray(np.array([[0.5, odd]], dtype=np.float32)).save(tmp_path / "odd.tif")
    with pytest.raises(InputError, match=r"odd\.tif cannot be read .* floats should lie in"):
        open_image(tmp_path / "odd.tif")


@pytest.mark.parametrize("white", [255, 65535])
def test_integers_of_32_bits_may_go_up_to_255_or_to_65535(tmp_path: Path, white: int) -> None:
    grey = np.linspace(0, white, 256, dtype=np.int32)[None]
    Image.fromarray(grey).save(tmp_path / "grey.tif")
    assert np.asarray(open_image(tmp_path / "grey.tif"))[0, :, 0].tolist() == list(range(256))


@pytest.mark.parametrize("odd", [-1, 65536, 10**9])
def test_other_integers_of_32_bits_are_refused_by_name(tmp_path: Path, odd: int) -> None:
    Image.fromarray(np.array([[5, odd]], dtype=np.int32)).save(tmp_path / "odd.tif")
    with pytest.raises(InputError, match=r"odd\.tif cannot be read .* integers should lie in"):
        open_image(tmp_path / "odd.tif")


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_pictures_of_16_bits_are_never_taken_for_8(mode: str) -> None:
    assert as_rgb(Image.new(mode, (1, 1), 255)).getpixel((0, 0)) == (1, 1, 1)


def test_what_is_transparent_is_white() -> None:
    picture = Image.new("RGBA", (2, 1), (*RED, 0))
    picture.putpixel((0, 0), (*RED, 255))
    assert np.asarray(as_rgb(picture)).tolist() == [[[*RED], [*WHITE]]]


def test_a_turned_camera_gives_an_upright_picture(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it by 90 degrees to look at it
    Image.new("RGB", (4, 2)).save(tmp_path / "turned.jpg", exif=exif)
    assert open_image(tmp_path / "turned.jpg").size == (2, 4)


@pytest.mark.parametrize("content", [b"", b"no image at all"])
def test_what_is_no_image_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "photo.png").write_bytes(content)
    with pytest.raises(InputError, match=r"photo\.png cannot be read"):
        open_image(tmp_path / "photo.png")


def test_a_telephone_s_photograph_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "IMG_1.HEIC"
    path.write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    assert looks_like_image(path)
    with pytest.raises(InputError, match=r"(?s)IMG_1\.HEIC cannot be read.*convert it to JPEG"):
        open_image(path)


def test_half_an_image_is_named(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(256, size=(64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.jpg")
    (tmp_path / "half.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:2000])
    with pytest.raises(InputError, match=r"half\.jpg cannot be read"):
        open_image(tmp_path / "half.jpg")


def test_threads_leave_the_filters_of_warnings_as_they_were(tmp_path: Path) -> None:
    """They belong to the whole process, and each reader changes them for a moment."""
    Image.new("RGB", (1, 1)).save(tmp_path / "photo.png")
    before, interval = list(warnings.filters), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(open_image, [tmp_path / "photo.png"] * 400))
    finally:
        sys.setswitchinterval(interval)
    assert list(warnings.filters) == before


def test_what_looks_like_an_image_is_decided_once(tmp_path: Path) -> None:
    """A link to nothing is to be named; a pipe would be waited for."""
    for name in ("a.JPG", "b.txt", "c"):
        (tmp_path / name).touch()
    (tmp_path / "d.png").mkdir()
    (tmp_path / "e.png").symlink_to("nowhere.png")
    os.mkfifo(tmp_path / "f.png")
    found = [path.name for path in sorted(tmp_path.iterdir()) if looks_like_image(path)]
    assert found == ["a.JPG", "e.png"]
