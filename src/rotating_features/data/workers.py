"""The same work on many files, by several threads, in order."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")

MOST_WORKERS = 16
AHEAD = 4
"""Results that wait for an earlier one, for each worker; so that none piles up."""


class Problem(NamedTuple):
    """What is wrong with a file."""

    name: str
    problem: str


def in_order(
    count: int,
    work: Callable[[int], Result],
    workers: int | None = None,
    *,
    ahead: int | None = None,
) -> Iterator[Result]:
    """``work(0)``, ``work(1)``, ... up to ``count``, computed by threads.

    At most ``ahead`` of them are begun before the first is taken, by default a few for each worker.

    Pillow decodes and resizes without holding Python's lock, so two threads on two cores are twice
    as fast as one; two processes are not, as each picture has to be sent from one to the other.
    """
    workers = min(MOST_WORKERS, os.cpu_count() or 1) if workers is None else max(1, workers)
    if workers == 1:
        yield from map(work, range(count))
        return
    ahead = workers * AHEAD if ahead is None else ahead
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for index in range(count):
                waiting.append(pool.submit(work, index))
                if len(waiting) == ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # interrupted, the rest is not done
