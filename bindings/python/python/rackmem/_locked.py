"""Locks, and the data that come with them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _rackmem
from ._handle import Handle

if TYPE_CHECKING:
    from ._rack import Rack

#: The data of a lock: a record of NumPy. It belongs to whoever holds the lock, and cannot be changed after that.
Row = np.ndarray[Any, Any]


class _Inside(Handle):
    """What threads of this process are inside of."""

    def __init__(self, rack: Rack, name: str) -> None:
        super().__init__(rack, name)
        self._mine = threading.local()

    @property
    def writer_that_died(self) -> int | None:
        """While this thread is inside of a lock with copies: the node that died with a thread inside to write, if nobody has
        written since. What that had not released is not there.
        """
        died: int | None = getattr(self._mine, "died", None)
        return died


class Lock(_Inside):
    """A lock of the whole rack: one thread of one node is inside. Not reentrant."""

    def __init__(self, rack: Rack, lock: _rackmem.Locked) -> None:
        super().__init__(rack, lock.name)
        self._lock = lock

    def acquire(self, timeout: float | None = None) -> None:
        """Takes the lock. Raises `TimeoutError` after so many seconds. Ctrl-C ends the wait."""
        if getattr(self._mine, "held", None) is not None:
            raise _rackmem.Error(f"this thread is inside of {self.name!r} already")
        self._mine.held = self._lock.acquire(True, timeout)
        self._mine.died = self._mine.held.writer_that_died

    def release(self) -> None:
        """Lets the next one in."""
        held = getattr(self._mine, "held", None)
        if held is None:
            raise _rackmem.Error(f"this thread is not inside of {self.name!r}")
        self._mine.held = self._mine.died = None
        held.release()

    @property
    def fence(self) -> int:
        """While this thread is inside: a number that grows with every time that somebody is."""
        held = getattr(self._mine, "held", None)
        if held is None:
            raise _rackmem.Error(f"this thread is not inside of {self.name!r}")
        return int(held.fence)

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "lock", ()


class Regions(_Inside):
    """A lock over up to 64 regions of bytes, which come, go and grow. They come with the lock, all in one trip.

    `with r.write() as regions:` is alone with a list of `bytearray`; when it ends without an exception, the regions are what the
    list is. `with r.read() as regions:` is there with other readers: the list is a copy.
    """

    def __init__(self, rack: Rack, regions: _rackmem.Regions) -> None:
        super().__init__(rack, regions.name)
        self._regions = regions

    @property
    def room(self) -> int:
        """Bytes that all regions may take: each its own, in whole words of 8, and 16 more."""
        return self._regions.room

    def read(self, timeout: float | None = None) -> AbstractContextManager[list[bytearray]]:
        """Waits for the regions, to read them. Raises `TimeoutError` after so many seconds."""
        return self._hold(False, timeout)

    def write(self, timeout: float | None = None) -> AbstractContextManager[list[bytearray]]:
        """Waits for the regions, to change them alone. Raises `TimeoutError` after so many seconds.

        The end of the block raises `ValueError` if they do not fit; then they are as they were.
        """
        return self._hold(True, timeout)

    @contextmanager
    def _hold(self, write: bool, timeout: float | None) -> Iterator[list[bytearray]]:
        held, changed = self._regions.acquire(write, timeout), None
        self._mine.died = held.writer_that_died
        try:
            regions = held.data()
            yield regions
            changed = [bytes(region) for region in regions] if write else None
        finally:
            self._mine.died = None
            held.release(changed)

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "regions", ()


class Locked(_Inside):
    """A lock with data, which come with it.

    `with q.write() as row:` is alone with the data; when it ends without an exception they are what the row is. `with q.read() as
    row:` is there with other readers.
    """

    def __init__(self, rack: Rack, kind: np.dtype[Any], initial: Any, copies: bool, create: bool, name: str) -> None:
        if kind.hasobject:
            raise TypeError(f"data of {kind} are Python objects, which only this process knows: use numbers and bytes")
        data = np.zeros((), kind)
        if initial is not None:
            data[()] = tuple(initial) if kind.names is not None and not isinstance(initial, np.void) else initial
        super().__init__(rack, name)
        tag = kind.str if kind.names is None else repr(kind.descr)
        # A name's tag has at most 64 bytes.
        tag = tag if len(tag) <= 58 else hashlib.sha256(tag.encode()).hexdigest()[:32]
        self._lock = rack._rack._locked(name, data.tobytes(), f"numpy {tag}", copies, create)
        self.dtype = kind

    def read(self, timeout: float | None = None) -> AbstractContextManager[Row]:
        """Waits for the data, to read them. Raises `TimeoutError` after so many seconds."""
        return self._hold(False, timeout)

    def write(self, timeout: float | None = None) -> AbstractContextManager[Row]:
        """Waits for the data, to write them alone. Raises `TimeoutError` after so many seconds."""
        return self._hold(True, timeout)

    @contextmanager
    def _hold(self, write: bool, timeout: float | None) -> Iterator[Row]:
        held, changed = self._lock.acquire(write, timeout), None
        self._mine.died = held.writer_that_died
        row = np.frombuffer(held.data(), self.dtype).reshape(())
        row.flags.writeable = write
        try:
            yield row
            changed = row.tobytes() if write else None
        finally:
            row.flags.writeable = False
            self._mine.died = None
            held.release(changed)

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "locked", (self.dtype,)
