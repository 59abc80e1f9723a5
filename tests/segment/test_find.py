"""Which images are segmented, and as what."""

import glob
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rotating_features._check import InputError
from rotating_features.segment import OUTPUTS, find_images


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(*paths: str | Path) -> list[str]:
    return [name.as_posix() for _, name in find_images(paths)]


def test_folders_are_searched_in_the_order_of_names(tmp_path: Path) -> None:
    touch(tmp_path, "b/2.png", "a.png", "b/1.JPG", "c.txt", "b/c/d.webp", "B.tif")
    assert names(tmp_path) == ["B.tif", "a.png", "b/1.JPG", "b/2.png", "b/c/d.webp"]


def test_a_folder_that_contains_itself_is_searched_once(tmp_path: Path) -> None:
    touch(tmp_path, "a/1.png", "b/2.png")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "b" / "again").symlink_to(tmp_path / "b")
    (tmp_path / "nothing").symlink_to("nothing")
    assert names(tmp_path) == ["a/1.png", "b/2.png"]
    assert names(f"{tmp_path}/**/*.png") == ["a/1.png", "b/2.png"]


def test_many_folders_linked_to_each_other_cost_no_more_than_they_are(tmp_path: Path) -> None:
    """By path there would be more ways through them than anybody can count."""
    for i in range(20):
        touch(tmp_path, f"{i}/{i}.png")
        for j in range(20):
            (tmp_path / f"{i}" / f"to-{j}").symlink_to(tmp_path / f"{j}")
    assert sorted(names(tmp_path)) == sorted(f"{i}/{i}.png" for i in range(20))


def test_links_to_folders_elsewhere_are_followed(tmp_path: Path) -> None:
    touch(tmp_path, "far/1.png", "here/2.png")
    (tmp_path / "here" / "0link").symlink_to(tmp_path / "far")
    assert names(tmp_path / "here") == ["0link/1.png", "2.png"]


def test_a_file_is_found_at_its_own_place_before_that_of_a_link(tmp_path: Path) -> None:
    touch(tmp_path, "z/1.png")
    (tmp_path / "a").symlink_to(tmp_path / "z")
    assert names(tmp_path) == ["z/1.png"]


def test_a_link_to_nowhere_is_found_and_a_pipe_is_not(tmp_path: Path) -> None:
    """The first shall be named as a problem; the second would be waited for without end."""
    (tmp_path / "gone.png").symlink_to("nowhere.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert names(tmp_path) == ["gone.png"]


@pytest.mark.parametrize("pattern", ["*", "*.png", "**", "**/*.png", "**/**"])
def test_a_pipe_that_a_pattern_means_is_passed_over(tmp_path: Path, pattern: str) -> None:
    touch(tmp_path, "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert names(f"{tmp_path}/{pattern}") == ["a.png"]


@pytest.mark.parametrize("name", ["pipe.png", "pipe"])
def test_a_pipe_that_is_named_is_refused_by_name(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name} should be an image .* but it is a pipe"):
        find_images([tmp_path / name])


def test_a_folder_that_may_not_be_read_is_kept_to_be_named(tmp_path: Path, monkeypatch) -> None:
    touch(tmp_path, "a.png", "private/b.png")
    real = Path.iterdir

    def iterdir(path: Path):
        if path.name == "private":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert names(tmp_path) == ["a.png", "private"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*.jpg", ["1.jpg", "2.jpg"]),
        ("?.*", ["1.jpg", "2.jpg", "3.png"]),
        ("[12].jpg", ["1.jpg", "2.jpg"]),
        ("in*/*.jpg", ["inner/1.jpg"]),
        ("in*", ["inner/1.jpg", "inner/more/4.png"]),
        ("**/*.png", ["3.png", "inner/more/4.png"]),
        ("**/more/*.png", ["inner/more/4.png"]),
        ("**", ["1.jpg", "2.jpg", "3.png", "inner/1.jpg", "inner/more/4.png"]),
    ],
)
def test_patterns_that_no_shell_has_expanded(tmp_path: Path, pattern: str, wanted) -> None:
    touch(tmp_path, "1.jpg", "2.jpg", "3.png", "4.txt", "inner/1.jpg", "inner/more/4.png")
    assert names(f"{tmp_path}/{pattern}") == wanted


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders in folders, some called like images and some hidden; of the files half are there."""
    top, rng = tmp_path_factory.mktemp("tree"), np.random.default_rng(0)
    for depth in range(4):
        for way in product(("a", "ab", "c.png", ".h"), repeat=depth):
            for name in ("a.png", "b.png", "b.txt", ".d.png"):
                if rng.integers(2):
                    touch(top, "/".join((*way, name)))
    return top


def images(path: str, top: Path) -> set[str]:
    """Names of images that a match of Python's own pattern is or has in it."""
    inside = Path(path).rglob("*.png") if Path(path).is_dir() else [Path(path)]
    files = [p for p in inside if p.is_file() and p.suffix == ".png"]
    below = {p: p.relative_to(path).parts for p in files}
    return {
        str(p.relative_to(top)) for p in files if not any(part.startswith(".") for part in below[p])
    }


PARTS = st.sampled_from(["**", "*", "a", "a*", "ab", "?", "*.png", "[ab].png", "c.png", "b.png"])


@given(parts=st.lists(PARTS, min_size=1, max_size=6))
@example(parts=["**", "a", "**", "b.png"])
@example(parts=["a", "**", "a", "*.png"])
def test_patterns_mean_what_they_mean_to_python(tree: Path, parts: list[str]) -> None:
    """But that it has ``b.png/**`` mean the file b.png, as b.png/, which is not there."""
    pattern = str(tree.joinpath(*parts))
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 (what the shell means)
    wanted = [images(match, tree) for match in matches if os.access(match, os.F_OK)]
    try:
        found = {str(source.relative_to(tree)) for source, _ in find_images([pattern])}
    except InputError:
        found = set()
    assert found == set().union(*wanted)


def test_a_pattern_is_relative_to_where_one_is(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(touch(tmp_path, "1.jpg"))
    assert find_images(["*.jpg"]) == [(Path("1.jpg"), Path("1.jpg"))]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    touch(tmp_path, "a[1].png", "a1.png")
    assert names(tmp_path / "a[1].png") == ["a[1].png"]


def test_a_pattern_that_nothing_fits_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no image or folder like .*\*\.jpg"):
        find_images([tmp_path / "*.jpg"])


def test_an_image_named_twice_is_taken_once(tmp_path: Path) -> None:
    touch(tmp_path, "a.png")
    assert names(tmp_path, tmp_path / "a.png", f"{tmp_path}/*.png") == ["a.png"]


def test_what_we_wrote_is_no_image(tmp_path: Path) -> None:
    touch(tmp_path, *(f"masks/a.png{ending}" for ending in OUTPUTS), "a.png", "masks/objects.jsonl")
    touch(tmp_path, "masks/contact-sheet.png", "masks/contact-sheet-2.png")
    assert names(tmp_path) == ["a.png"]


def test_what_only_looks_like_ours_is_an_image(tmp_path: Path) -> None:
    touch(tmp_path, "contact-sheet.png", "my.labels.png.png", "x.labels.png")
    assert len(names(tmp_path)) == 3
