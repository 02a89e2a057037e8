"""What the rack costs from Python, against what Python programs use otherwise. Prints one table.

Each comparison alternates between the two sides for some rounds of one run. A time is the median of its rounds, and a
ratio the median of the rounds' ratios. `--json` prints one JSON document.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from multiprocessing.managers import BaseManager
from multiprocessing.shared_memory import SharedMemory
from statistics import median
from typing import Any

import numpy as np

import rackmem
from report import Mark, Report, alternate, installed, table
from stores import WORKERS, dictionaries

SPAWN = multiprocessing.get_context("spawn")
ROW = 64
LARGE = 1 << 30


def arrays(rack: rackmem.Rack, rounds: int, report: Report) -> None:
    """NumPy on the rack's memory, and on shared memory of one machine."""

    def fill(array: Any) -> None:
        array[:] = source

    def add(array: Any) -> None:
        array += 1

    operations: list[tuple[str, Callable[[Any], object]]] = [
        ("a.sum()", lambda array: array.sum()),
        ("a[:] = x", fill),
        ("a[rows]", lambda array: array[rows]),
        ("a += 1", add),
    ]
    for mebibytes in (1, 32):
        shape = ((mebibytes << 20) // 8 // ROW, ROW)
        random = np.random.default_rng(1)
        source, rows = random.normal(size=shape), random.integers(shape[0], size=shape[0] // 4)
        ours = rack.array(f"marks {mebibytes}", shape, "f8")
        memory = SharedMemory(create=True, size=source.nbytes)
        theirs = np.ndarray(shape, "f8", memory.buf)
        fill(ours)
        fill(theirs)
        for what, operation in operations:
            pairs = alternate(rounds, lambda: operation(ours), lambda: operation(theirs))
            report.bounded(f"{what}, {mebibytes} MiB", "SharedMemory", pairs, 1.05)
        del theirs
        memory.close()
        memory.unlink()


def opener(file: str, rounds: int, results: Any) -> None:
    """Another process opens a large array that is there, again and again."""
    times = []
    with rackmem.join(file) as rack:
        for _ in range(rounds):
            began = time.perf_counter()
            array = rack.array("marks large")
            times.append(time.perf_counter() - began)
            assert array.nbytes == LARGE
            del array
            gc.collect()
    results.put(times)


def opening(rack: rackmem.Rack, rounds: int, report: Report) -> None:
    """How long it takes until an array of a GiB is there."""
    rack.array("marks large", LARGE, "u1")
    results = SPAWN.Queue()
    process = SPAWN.Process(target=opener, args=(rack.file, rounds, results))
    process.start()
    took = median(results.get(timeout=120))
    process.join()
    report.marks.append(Mark("open an array of 1 GiB", took, "-", None, None, "at most 5 ms", took <= 0.005))


class Counter:
    """A counter in a manager's process: one message adds to it."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, more: int) -> int:
        self._count += more
        return self._count


class Counters(BaseManager):
    """A manager that has counters."""


Counters.register("Counter", Counter)


def counters(rack: rackmem.Rack, rounds: int, report: Report) -> None:
    """A counter that all processes share."""
    hits = rack.words("marks hits", 1)
    with Counters(ctx=SPAWN) as manager:
        counter = getattr(manager, "Counter")()
        pairs = alternate(rounds, lambda: hits.fetch_add(0, 1), lambda: counter.add(1))
    report.faster("counter += 1", "Manager", pairs, 100)


def actors(rack: rackmem.Rack, rounds: int, report: Report) -> None:
    """The same counter in an actor of Ray's."""
    ray = installed("ray")
    if ray is None:
        report.skipped.append("Ray: the package `ray` is not installed")
        return
    hits = rack.words("marks actor", 1)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        counter = ray.remote(Counter).remote()
        pairs = alternate(rounds, lambda: hits.fetch_add(0, 1), lambda: ray.get(counter.add.remote(1)))
    finally:
        ray.shutdown()
    report.faster("counter += 1", "Ray actor", pairs, 100)


def main(arguments: Sequence[str] | None = None) -> None:
    measures = {"arrays": arrays, "opening": opening, "counters": counters}
    measures |= {"actors": actors, "dictionaries": dictionaries}
    parser = argparse.ArgumentParser(description="what the rack costs from Python")
    parser.add_argument("--only", nargs="+", choices=measures, default=list(measures), help="what is measured")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    given = parser.parse_args(arguments)

    report = Report()
    with rackmem.up(nodes=WORKERS + 2, seats=WORKERS + 1, memory="2GiB", cache="128MiB") as rack:
        for name in given.only:
            measures[name](rack, given.rounds, report)
    setting = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
    setting["rounds"] = given.rounds
    if given.json:
        print(json.dumps({**setting, **asdict(report)}, indent=1))
    else:
        print(", ".join(f"{name} {value}" for name, value in setting.items()) + "\n\n" + table(report))
        for why in report.skipped:
            print(f"skipped: {why}")


if __name__ == "__main__":
    main()
