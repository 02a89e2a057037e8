"""k-means on several processes.

Points and centres are arrays of the rack. Each process assigns its share of the points to centres, and leaves its sums
in its row of an array. The processes meet, and the first one moves the centres. The result is compared with what NumPy
computes in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import rackmem
from workers import meet, run

Floats = np.ndarray[Any, np.dtype[np.float64]]


def sums_of(points: Floats, centres: Floats) -> tuple[Floats, Floats]:
    """For each centre: the sum and the number of the points that are nearest to it."""
    products = points @ centres.T
    nearest = (np.square(centres).sum(axis=1) - 2 * products).argmin(axis=1)
    belongs = (nearest[:, None] == np.arange(len(centres))).astype(np.float64)
    return belongs.T @ points, belongs.sum(axis=0)


def moved(centres: Floats, sums: Floats, counts: Floats) -> Floats:
    """The centres' next places. One that has no points stays where it is."""
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)


def work(file: str, me: int, workers: int, steps: int) -> None:
    """One process: its share of the points, for some steps."""
    with rackmem.join(file) as rack:
        points, centres = rack.array("points"), rack.array("centres")
        sums, counts = rack.array("sums"), rack.array("counts")
        arrivals = rack.words("arrivals")
        mine = points[len(points) * me // workers : len(points) * (me + 1) // workers]
        for _ in range(steps):
            sums[me], counts[me] = sums_of(mine, centres)
            meet(arrivals, workers)
            if me == 0:
                centres[:] = moved(centres, sums.sum(axis=0), counts.sum(axis=0))
            meet(arrivals, workers)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="k-means on several processes of a rack")
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--dimensions", type=int, default=8)
    parser.add_argument("--centres", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args(arguments)

    random = np.random.default_rng(1)
    clusters = random.uniform(-10, 10, (given.centres, given.dimensions))
    which = random.integers(given.centres, size=given.points)
    # A seat for each worker and for this process, and one node that keeps the names.
    with rackmem.up(nodes=given.workers + 2, seats=given.workers + 1) as rack:
        points = rack.array("points", (given.points, given.dimensions), "f8")
        points[:] = clusters[which] + random.normal(size=points.shape)
        centres = rack.array("centres", (given.centres, given.dimensions), "f8")
        centres[:] = points[: given.centres]
        rack.array("sums", (given.workers, *centres.shape), "f8")
        rack.array("counts", (given.workers, given.centres), "f8")
        rack.words("arrivals", 1)

        expected = np.array(centres)
        run([(work, (rack.file, me, given.workers, given.steps)) for me in range(given.workers)])
        for _ in range(given.steps):
            expected = moved(expected, *sums_of(points, expected))
        if not np.allclose(centres, expected):
            raise SystemExit(f"the centres differ by {np.abs(centres - expected).max()}")
        print(f"{given.points} points, {given.centres} centres, {given.steps} steps on {given.workers} processes: "
              "the same centres as in one process")


if __name__ == "__main__":
    main()
