"""Dictionaries: of the rack, of a manager's process, and of Redis."""

from __future__ import annotations

import multiprocessing
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.managers import SyncManager
from typing import Any

import numpy as np

import rackmem
from report import Report, alternate, installed

SPAWN = multiprocessing.get_context("spawn")
WORKERS = 4
KEYS = [f"key {number}" for number in range(1000)]
VALUE = b"v" * 100
#: How often a key is read between two looks at the clock.
READS = 256
#: Operations of each process in a turn, of stores that take less time for one than others.
OPERATIONS = {"rackmem": 8000, "rackmem in place": 40000}
#: What these are called.
KINDS = {"rackmem": "dictionary", "rackmem in place": "dictionary in place"}


@contextmanager
def redis_port(report: Report) -> Iterator[int | None]:
    """A server of Redis on a free port of this machine, which keeps nothing; None if there is no Redis."""
    server, redis = shutil.which("redis-server"), installed("redis")
    if server is None or redis is None:
        report.skipped.append("Redis: the package `redis` and the command `redis-server` are not both installed")
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 10
        while True:
            try:
                redis.Redis(port=port).ping()
                break
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


Get = Callable[[str], object]
Put = Callable[[str, bytes], object]


def stores(rack: rackmem.Rack, managed: Any, port: int | None) -> dict[str, tuple[Get, Put]]:
    """How each dictionary is read and written."""
    ours, in_place = rack.dict("marks"), rack.dict("marks in place", value_bytes=len(VALUE))
    found: dict[str, tuple[Get, Put]] = {
        "rackmem": (ours.__getitem__, ours.__setitem__),
        "rackmem in place": (in_place.__getitem__, in_place.__setitem__),
        "Manager": (managed.__getitem__, managed.__setitem__),
    }
    if port is not None:
        client = installed("redis").Redis(port=port)
        found["Redis"] = (client.get, client.set)
    return found


def mixer(file: str, managed: Any, port: int | None, seed: int, rounds: int, together: Any, results: Any) -> None:
    """One of several processes that read and write random keys, half and half, in the same stores."""
    random = np.random.default_rng(seed)
    with rackmem.join(file) as rack:
        sides = stores(rack, managed, port)
        for turn, name in ((turn, name) for turn in range(rounds) for name in sides):
            get, put = sides[name]
            count = OPERATIONS.get(name, 1000)
            keys = [KEYS[number] for number in random.integers(len(KEYS), size=count)]
            plan = list(zip(keys, random.integers(2, size=count).tolist()))
            together.wait(120)
            began = time.perf_counter()
            for key, write in plan:
                if write:
                    put(key, VALUE)
                else:
                    get(key)
            results.put((turn, name, count / (time.perf_counter() - began)))


def dictionaries(rack: rackmem.Rack, rounds: int, report: Report) -> None:
    """Reads of one process, and reads and writes of several."""
    with SyncManager(ctx=SPAWN) as manager, redis_port(report) as port:
        managed = manager.dict()
        sides = stores(rack, managed, port)
        others = [name for name in sides if name not in OPERATIONS]
        for key in KEYS:
            for _, put in sides.values():
                put(key, VALUE)
        chosen = [KEYS[number] for number in np.random.default_rng(3).integers(len(KEYS), size=READS)]

        def read(get: Get) -> None:
            for key in chosen:
                get(key)

        for kind, what in KINDS.items():
            for name in others:
                pairs = alternate(rounds, lambda: read(sides[kind][0]), lambda: read(sides[name][0]))
                each = [(ours / READS, theirs / READS) for ours, theirs in pairs]
                # Where nothing is cached, nothing was promised.
                mark = {"Manager": 100, "Redis": 20}[name] if kind == "rackmem" else None
                report.faster(f"{what}, reads", name, each, mark)

        together, results = SPAWN.Barrier(WORKERS), SPAWN.Queue()
        processes = [
            SPAWN.Process(target=mixer, args=(rack.file, managed, port, seed, rounds, together, results))
            for seed in range(WORKERS)
        ]
        for process in processes:
            process.start()
        rates: dict[tuple[int, str], float] = {}
        for _ in range(WORKERS * rounds * len(sides)):
            turn, name, rate = results.get(timeout=300)
            rates[turn, name] = rates.get((turn, name), 0.0) + rate
        for process in processes:
            process.join()
        for kind, what in KINDS.items():
            for name in others:
                pairs = [(1 / rates[turn, kind], 1 / rates[turn, name]) for turn in range(rounds)]
                mark = {"Manager": 10, "Redis": 3}[name]
                report.faster(f"{what}, half writes, {WORKERS} processes", name, pairs, mark)
