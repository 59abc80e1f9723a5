"""Batches of images of all sizes, and what the command makes of a folder of all kinds."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from rotating_features._check import InputError
from rotating_features.arguments import SegmentArgs
from rotating_features.cli import main
from rotating_features.data.decode import open_file
from rotating_features.data.workers import MOST_WORKERS
from rotating_features.evaluate import discover
from rotating_features.features import Backbone
from rotating_features.models import OnFeatures, RotatingAutoEncoder, StandardAutoEncoder, save
from rotating_features.segment import Timings, find_images, segment
from rotating_features.segment.blocks import SMOOTHED, make_blocks

LARGE = (1200, 900)
HUGE = (12_000, 9_000)


def run(model, photos: Path, out: Path, **options) -> list:
    return list(segment(model, find_images([photos]), out, **{"k": 3, **options}))


def read(path: Path) -> np.ndarray:
    with open_file(path) as file:
        return np.array(file)


def draw(size: tuple[int, int]) -> Image.Image:
    coarse = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size)


class Coarse(nn.Module):
    """Sees 64 x 64 pixels and answers on an 8 x 8 grid, as models on backbones do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = RotatingAutoEncoder(channels=3, size=(8, 8), hidden_dim=16, rotation_dim=3)
        self.channels, self.size, self.rotation_dim = 3, (64, 64), 3
        self.settings = self.inner.settings

    def forward(self, x: Tensor):
        return self.inner(F.avg_pool2d(x, 8))


@pytest.mark.parametrize("batch_size", [1, 4, 16])
def test_a_batch_gives_what_each_image_gives_alone(model, photos, tmp_path, batch_size) -> None:
    """Up to pixels that lie between two clusters, for sums in a batch are rounded otherwise."""
    run(model, photos, tmp_path / "out", batch_size=batch_size)
    for source, name in find_images([photos]):
        with Image.open(source) as picture:
            wanted = discover(model, picture, k=3).labels.numpy()
        assert (read(tmp_path / "out" / f"{name}.labels.png") != wanted).mean() < 0.002


def test_labels_of_a_coarse_grid_are_smoothed(photos: Path, tmp_path: Path) -> None:
    model, changed = Coarse().eval(), 0
    run(model, photos, tmp_path / "out", batch_size=1)
    for source, name in find_images([photos]):
        with Image.open(source) as picture:
            small = discover(model.inner, F.avg_pool2d(as_floats(picture, model.size), 8), k=3)
        maps = small.labels[0], small.uncertainty[0], picture.size[::-1]
        smooth, rough = (make_blocks(*maps, smooth=smooth).paint() for smooth in (True, False))
        assert read(tmp_path / "out" / f"{name}.labels.png").tolist() == smooth.tolist()
        changed += int((smooth != rough).sum())
    assert changed > 0


def as_floats(picture: Image.Image, size: tuple[int, int]) -> Tensor:
    x = torch.from_numpy(np.array(picture.convert("RGB"))).movedim(-1, 0).unsqueeze(0) / 255
    return F.interpolate(x, size, mode="bilinear", antialias=True).clamp(0, 1)


@pytest.mark.parametrize("coarse", [False, True])
def test_uncertainty_is_drawn_as_discover_has_it(model, photos, tmp_path, coarse: bool) -> None:
    model = Coarse().eval() if coarse else model
    run(model, photos, tmp_path / "out", k=1, batch_size=1)
    for source, name in find_images([photos]):
        with Image.open(source) as picture:
            wanted = discover(model, picture, k=1).uncertainty.double().clamp(0, 1)
        drawn = read(tmp_path / "out" / f"{name}.uncertainty.png")
        assert drawn.tolist() == (255 * wanted).round().tolist()


def test_uncertainty_of_a_coarse_grid_is_drawn_smoothly(photos: Path, tmp_path: Path) -> None:
    draw(LARGE).save(photos / "00.png")
    run(Coarse().eval(), photos / "00.png", tmp_path / "out", k=1)
    drawn = read(tmp_path / "out" / "00.png.uncertainty.png").astype(int)
    assert drawn.shape == LARGE[::-1]
    steps = np.abs(np.diff(drawn, axis=1))
    assert np.ptp(drawn) > 100
    assert steps.max() <= np.ptp(drawn) / (SMOOTHED[0] / 8) + 1


