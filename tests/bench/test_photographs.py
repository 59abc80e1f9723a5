"""Benchmarks of photographs: what they are fed with is as it should be, and both sides agree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from rotating_features import bench
from rotating_features._check import InputError
from rotating_features.bench import segmentation, step
from rotating_features.bench.photographs import packed_noise, random_vit, write_photographs
from rotating_features.bench.plain import plain_crops
from rotating_features.bench.step import Work
from rotating_features.features import attention
from rotating_features.segment import find_images

TINY = Work(channels=16, side=2, n=2, d=2, batch=2, features=True, crop=32, layers=1)


def read(path: Path) -> np.ndarray:
    with Image.open(path) as file:
        return np.array(file)


def test_made_up_photographs_are_as_large_as_those_of_voc(tmp_path: Path) -> None:
    write_photographs(tmp_path, 2)
    first, second = sorted(tmp_path.iterdir())
    assert read(first).shape == (375, 500, 3)
    assert (read(first) != read(second)).mean() > 0.9
    assert 60_000 < first.stat().st_size < 120_000


def test_both_sides_of_segment_find_the_same(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    write_photographs(tmp_path / "photos", 3, size=(100, 75))
    images, model = find_images([tmp_path / "photos"]), segmentation.random_model(d=4)
    timings = segmentation.segment_all(model, images, tmp_path / "ours")
    segmentation.one_by_one(model, images, tmp_path / "peer")
    assert timings.images == 3
    for name in ("000000.jpg", "000001.jpg", "000002.jpg"):
        ours, peer = (read(tmp_path / at / f"{name}.labels.png") for at in ("ours", "peer"))
        assert len(np.unique(ours)) == segmentation.K
        assert (ours != peer).mean() < 0.01
        for ending in ("overlay.jpg", "uncertainty.png"):
            ours, peer = (read(tmp_path / at / f"{name}.{ending}") for at in ("ours", "peer"))
            assert ours.shape == peer.shape


def test_photographs_of_ones_own_can_be_segmented(tmp_path: Path, monkeypatch) -> None:
    write_photographs(tmp_path, 3, size=(40, 30))
    asked = []

    def watch(jobs, **_):
        asked.extend(task for job in jobs for task in job)
        return [[segmentation.Timing(2.0, 1.0, 3.0, 4.0) for _ in job] for job in jobs]

    monkeypatch.setattr(segmentation, "alone", watch)
    (rows,) = segmentation.bench_segment(repeats=9, folder=tmp_path, photographs=2)
    assert {(task["folder"], task["photographs"]) for task in asked} == {(str(tmp_path), 2)}
    assert rows[0]["photographs_per_second"] == 500
    assert [row["times_faster"] for row in rows] == [1.0, *[""] * (len(rows) - 2), 1.0]


def test_what_segment_wants_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.obstacle("segment") is None
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    monkeypatch.setattr(bench, "has_efficientnet", lambda: False)
    assert "or transformers" in str(bench.obstacle("segment"))


def test_plain_crops_are_windows_of_photographs_flipped_or_not() -> None:
    torch.manual_seed(0)
    number, row, column = torch.meshgrid(*map(torch.arange, (5, 12, 20)), indexing="ij")
    crops = plain_crops(torch.stack([number, row, column], dim=3), size=8, batch=60)
    assert crops.shape == (60, 3, 8, 8)
    number, row, column = crops.unbind(1)
    assert (number == number[:, :1, :1]).all()
    assert (row.diff(dim=1) == 1).all()
    assert (row.diff(dim=2) == 0).all()
    steps = column.diff(dim=2)
    assert (steps == steps[:, :1, :1]).all()
    assert steps.unique().tolist() == [-1, 1]
    assert row[:, 0, 0].unique().tolist() == list(range(5))
    assert column.amin((1, 2)).unique().tolist() == list(range(13))


def test_photographs_of_noise_have_the_sides_that_crops_want() -> None:
    packed = packed_noise(3, side=12)
    assert [packed.image(i).shape for i in range(3)] == [(3, 12, 16)] * 3


def test_a_random_vit_is_the_same_for_both_sides() -> None:
    found = []
    x = torch.rand(2, 3, 32, 32)
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        backbone: Any = random_vit(64, layers=2, side=32, dtype=dtype)
        assert backbone.module.model.config._attn_implementation == attention.NAME
        found.append(backbone(x))
    assert found[0].shape == (2, 64, 2, 2)
    torch.testing.assert_close(*found, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("variant", ["plain", "float32 uncompiled"])
def test_a_step_on_photographs_is_timed(variant: str) -> None:
    assert step.time_step(variant, work=TINY._asdict(), repeats=1, at_once=2).median_ms > 0


def test_without_transformers_there_is_no_step_on_photographs(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert step.suitable_works() == ["4shapes", "10shapes", "features", "photographs"]
    monkeypatch.setattr(step, "find_spec", lambda name: None)
    assert step.suitable_works() == ["4shapes", "10shapes", "features"]
    with pytest.raises(InputError, match="step on photographs wants transformers"):
        next(step.bench_step(repeats=1, works=("photographs",)))


@pytest.mark.gpu
@pytest.mark.parametrize("variant", ["plain", "float32", "bfloat16", "bfloat16 x4 seeds"])
def test_a_step_on_photographs_is_timed_on_a_gpu(variant: str) -> None:
    work = Work(channels=128, side=14, n=4, d=16, batch=2, features=True, crop=224, layers=2)
    assert step.time_step(variant, work=work._asdict(), repeats=2, at_once=3).median_ms > 0


@pytest.mark.gpu
def test_segment_is_timed_on_a_gpu(tmp_path: Path) -> None:
    write_photographs(tmp_path, 20, size=(100, 75))
    options = {"folder": str(tmp_path), "photographs": 20, "d": 16, "repeats": 1}
    for part in ("whole", *segmentation.STAGES):
        timing = segmentation.time_segment("ours", part=part, **options)
        assert timing.median_ms > 0
    assert segmentation.time_segment("one by one", part="whole", **options).median_ms > 0
