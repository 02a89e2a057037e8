"""Asynchronous stochastic gradient descent ("Hogwild"): processes change one array of parameters without locks.

Each process reads the parameters as they are, computes a gradient from a few samples, and subtracts it. Sometimes two
processes change a parameter at once, and one of the changes is lost. The descent does not mind.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import rackmem
from workers import run

NOISE = 0.1
BATCH = 32


def loss(features: rackmem.Array, targets: rackmem.Array, parameters: rackmem.Array) -> float:
    """Half of the mean square error."""
    return float(np.square(features @ parameters - targets).mean() / 2)


def work(
    features: rackmem.Array, targets: rackmem.Array, parameters: rackmem.Array, seed: int, steps: int, rate: float
) -> None:
    """One process. The arrays came as names: opening the first one has joined the rack."""
    random = np.random.default_rng(seed)
    for _ in range(steps):
        rows = random.integers(len(features), size=BATCH)
        batch = features[rows]
        errors = batch @ parameters - targets[rows]
        parameters -= rate / BATCH * (batch.T @ errors)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="asynchronous stochastic gradient descent on a rack")
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--parameters", type=int, default=64)
    parser.add_argument("--steps", type=int, default=2000, help="of each process")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args(arguments)

    random = np.random.default_rng(1)
    with rackmem.up(nodes=given.workers + 2, seats=given.workers + 1) as rack:
        features = rack.array("features", (given.samples, given.parameters), "f8")
        features[:] = random.normal(size=features.shape)
        targets = rack.array("targets", given.samples, "f8")
        targets[:] = features @ random.normal(size=given.parameters) + NOISE * random.normal(size=given.samples)
        parameters = rack.array("parameters", given.parameters, "f8")

        first = loss(features, targets, parameters)
        run([
            (work, (features, targets, parameters, seed, given.steps, given.rate)) for seed in range(given.workers)
        ])
        last = loss(features, targets, parameters)
        # What the noise alone costs, and a little for steps that never end.
        bound = 1.5 * NOISE**2 / 2
        if not last < bound:
            raise SystemExit(f"the loss fell from {first:.3f} to {last:.5f} only, which is not below {bound:.5f}")
        print(f"{given.workers} processes, {given.steps} steps each: the loss fell from {first:.3f} to {last:.5f}, "
              f"below {bound:.5f}")


if __name__ == "__main__":
    main()
