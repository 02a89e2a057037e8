"""Words: counters and flags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _rackmem
from ._handle import Handle

if TYPE_CHECKING:
    from ._rack import Rack


class Words(Handle):
    """Words of 64 bits (0 to 2**64 - 1) that every node changes atomically, without copies or locks."""

    def __init__(self, rack: Rack, words: _rackmem.Words) -> None:
        super().__init__(rack, words.name)
        self._words = words
        # Straight to the native part: these are what counters cost.
        self.load = words.load
        self.store = words.store
        self.swap = words.swap
        self.fetch_add = words.fetch_add
        self.fetch_and = words.fetch_and
        self.fetch_or = words.fetch_or
        self.fetch_xor = words.fetch_xor
        self.compare_exchange = words.compare_exchange

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, index: int) -> int:
        return self._words.load(index)

    def __setitem__(self, index: int, value: int) -> None:
        self._words.store(index, value)

    def __iter__(self) -> Iterator[int]:
        return (self._words.load(index) for index in range(len(self)))

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "words", ()
