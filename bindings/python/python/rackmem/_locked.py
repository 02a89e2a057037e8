"""Locks, and the data that come with them."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _rackmem
from ._handle import Handle

if TYPE_CHECKING:
    from ._rack import Rack

#: The data of a lock: a record of NumPy. It belongs to whoever holds the lock, and cannot be changed after that.
Row = np.ndarray[Any, Any]


class Lock(Handle):
    """A lock of the whole rack: one thread of one node is inside. Not reentrant."""

    def __init__(self, rack: Rack, lock: _rackmem.Locked) -> None:
        super().__init__(rack, lock.name)
        self._lock = lock
        self._mine = threading.local()

    def acquire(self, timeout: float | None = None) -> None:
        """Takes the lock. Raises `TimeoutError` after so many seconds. Ctrl-C ends the wait."""
        if getattr(self._mine, "held", None) is not None:
            raise _rackmem.Error(f"this thread is inside of {self.name!r} already")
        self._mine.held = self._lock.acquire(True, timeout)

    def release(self) -> None:
        """Lets the next one in."""
        held = getattr(self._mine, "held", None)
        if held is None:
            raise _rackmem.Error(f"this thread is not inside of {self.name!r}")
        self._mine.held = None
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "lock", ()


class Locked(Handle):
    """A lock with data, which come with it.

    `with q.write() as row:` is alone with the data; when it ends without an exception they are what the row is. `with q.read() as
    row:` is there with other readers.
    """

    def __init__(self, rack: Rack, kind: np.dtype[Any], initial: Any, create: bool, name: str) -> None:
        if kind.hasobject:
            raise TypeError(f"data of {kind} are Python objects, which only this process knows: use numbers and bytes")
        data = np.zeros((), kind)
        if initial is not None:
            data[()] = tuple(initial) if kind.names is not None and not isinstance(initial, np.void) else initial
        super().__init__(rack, name)
        tag = kind.str if kind.names is None else repr(kind.descr)
        tag = tag if len(tag) <= 58 else f"{hash_of(tag)}"
        self._lock = rack._rack._locked(name, data.tobytes(), f"numpy {tag}", create)
        self.dtype = kind

    def read(self, timeout: float | None = None) -> Held:
        """Waits for the data, to read them. Raises `TimeoutError` after so many seconds."""
        return Held(self, False, timeout)

    def write(self, timeout: float | None = None) -> Held:
        """Waits for the data, to write them alone. Raises `TimeoutError` after so many seconds."""
        return Held(self, True, timeout)

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "locked", (self.dtype,)


def hash_of(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Held:
    """Data while they are held: a context manager."""

    def __init__(self, lock: Locked, write: bool, timeout: float | None) -> None:
        self._lock = lock
        self._write = write
        self._timeout = timeout
        self._held: _rackmem.Held | None = None
        self._row: Row | None = None

    def __enter__(self) -> Row:
        if self._held is not None:
            raise _rackmem.Error(f"the data of {self._lock.name!r} are held already")
        self._held = self._lock._lock.acquire(self._write, self._timeout)
        row = np.frombuffer(self._held.data(), self._lock.dtype).reshape(())
        row.flags.writeable = self._write
        self._row = row
        return row

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        held, row = self._held, self._row
        assert held is not None and row is not None
        self._held = self._row = None
        row.flags.writeable = False
        held.release(row.tobytes() if self._write and kind is None else None)
