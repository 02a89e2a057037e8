"""The rack in the workers of Dask and of Ray.

Handles pickle as their names, and open again where they arrive. Ray kills its workers in the end, and with them what only
they have cached: its tasks join and leave by themselves.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

import rackmem

WORKERS = 2


def _add(hits: rackmem.Words, array: rackmem.Array, row: int) -> tuple[int, int]:
    """A task: counts itself, and fills a row."""
    hits.fetch_add(0, 1)
    array[row] += row
    return os.getpid(), int(array[row].sum())


def _add_and_leave(file: str | None, name: str, row: int) -> tuple[int, int]:
    """The same task, as a node of its own for as long as it runs."""
    assert file is not None
    with rackmem.join(file) as rack:
        return _add(rack.words(name + " hits"), rack.array(name + " array"), row)


def _check(rack: rackmem.Rack, name: str, results: list[tuple[int, int]]) -> None:
    assert [total for _, total in results] == [8 * row for row in range(20)]
    assert os.getpid() not in {process for process, _ in results}
    assert rack.words(name + " hits").load(0) == 20
    assert rack.array(name + " array").sum() == 8 * sum(range(20))


def test_workers_of_dask_find_the_rack(rack: rackmem.Rack, name: str) -> None:
    distributed: Any = pytest.importorskip("distributed")
    hits, array = rack.words(name + " hits", 1), rack.array(name + " array", (20, 8), "i8")
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        results = client.gather([client.submit(_add, hits, array, row, pure=False) for row in range(20)])
    # The workers are gone: what they wrote is not.
    _check(rack, name, results)


def test_workers_of_ray_join_and_leave(rack: rackmem.Rack, name: str) -> None:
    ray: Any = pytest.importorskip("ray")
    rack.words(name + " hits", 1)
    rack.array(name + " array", (20, 8), "i8")
    here = {"env_vars": {"PYTHONPATH": os.path.dirname(__file__)}}
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, runtime_env=here)
    try:
        task = ray.remote(_add_and_leave)
        results = ray.get([task.remote(rack.file, name, row) for row in range(20)], timeout=120)
    finally:
        ray.shutdown()
    _check(rack, name, results)
