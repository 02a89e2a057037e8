"""What the examples share: worker processes that must end well, and a barrier made of one word."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

import rackmem

#: A forked child has neither its parent's node nor its mappings, so workers are spawned.
SPAWN = multiprocessing.get_context("spawn")

Job = tuple[Callable[..., None], tuple[Any, ...]]


def run(jobs: list[Job]) -> None:
    """Runs each function in a process of its own, and waits for all. If one fails, the others are ended."""
    processes = [SPAWN.Process(target=target, args=args) for target, args in jobs]
    for process in processes:
        process.start()
    running = {process.sentinel: process for process in processes}
    while running:
        for sentinel in wait(list(running)):
            process = running.pop(sentinel)  # type: ignore[arg-type]
            process.join()
            if process.exitcode != 0:
                for other in running.values():
                    other.terminate()
                raise SystemExit(f"{process.name} ended with {process.exitcode}")


def meet(arrivals: rackmem.Words, parties: int) -> None:
    """Waits until all parties have come here as often as this one. The word only grows, so it serves every meeting."""
    ticket = arrivals.fetch_add(0, 1)
    all_here = (ticket // parties + 1) * parties
    while arrivals.load(0) < all_here:
        time.sleep(0.0001)
