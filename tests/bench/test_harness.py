import time
from pathlib import Path

import pytest
import torch

from rotating_features.bench import one
from rotating_features.bench.alone import alone, middle
from rotating_features.bench.harness import Timing, append_rows, compare, measure, read_rows


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_call_is_timed_as_often_as_asked(repeats: int) -> None:
    calls = []

    def call() -> None:
        calls.append(None)
        time.sleep(0.002)

    timing = measure(call, warmup=2, repeats=repeats)
    assert len(calls) == 2 + repeats + torch.cuda.is_available()
    assert 2 <= timing.low_ms <= timing.median_ms <= timing.high_ms
    assert timing.peak_mb > 10


def test_a_part_takes_its_share_of_the_time_and_all_of_the_memory() -> None:
    assert Timing(8.0, 4.0, 12.0, 100.0).per(4) == Timing(2.0, 1.0, 3.0, 100.0)


def test_of_several_rounds_the_middle_one_counts_and_all_show_in_the_spread() -> None:
    rounds = [
        Timing(2.8, 2.7, 2.9, 7.0),
        Timing(1.5, 1.4, 1.6, 5.0),
        None,
        Timing(1.6, 1.5, 1.7, 6),
    ]
    assert middle(rounds) == Timing(1.6, 1.4, 2.9, 6.0)
    assert middle([None]) is None


def test_rows_tell_how_many_times_faster_than_the_peer() -> None:
    timings = {"ours": Timing(2.0, 1, 3, 5), "theirs": Timing(6.0, 5, 7, 5), "broken": None}
    rows = compare("w", timings, peer="theirs", images=3)
    assert [(row["variant"], row["times_faster"]) for row in rows] == [("ours", 3), ("theirs", 1)]
    assert compare("w", {"ours": timings["ours"]}, peer="theirs")[0]["times_faster"] == ""


def test_a_file_keeps_its_rows_and_one_header(tmp_path: Path) -> None:
    path = append_rows(tmp_path / "new", "x", [{"work": "a", "median_ms": 1.5}])
    append_rows(tmp_path / "new", "x", [{"work": "b", "median_ms": 2.5, "images": 7}])
    first, second = read_rows(path)
    assert list(first) == list(second)
    assert (first["work"], first["images"], second["images"]) == ("a", "", "7")
    for row in (first, second):
        assert row["commit"]
        assert row["torch"] == torch.__version__
        assert "scikit-learn" in str(row["packages"])
    assert path.read_text().count("median_ms") == 1


def test_too_little_memory_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(variant: str) -> Timing:
        raise torch.OutOfMemoryError

    monkeypatch.setitem(one.TIMERS, "ward", fail)
    assert one.time_task({"bench": "ward", "variant": "ours"}) is None


def test_processes_measure_and_say_what_went_wrong() -> None:
    task = {"bench": "ward", "variant": "ours", "images": 1, "repeats": 1}
    told = []
    ((first, second),) = alone([[task, task]], tell=told.append)
    assert isinstance(first, Timing)
    assert isinstance(second, Timing)
    assert told == ["ward: ours"]
    with pytest.raises(RuntimeError, match=r"nothing.* status 1:(?s:.*)KeyError"):
        alone([[{"bench": "nothing", "variant": "ours"}]])
