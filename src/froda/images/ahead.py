"""Streams: work done ahead in threads with few results waiting, and items in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ahead(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    prepare: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """Yield ``work(item)`` in order, at most two results a thread being ready or in work.

    ``prepare`` is called once in each thread.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads, initializer=prepare) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= 2 * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def in_batches(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """Yield the items in tuples of ``size``, the last one shorter."""
    rest = iter(items)
    while batch := tuple(islice(rest, size)):
        yield batch