def test_images_are_done_in_their_order(model, photos: Path, tmp_path: Path) -> None:
    images = find_images([photos])[::-1]
    done = list(segment(model, images, tmp_path / "out", k=3, batch_size=2))
    assert [item.source for item in done] == [source for source, _ in images]


def test_time_is_noted_by_stage(model, photos: Path, tmp_path: Path) -> None:
    timings = Timings()
    start = time.perf_counter()
    run(model, photos, tmp_path / "out", timings=timings)
    wall = time.perf_counter() - start
    assert timings.images == 11
    assert timings.seconds.pop("backbone") == 0
    assert list(timings.seconds) == ["decode", "model", "cluster", "write", "report"]
    assert all(0 < seconds < MOST_WORKERS * wall for seconds in timings.seconds.values())
    assert sum(timings.seconds[stage] for stage in ("model", "cluster", "report")) < wall


def test_a_backbone_is_timed_alone_and_changes_nothing(photos: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    backbone = Backbone(nn.Conv2d(3, 8, 16, stride=16), channels=8, stride=16)
    autoencoder = RotatingAutoEncoder(
        channels=8, size=(4, 4), hidden_dim=4, rotation_dim=3, features=True
    )
    model, timings = OnFeatures(backbone, autoencoder, size=(64, 64)), Timings()
    run(model, photos, tmp_path / "out", timings=timings, batch_size=1)
    assert timings.seconds["backbone"] > 0
    for source, name in find_images([photos]):
        with Image.open(source) as picture:
            wanted = discover(model, picture, k=3).labels.numpy()
        assert np.array_equal(read(tmp_path / "out" / f"{name}.labels.png"), wanted)


@pytest.mark.gpu
def test_threads_of_others_have_all_cores_again(model, photos: Path, tmp_path: Path) -> None:
    def count() -> int:
        found = []
        thread = Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        return found[0]

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        run(model.cuda(), photos, tmp_path / "out")
        assert (torch.get_num_threads(), count()) == (3, 3)
    finally:
        torch.set_num_threads(before)


def test_the_number_of_clusters_may_be_left_to_each_image(
    model, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    from rotating_features.evaluate import discover as module
    from rotating_features.evaluate.cluster import cluster

    asked = []

    def watch(orientations: Tensor, method: str, *, k: int | Literal["auto"], seed: int):
        asked.append((method, k))
        return cluster(orientations, "kmeans", k=2, seed=seed)

    monkeypatch.setattr(sys.modules[module.__module__], "cluster", watch)
    run(model, photos, tmp_path / "out", k="auto")
    assert asked == [("kmeans", "auto")]


@pytest.mark.parametrize(("words", "k"), [("--k auto", "auto"), ("--k 4", 4), ("", None)])
def test_k_is_a_number_or_auto(words: str, k) -> None:
    import tyro

    args = tyro.cli(SegmentArgs, args=["a.png", "--model", "m", "--out", "o", *words.split()])
    assert args.k == k


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size should be at least 1, got 0"),
        ({"distance_threshold": 5.0}, "either k"),
        ({"k": 100_000}, "k should lie between"),
        ({"k": None, "distance_threshold": -1.0}, "distance_threshold should be above 0"),
    ],
)
def test_what_cannot_be_is_explained(model, photos, tmp_path, options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(model, photos, tmp_path / "out", **options)


def test_models_that_no_file_suits_are_explained(photos: Path, tmp_path: Path) -> None:
    depth = RotatingAutoEncoder(channels=4, size=(8, 8), hidden_dim=2, rotation_dim=2)
    with pytest.raises(InputError, match="1 or 3 channels, but the model wants 4"):
        run(depth, photos, tmp_path / "out")
    with pytest.raises(InputError, match="plain numbers"):
        run(StandardAutoEncoder(channels=3, size=(8, 8), hidden_dim=2), photos, tmp_path / "out")


@pytest.mark.gpu
def test_a_gpu_finds_the_same(model, photos: Path, tmp_path: Path) -> None:
    run(model, photos, tmp_path / "cpu")
    run(model.cuda(), photos, tmp_path / "gpu")
    for _, name in find_images([photos]):
        ours, theirs = (read(tmp_path / at / f"{name}.labels.png") for at in ("cpu", "gpu"))
        assert (ours != theirs).mean() < 0.02


def make_folder_of_all_kinds(folder: Path, size: tuple[int, int]) -> None:
    """Good: a.jpg, dot.png and large.jpg. Bad: what is in BAD. And folders that run in circles."""
    (folder / "inner").mkdir(parents=True)
    draw((60, 40)).save(folder / "a.jpg")
    draw(size).save(folder / "inner" / "large.jpg")
    draw((1, 1)).save(folder / "dot.png")
    (folder / "broken.jpg").write_bytes((folder / "a.jpg").read_bytes()[:700])
    (folder / "empty.png").touch()
    (folder / "text.png").write_text("no picture at all")
    (folder / "gone.png").symlink_to("nowhere.png")
    (folder / "caf\udce9.png").touch()  # a name that is no text
    (folder / "inner" / "around").symlink_to(folder)


BAD = ["broken.jpg", "caf\udce9.png", "empty.png", "gone.png", "text.png"]


@pytest.mark.parametrize("size", [LARGE, pytest.param(HUGE, marks=pytest.mark.slow)])
def test_good_images_are_segmented_and_bad_ones_named(model, tmp_path, capsys, size) -> None:
    save(model, tmp_path / "model.safetensors")
    folder, out = tmp_path / "photos", tmp_path / "photos" / "masks"
    make_folder_of_all_kinds(folder, size)
    words = ["segment", str(folder), "--out", str(out), "--k", "3"]
    words += ["--model", str(tmp_path / "model.safetensors")]
    for text in ("in 3 images", "3 of them were done before"):  # the second time from within
        assert main(words) == 2
        said = capsys.readouterr()
        assert text in said.out
        report = json.loads((out / "report.json").read_text())
        assert [Path(problem["image"]).name for problem in report["problems"]] == BAD
        assert all(f"{name} cannot" in said.err.replace("?", "\udce9") for name in BAD)
        assert (report["images"], report["segmented"], report["left"]) == (8, 3, 0)
    for name, (w, h) in {"a.jpg": (60, 40), "dot.png": (1, 1), "inner/large.jpg": size}.items():
        assert read(out / f"{name}.labels.png").shape == (h, w)
        assert read(out / f"{name}.uncertainty.png").shape == (h, w)
    assert not [path for path in out.rglob("*") if path.name.startswith(tuple(BAD))]
    assert len(json.loads((out / "coco.json").read_text())["images"]) == 3


@pytest.mark.slow
def test_several_huge_images_at_once_take_the_room_of_one(model, tmp_path: Path) -> None:
    """That is: of its pixels, 432 MB, its masks, and what everything takes that is loaded."""
    save(model, tmp_path / "model.safetensors")
    (tmp_path / "photos").mkdir()
    for i in range(3):
        draw(HUGE).save(tmp_path / "photos" / f"{i}.jpg")
    words = ["segment", str(tmp_path / "photos"), "--out", str(tmp_path / "out"), "--k", "3"]
    words += ["--model", str(tmp_path / "model.safetensors")]
    code = "import sys; from rotating_features.cli import main; assert main(sys.argv[1:]) == 0;"
    code += "print(open('/proc/self/status').read())"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True
    )
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert int(peak) < 1300 * 1024


def test_ctrl_c_ends_the_command_and_keeps_what_is_done(model, photos, tmp_path: Path) -> None:
    for i in range(400):
        os.link(photos / "00.png", photos / f"copy-{i:03}.png")
    save(model, tmp_path / "model.safetensors")
    words = ["segment", str(photos), "--out", str(tmp_path / "out"), "--k", "3"]
    words += ["--model", str(tmp_path / "model.safetensors"), "--batch-size", "2"]
    command = [sys.executable, "-m", "rotating_features", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    report = tmp_path / "out" / "objects.jsonl"
    deadline = time.monotonic() + 60
    while not report.exists() or not report.stat().st_size:
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "the run does not get going"
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped" in said
    assert errors == ""
    facts = json.loads((tmp_path / "out" / "report.json").read_text())
    assert 0 < facts["segmented"] < 411
    assert facts["segmented"] == len(report.read_text().splitlines())
    assert facts["segmented"] + facts["left"] == 411
