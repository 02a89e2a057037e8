"""A directory of blocks, as servers of language models keep them: keys and values of a prefix, found by its hash.

| what | is |
| --- | --- |
| `blocks` | an array: the blocks' contents |
| `slots` | objects: whose block it is, which generation, and whether it is closed |
| `pins` | words: how many processes are reading the block |
| `directory` | a dictionary: from a prefix's hash to a block and its generation |

A reader looks a prefix up, pins the block, and then checks the generation. The evictor closes a block under a new
generation, and then waits until nobody has it pinned. Each first says what it does, and looks at the other after that.
So at least one of them sees the other: nobody reads a block while it is filled for somebody else. Every reader proves
that by the contents.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import rackmem
from workers import meet, run

OPEN, CLOSED = 1, 2
SLOT = np.dtype([("owner", "u8"), ("generation", "u8"), ("state", "u8")])
#: Of a block: one page.
VALUES = 512


class Cache:
    """What a process has of it."""

    def __init__(self, rack: rackmem.Rack, blocks: int | None = None) -> None:
        sizes = None if blocks is None else (blocks, VALUES)
        self.blocks = rack.array("blocks", sizes, "f8")
        self.slots = rack.objects("slots", blocks, SLOT.itemsize)
        self.pins = rack.words("pins", blocks)
        self.directory = rack.dict("directory")
        #: Counts of lookups, hits and evictions, and of readers that have ended.
        self.counts = rack.words("counts", None if blocks is None else 4)
        #: All begin together.
        self.arrivals = rack.words("arrivals", None if blocks is None else 1)

    def slot(self, block: int) -> np.void:
        """Whose block it is, at one moment."""
        found: np.void = np.frombuffer(self.slots[block], SLOT)[0]
        return found

    def describe(self, block: int, owner: int, generation: int, state: int) -> None:
        """Says whose block it is from now on."""
        self.slots[block] = np.array((owner, generation, state), SLOT).tobytes()

    def read(self, prefix: int) -> np.ndarray[Any, Any] | None:
        """A copy of the block of a prefix, if it is there."""
        found = self.directory.get(prefix)
        if found is None:
            return None
        generation, block = divmod(found, len(self.pins))
        self.pins.fetch_add(block, 1)
        try:
            slot = self.slot(block)
            if slot["state"] != OPEN or slot["generation"] != generation:
                return None
            values = np.array(self.blocks[block])
            if slot["owner"] != prefix or not (values == content(prefix, generation)).all():
                raise SystemExit(f"the block of {prefix}, generation {generation}, had {values[0]}: {slot}")
            return values
        finally:
            self.pins.fetch_add(block, -1)

    def reuse(self, block: int, prefix: int) -> None:
        """Fills a block for another prefix."""
        was = self.slot(block)
        generation = int(was["generation"]) + 1
        self.describe(block, prefix, generation, CLOSED)
        if was["state"] == OPEN:
            del self.directory[int(was["owner"])]
        while self.pins[block] > 0:
            time.sleep(0)
        self.blocks[block] = content(prefix, generation)
        self.describe(block, prefix, generation, OPEN)
        self.directory[prefix] = generation * len(self.pins) + block


LOOKUPS, HITS, EVICTIONS, ENDED = range(4)


def content(prefix: int, generation: int) -> float:
    """What each value of a block is: one number for each prefix and generation."""
    return float(prefix << 24 | generation)


def reader(file: str, seed: int, prefixes: int, lookups: int, readers: int) -> None:
    """Reads blocks of random prefixes."""
    random = np.random.default_rng(seed)
    with rackmem.join(file) as rack:
        cache = Cache(rack)
        meet(cache.arrivals, readers + 1)
        hits = sum(cache.read(int(prefix)) is not None for prefix in random.integers(prefixes, size=lookups))
        cache.counts.fetch_add(LOOKUPS, lookups)
        cache.counts.fetch_add(HITS, hits)
        cache.counts.fetch_add(ENDED, 1)


def evictor(file: str, prefixes: int, readers: int) -> None:
    """Gives random blocks that nobody reads to prefixes that have none, until the readers have ended."""
    random = np.random.default_rng(0)
    with rackmem.join(file) as rack:
        cache = Cache(rack)
        meet(cache.arrivals, readers + 1)
        while cache.counts[ENDED] < readers:
            block, prefix = int(random.integers(len(cache.pins))), int(random.integers(prefixes))
            if cache.pins[block] == 0 and prefix not in cache.directory:
                cache.reuse(block, prefix)
                cache.counts.fetch_add(EVICTIONS, 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="a directory of inference blocks on a rack")
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--lookups", type=int, default=5000, help="of each reader")
    parser.add_argument("--readers", type=int, default=3)
    given = parser.parse_args(arguments)

    prefixes = 2 * given.blocks
    with rackmem.up(nodes=given.readers + 3, seats=given.readers + 2) as rack:
        cache = Cache(rack, given.blocks)
        for block in range(given.blocks):
            cache.reuse(block, block)
        readers = [
            (reader, (rack.file, seed, prefixes, given.lookups, given.readers)) for seed in range(1, given.readers + 1)
        ]
        run([*readers, (evictor, (rack.file, prefixes, given.readers))])

        lookups, hits, evictions, _ = cache.counts
        if lookups != given.readers * given.lookups or not 0 < hits < lookups or evictions == 0 or any(cache.pins):
            raise SystemExit(f"{lookups} lookups, {hits} hits, {evictions} evictions, pins {list(cache.pins)}")
        print(f"{lookups} lookups of {given.readers} processes, {hits} hits, {evictions} evictions: "
              "every block was of the generation that was pinned")


if __name__ == "__main__":
    main()
