"""Stopped or killed at any moment, the next run ends with the files of one never stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rotating_features._check import InputError
from rotating_features.models import RotatingAutoEncoder, save
from rotating_features.segment import find_images, segment
from rotating_features.segment.journal import read_lines

BATCH = 4
SCRIPT = """
import sys, torch
from pathlib import Path
from rotating_features.models import load
from rotating_features.segment import find_images, segment
torch.set_num_threads(1)
model, photos, out = sys.argv[1:]
list(segment(load(model), find_images([photos]), Path(out), k=3, batch_size=4))
"""


def start(model, photos: Path, out: Path, **options):
    return segment(model, find_images([photos]), out, **{"k": 3, "batch_size": BATCH, **options})


def run(model, photos: Path, out: Path, **options) -> list:
    return list(start(model, photos, out, **options))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def skipped(results: list) -> int:
    return sum(result.skipped for result in results)


def assert_lines_are_true(out: Path) -> None:
    """What the report says has its files, whole and as it says."""
    for line in read_lines(out / "objects.jsonl"):
        with Image.open(out / f"{line['name']}.labels.png") as file:
            labels = np.array(file)
        areas = [int((labels == label).sum()) for label in line["labels"]]
        assert areas == line["areas"]
        for ending in ("overlay.jpg", "uncertainty.png"):
            with Image.open(out / f"{line['name']}.{ending}") as file:
                file.load()


def test_a_second_run_does_nothing_again(model, photos: Path, tmp_path: Path, monkeypatch) -> None:
    once = run(model, photos, tmp_path / "out")
    before = contents(tmp_path / "out")
    monkeypatch.setattr("rotating_features.segment.pipeline.load_image", None)  # not to be called
    twice = run(model, photos, tmp_path / "out")
    assert (skipped(once), skipped(twice)) == (0, 11)
    assert [item.objects for item in twice] == [item.objects for item in once]
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("stop_after", [1, 3, 4, 5, 10])
def test_stopped_anywhere_it_ends_the_same(model, photos, tmp_path, stop_after: int) -> None:
    run(model, photos, tmp_path / "whole")
    results = start(model, photos, tmp_path / "parts")
    for _ in range(stop_after):
        next(results)
    results.close()
    assert_lines_are_true(tmp_path / "parts")
    left = json.loads((tmp_path / "parts" / "report.json").read_text())["left"]
    again = run(model, photos, tmp_path / "parts")
    assert skipped(again) == 11 - left >= stop_after
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_killed_midway_it_ends_the_same(photos: Path, tmp_path: Path) -> None:
    for i in range(24):
        picture = Image.effect_noise((50 + i, 40), 80).convert("RGB")
        picture.save(photos / f"noise-{i:02}.png")
    model = RotatingAutoEncoder(channels=3, size=(32, 32), hidden_dim=4, rotation_dim=3).eval()
    save(model, tmp_path / "model.safetensors")
    words = [tmp_path / "model.safetensors", photos, tmp_path / "killed"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, *map(str, words)], env=alone)
    report = tmp_path / "killed" / "objects.jsonl"
    deadline = time.monotonic() + 60
    while not report.exists() or report.read_bytes().count(b"\n") < 9:
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "the run does not get going"
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert_lines_are_true(tmp_path / "killed")
    assert 9 <= skipped(run(model, photos, tmp_path / "killed")) < 35
    run(model, photos, tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "tail", ['{"image": "photos/0', "{", "\x00\x00\x00", "[1]\n", '{"a": 1}\n']
)
def test_a_torn_line_is_dropped(model, photos: Path, tmp_path: Path, tail: str) -> None:
    run(model, photos, tmp_path / "out")
    before = contents(tmp_path / "out")
    report = tmp_path / "out" / "objects.jsonl"
    report.write_text(report.read_text() + tail)
    assert skipped(run(model, photos, tmp_path / "out")) == 11
    assert contents(tmp_path / "out") == before


def test_the_last_line_of_an_image_counts(model, photos: Path, tmp_path: Path) -> None:
    """Two runs at once used to write each image's line twice."""
    run(model, photos, tmp_path / "out")
    before = contents(tmp_path / "out")
    report = tmp_path / "out" / "objects.jsonl"
    lines = report.read_text().splitlines(keepends=True)
    report.write_text("".join(lines + lines))
    assert skipped(run(model, photos, tmp_path / "out")) == 11
    assert contents(tmp_path / "out") == before


