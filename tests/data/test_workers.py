import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotating_features.data.workers import AHEAD, in_order


@given(st.integers(0, 60), st.sampled_from([None, 0, 1, 2, 5]))
def test_results_come_in_order(count: int, workers: int | None) -> None:
    assert list(in_order(count, lambda i: i * i, workers)) == [i * i for i in range(count)]


def test_slow_work_holds_up_no_order() -> None:
    def work(index: int) -> int:
        time.sleep(0.002 * (index % 3 == 0))
        return index

    assert list(in_order(30, work, 4)) == list(range(30))


def test_two_work_at_once() -> None:
    meet = threading.Barrier(2, timeout=10)
    assert len(list(in_order(2, lambda _: meet.wait(), 2))) == 2


def test_little_is_done_ahead_of_who_takes_it() -> None:
    done: list[int] = []
    results = in_order(1_000, done.append, 2)
    next(results)
    time.sleep(0.02)
    results.close()
    assert len(done) <= 2 * AHEAD


def test_a_failure_is_passed_on() -> None:
    def work(index: int) -> float:
        return 1 / (5 - index)

    with pytest.raises(ZeroDivisionError):
        list(in_order(1_000, work, 2))


def test_what_nobody_takes_any_more_is_not_begun() -> None:
    done, go = set[int](), threading.Event()

    def work(index: int) -> None:
        if index > 1:
            go.wait(10)
        done.add(index)

    results = in_order(1_000, work, 2)
    next(results)
    threading.Timer(0.1, go.set).start()
    results.close()
    assert done <= {0, 1, 2, 3}
