"""Every benchmark runs, at sizes that take no time, and both of its sides do the same work."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch

from rotating_features.bench import (
    BENCHMARKS,
    evaluation,
    growth,
    kernels,
    one,
    peers,
    segmentation,
    step,
)
from rotating_features.bench.alone import Task
from rotating_features.bench.evaluation import Images
from rotating_features.bench.growth import Sizes
from rotating_features.bench.harness import Row, Timing
from rotating_features.bench.step import Work
from rotating_features.bench.synthetic import (
    RandomImages,
    label_maps,
    orientation_maps,
    photograph_masks,
)
from rotating_features.evaluate import PHOTO_PROTOCOLS
from rotating_features.machine import describe
from rotating_features.metrics import adjusted_rand_index

TINY = Work(side=8, n=2, d=2, batch=2)
TINY_WORKS = {
    "4shapes": TINY,
    "features": TINY._replace(channels=3, features=True),
    "photographs": TINY._replace(channels=16, side=2, features=True, crop=32, layers=1),
}
TINY_BENCHMARKS = {
    "step": partial(
        step.bench_step,
        sizes=TINY_WORKS,
        works=tuple(TINY_WORKS),
        variants=("plain", "float32 uncompiled"),
    ),
    "evaluate": partial(evaluation.bench_evaluate, images=Images(3, 3, 2)),
    "smooth": partial(evaluation.bench_smooth, images=Images(1, 1, 1)),
    "ward": partial(evaluation.bench_ward, images=Images(1, 1, 1)),
    "photographs": partial(evaluation.bench_photographs, images=Images(1, 1, 1)),
    "segment": partial(segmentation.bench_segment, photographs=2, d=2),
    "kernels": partial(kernels.bench_kernels, batch=1, variants=("definition",)),
    "growth": partial(
        growth.bench_growth,
        sizes=Sizes(
            [TINY, TINY._replace(n=3)], [TINY], [TINY], images=(1, 2, 4), peer_images=(1, 2)
        ),
    ),
}


def in_this_process(jobs: Sequence[list[Task]], **_: object) -> list[list[Timing | None]]:
    return [[one.time_task(task) for task in job] for job in jobs]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (step, evaluation, segmentation, kernels, growth):
        monkeypatch.setattr(module, "alone", in_this_process)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_gives_rows_of_one_kind(name: str) -> None:
    rows = [row for part in TINY_BENCHMARKS[name](repeats=1) for row in part]
    assert rows
    assert len({tuple(row) for row in rows}) == 1
    for row in rows:
        assert isinstance(row["median_ms"], float)
        assert row["median_ms"] > 0
    if name != "kernels":  # whose peer takes a compiler
        assert {row["variant"] for row in rows} > {row["peer"] for row in rows}


@pytest.mark.usefixtures("quick")
def test_of_growth_the_parts_asked_for_are_measured() -> None:
    (rows,) = TINY_BENCHMARKS["growth"](repeats=1, works=("images",))
    assert {row["grows"] for row in rows} == {"images"}


def test_of_rows_of_one_size_the_last_of_this_machine_counts() -> None:
    here = {name: str(value) for name, value in describe().items()}
    row = {"grows": "n", "value": "2", "variant": "plain", **here}
    rows = [{**row, "ms": 1}, {**row, "ms": 2}, {**row, "gpu": "another", "ms": 3}]
    assert [found["ms"] for found in growth.latest(rows)] == [2]


def test_growth_is_drawn_beside_the_rows(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"grows": grows, "value": 2, "variant": "plain", "median_ms": 2, "low_ms": 1, "high_ms": 3}
        for grows in ("n", "batch", "side", "images")
    ]
    assert growth.draw(rows, tmp_path).read_bytes().startswith(b"\x89PNG")
    elsewhere = growth.draw([{**row, "gpu": "NVIDIA H200"} for row in rows], tmp_path)
    assert elsewhere.name == "growth-NVIDIA-H200.png"


def test_an_unknown_work_is_refused() -> None:
    with pytest.raises(ValueError, match=r"should be one of 4shapes, .*, photographs, got clevr"):
        next(step.bench_step(repeats=1, works=("clevr",)))


def test_a_dataset_of_noise_keeps_the_promises_of_a_dataset() -> None:
    noise = RandomImages((4, 3, 5, 5), features=False)
    assert (len(noise), noise.channels, noise.size) == (4, 3, (5, 5))
    assert set(noise.draw([0, 3]).image.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(noise[3].image, noise.draw([0, 3]).image[1])


def test_maps_are_directions_on_objects_and_zero_elsewhere() -> None:
    maps, instances = orientation_maps(3, n=6)
    assert maps.shape == (3, 6, 32, 32)
    torch.testing.assert_close(maps.norm(dim=1), (instances != 0).float())


def test_both_sides_of_evaluate_find_the_same() -> None:
    inputs = orientation_maps(4)
    ours, theirs = evaluation.evaluate_ours(*inputs), peers.evaluate_peer(*inputs, k=5)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0.02)
        assert a.min() > 0.5


def test_both_sides_of_smooth_find_the_same() -> None:
    labels = label_maps(1, 60, evaluation.LABELS)
    ours = evaluation.mode_filter(labels, 5)
    assert torch.equal(ours, peers.smooth_peer(labels, radius=5))


def test_both_sides_of_ward_find_the_same() -> None:
    points = orientation_maps(2)[0].flatten(2).transpose(1, 2)
    ours, theirs = evaluation.ward(points, 5.0), peers.ward_peer(points, 5.0)
    assert adjusted_rand_index(ours.view(2, 1, -1), theirs.view(2, 1, -1)).tolist() == [1.0, 1.0]


def test_both_sides_of_photographs_find_the_same() -> None:
    grid, instances, classes = photograph_masks(4)
    protocol = PHOTO_PROTOCOLS["rf2023"]
    ours = protocol.score(protocol.fit_labels(grid), instances, classes)
    theirs = peers.photographs_peer(grid, instances, classes, radius=evaluation.RADIUS)
    for a, b in zip(ours.values(), theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("variant", step.suitable_variants())
def test_every_variant_of_the_step_can_be_timed(variant: str) -> None:
    assert step.time_step(variant, work=TINY._asdict(), repeats=1).median_ms > 0


@pytest.mark.gpu
@pytest.mark.parametrize("variant", ["plain", "float32", "bfloat16 x4 seeds"])
def test_the_step_is_timed_on_a_gpu(variant: str) -> None:
    for work in (Work(batch=2, d=16), Work(channels=20, side=14, d=16, batch=2, features=True)):
        timing = step.time_step(variant, work=work._asdict(), repeats=2, at_once=3)
        assert timing.median_ms > 0
        assert timing.peak_mb < 2000


@pytest.mark.gpu
@pytest.mark.parametrize("variant", kernels.VARIANTS)
@pytest.mark.parametrize(("case", "dtype"), kernels.KINDS["cuda"])
def test_every_kernel_is_timed(case: str, dtype: str, variant: str) -> None:
    timing = kernels.time_kernel(variant, case=case, dtype=dtype, repeats=2, batch=2)
    assert 0 < timing.median_ms < 50
