"""MNIST's files: what is in them is read, and what is wrong with them is explained."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from rotating_features._check import InputError
from rotating_features.data.mnist import FILES, read_mnist

IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
REAL = Path(__file__).parents[3] / "shared" / "data" / "mnist"
needs_mnist = pytest.mark.skipif(not REAL.is_dir(), reason="needs MNIST")


def pack(array: np.ndarray, kind: int = 8) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), compresslevel=1)


IMAGE_ARRAY = np.arange(10_000 * 28 * 28).astype(np.uint8).reshape(10_000, 28, 28)
LABEL_ARRAY = (np.arange(10_000) % 10).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / IMAGES).write_bytes(pack(IMAGE_ARRAY))
    (tmp_path / LABELS).write_bytes(pack(LABEL_ARRAY))
    return tmp_path


def explains(error: InputError, folder: Path, name: str) -> bool:
    """Which file it was, where, and which files are wanted."""
    text = str(error)
    return f"{name} in the folder {folder}" in text and all(wanted in text for wanted in FILES)


def says_where_to_get_it(error: InputError, folder: Path) -> bool:
    """A command, and addresses for those who would rather fetch it by hand."""
    told = (f"data mnist1shape --fetch --out {folder}", "https://", f"Looked for in {folder}")
    return all(part in str(error) for part in told)


def test_the_four_files_have_their_original_names() -> None:
    assert FILES == (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    )


def test_what_was_written_is_read(folder: Path) -> None:
    images, labels = read_mnist("t10k", str(folder))
    assert np.array_equal(images, IMAGE_ARRAY)
    assert np.array_equal(labels, LABEL_ARRAY)


@pytest.mark.parametrize("name", [IMAGES, LABELS])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=r"MNIST needs .*" + name) as caught:
        read_mnist("t10k", folder)
    assert says_where_to_get_it(caught.value, folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"MNIST needs {', '.join(FILES)}") as caught:
        read_mnist("train", tmp_path / "nowhere")
    assert says_where_to_get_it(caught.value, tmp_path / "nowhere")


def test_files_are_looked_for_in_data_mnist(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        read_mnist("train")
    assert says_where_to_get_it(caught.value, tmp_path / "data" / "mnist")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_a_file_cut_short_is_named(folder: Path, share: float) -> None:
    whole = (folder / IMAGES).read_bytes()
    (folder / IMAGES).write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError) as caught:
        read_mnist("t10k", folder)
    assert explains(caught.value, folder, IMAGES)


def test_a_file_with_garbage_inside_is_named(folder: Path) -> None:
    whole = bytearray((folder / IMAGES).read_bytes())
    whole[1_000:2_000] = bytes(1_000)
    (folder / IMAGES).write_bytes(whole)
    with pytest.raises(InputError, match="could not be read") as caught:
        read_mnist("t10k", folder)
    assert explains(caught.value, folder, IMAGES)


WRONG = {
    "not packed": LABEL_ARRAY.tobytes(),
    "no idx file": gzip.compress(b"<html>Not found</html>"),
    "too few": pack(LABEL_ARRAY[:-1]),
    "another number of axes": pack(LABEL_ARRAY[:, None]),
    "wider numbers": pack(LABEL_ARRAY.astype(np.int16), kind=11),
    "a byte too many": gzip.compress(gzip.decompress(pack(LABEL_ARRAY)) + b"0"),
    "a label of ten": pack(LABEL_ARRAY + np.uint8(1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_named(folder: Path, name: str) -> None:
    (folder / LABELS).write_bytes(WRONG[name])
    with pytest.raises(InputError) as caught:
        read_mnist("t10k", folder)
    assert explains(caught.value, folder, LABELS)


@needs_mnist
def test_the_published_digits_are_read() -> None:
    images, labels = read_mnist("train", REAL)
    assert labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert abs(images.mean() / 255 - 0.1307) < 1e-4  # the figure everyone normalises with
    assert len(read_mnist("t10k", REAL)[0]) == 10_000