@pytest.mark.skipif(find_spec("fcntl") is None, reason="a system without such locks")
def test_two_runs_cannot_write_to_one_folder(model, photos: Path, tmp_path: Path) -> None:
    first = start(model, photos, tmp_path / "out")
    next(first)
    with pytest.raises(InputError, match="Another command is writing to"):
        run(model, photos, tmp_path / "out")
    first.close()
    assert len(run(model, photos, tmp_path / "out")) == 11


def test_a_run_that_cannot_begin_keeps_nobody_out(
    model, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, good: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rotating_features.segment.journal.Journal._keep", full)
        with pytest.raises(OSError, match="No space left") as failure:
            run(model, photos, tmp_path / "out")
    assert len(run(model, photos, tmp_path / "out")) == 11
    assert failure.value.__traceback__ is not None  # what failed is still held, and its lock is not


@pytest.mark.parametrize(
    "content",
    [
        '{"id": 1, "text": "mine"}\n',
        "mine",
        "\n\n",
        '{"image": "a.jpg", "boxes": []}\n',
        '{"image": "a.jpg", "boxes": []}',
        '{"image": "a.jpg", "boxes": [}\n',
    ],
)
def test_a_report_of_somebody_else_is_left_alone(
    model, photos: Path, tmp_path: Path, content: str
) -> None:
    out = tmp_path / "theirs"
    out.mkdir()
    (out / "objects.jsonl").write_text(content)
    with pytest.raises(InputError, match=r"objects\.jsonl would be overwritten"):
        run(model, photos, out)
    assert contents(out) == {"objects.jsonl": content.encode()}


@pytest.mark.parametrize("name", ["00.png.labels.png", "inner/06.png.overlay.jpg"])
def test_masks_of_somebody_else_are_left_alone(
    model, photos: Path, tmp_path: Path, name: str
) -> None:
    theirs = tmp_path / "theirs" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    with pytest.raises(InputError, match=rf"{name} would be overwritten"):
        run(model, photos, tmp_path / "theirs")
    assert contents(tmp_path / "theirs") == {name: b"mine"}


def test_half_of_the_last_line_has_its_image_done_again(model, photos, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    before = contents(tmp_path / "out")
    report = tmp_path / "out" / "objects.jsonl"
    report.write_bytes(report.read_bytes()[:-20])
    assert skipped(run(model, photos, tmp_path / "out")) == 10
    assert contents(tmp_path / "out") == before


def test_other_settings_redo_everything(model, photos: Path, tmp_path: Path) -> None:
    some = photos / "0[0-2].*"
    run(model, some, tmp_path / "out")
    assert skipped(run(model, some, tmp_path / "out", k=4)) == 0
    assert skipped(run(model, some, tmp_path / "out", k=None)) == 0
    assert skipped(run(model, some, tmp_path / "out", k=None, distance_threshold=5.0)) == 3
    assert skipped(run(model, some, tmp_path / "out", k=None, distance_threshold=6.0)) == 0
    assert skipped(run(model, some, tmp_path / "out", k=3, magnitude_threshold=0.1)) == 0
    assert skipped(run(model, some, tmp_path / "out")) == 3  # which is the default
    assert skipped(run(model, some, tmp_path / "out", k=3, magnitude_threshold=0.2)) == 0
    assert len(list(read_lines(tmp_path / "out" / "objects.jsonl"))) == 3


@pytest.mark.parametrize(
    "mistake", [{"k": 0}, {"k": 2000}, {"k": None, "distance_threshold": -1.0}]
)
def test_a_mistake_costs_nothing_that_was_done(model, photos, tmp_path: Path, mistake) -> None:
    run(model, photos, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="got"):
        run(model, photos, tmp_path, **mistake)
    assert contents(tmp_path) == before


def test_another_model_redoes_everything(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    model.readout.bias.data += 1  # the least that can be another
    assert skipped(run(model, photos, tmp_path / "out")) == 0


def test_another_batch_size_redoes_nothing(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    assert skipped(run(model, photos, tmp_path / "out", batch_size=3)) == 11


def test_a_changed_file_is_done_again_and_only_that(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    Image.new("RGB", (17, 19)).save(photos / "03.jpg")
    again = run(model, photos, tmp_path / "out")
    assert [item.source.name for item in again if not item.skipped] == ["03.jpg"]
    lines = {line["name"]: line for line in read_lines(tmp_path / "out" / "objects.jsonl")}
    assert len(lines) == 11
    assert (lines["03.jpg"]["width"], lines["03.jpg"]["height"]) == (17, 19)
    assert_lines_are_true(tmp_path / "out")


def test_a_missing_mask_is_made_again(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "out")
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "02.png.overlay.jpg").unlink()
    assert skipped(run(model, photos, tmp_path / "out")) == 10
    after = contents(tmp_path / "out")
    assert after["02.png.overlay.jpg"] == before["02.png.overlay.jpg"]


def test_an_image_of_the_same_name_elsewhere_is_another(model, photos, tmp_path: Path) -> None:
    """Even of the same size and time, as files out of an archive can be."""
    run(model, photos, tmp_path / "out")
    other = tmp_path / "others"
    photos.rename(other)
    assert skipped(run(model, other, tmp_path / "out")) == 0


@pytest.mark.parametrize("relative", [False, True])
def test_masks_of_another_image_of_the_same_name_are_left_alone(
    model, photos: Path, tmp_path: Path, monkeypatch, relative: bool
) -> None:
    """Said as of two images of one run; with names relative to where each run was started."""
    others, out = tmp_path / "others", tmp_path / "out"
    (others / "inner").mkdir(parents=True)
    Image.new("RGB", (17, 19)).save(others / "inner" / "06.png")
    monkeypatch.chdir(photos)
    run(model, Path() if relative else photos, out)
    before = contents(out)
    monkeypatch.chdir(others)
    with pytest.raises(InputError, match=r"photos/inner/06\.png and .* would both be written as"):
        run(model, Path() if relative else others, out)
    assert contents(out) == before


def test_masks_of_an_image_that_is_gone_are_left_alone_too(
    model, photos: Path, tmp_path: Path
) -> None:
    """As when its drive is not plugged in: what has moved has its size and time."""
    others, out = tmp_path / "others", tmp_path / "out"
    others.mkdir()
    Image.new("RGB", (17, 19)).save(others / "00.png")
    run(model, photos / "00.png", out)
    before = contents(out)
    (photos / "00.png").rename(tmp_path / "away.png")
    with pytest.raises(InputError, match="cannot be told to be the same"):
        run(model, others, out)
    assert contents(out) == before


def test_a_line_without_masks_is_in_nobodys_way(model, photos: Path, tmp_path: Path) -> None:
    others, out = tmp_path / "others", tmp_path / "out"
    others.mkdir()
    Image.new("RGB", (17, 19)).save(others / "00.png")
    run(model, photos / "00.png", out)
    for path in out.glob("00.png.*"):
        path.unlink()
    assert skipped(run(model, others, out)) == 0
    assert [line["width"] for line in read_lines(out / "objects.jsonl")] == [17]


def test_an_image_reached_in_another_way_is_no_other_image(
    model, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    run(model, photos, tmp_path / "out")
    (tmp_path / "link").symlink_to(photos)
    monkeypatch.chdir(tmp_path)
    assert skipped(run(model, Path("photos"), tmp_path / "out")) == 11
    assert len(run(model, Path("link"), tmp_path / "out")) == 11


def test_a_report_keeps_what_other_runs_did(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos / "00.png", tmp_path / "out")
    run(model, photos / "01.jpg", tmp_path / "out", k=2)
    names = [line["name"] for line in read_lines(tmp_path / "out" / "objects.jsonl")]
    assert names == ["00.png", "01.jpg"]
    assert len(json.loads((tmp_path / "out" / "coco.json").read_text())["images"]) == 2


def test_a_line_goes_before_its_files_change(model, photos, tmp_path: Path, monkeypatch) -> None:
    """So a kill between two files of an image leaves no line that is half true."""
    run(model, photos, tmp_path / "out")
    seen = []

    def look(*_: object) -> None:
        seen.append(len(list(read_lines(tmp_path / "out" / "objects.jsonl"))))
        raise KeyboardInterrupt

    monkeypatch.setattr("rotating_features.segment.pipeline.write_pictures", look)
    with pytest.raises(KeyboardInterrupt):
        run(model, photos, tmp_path / "out", k=2)
    assert set(seen) == {0}


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(
    model, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    """In order, even where later ones were written: the report ends as that of a whole run."""
    from rotating_features.segment import pipeline

    real = pipeline.write_pictures

    def write(out: Path, name: Path, *words: object) -> None:
        if name.name == "05.jpg":
            raise OSError(28, "No space left on device")
        real(out, name, *words)

    monkeypatch.setattr(pipeline, "write_pictures", write)
    with pytest.raises(OSError, match="No space"):
        run(model, photos, tmp_path / "out")
    lines = [line["name"] for line in read_lines(tmp_path / "out" / "objects.jsonl")]
    assert lines == ["00.png", "01.jpg", "02.png", "03.jpg", "04.png"]
    monkeypatch.setattr(pipeline, "write_pictures", real)
    assert skipped(run(model, photos, tmp_path / "out")) == 5
    run(model, photos, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
