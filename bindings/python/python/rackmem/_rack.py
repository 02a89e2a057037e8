"""A rack, and what it has under names."""

from __future__ import annotations

import atexit
import os
import shutil
import sysconfig
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import _rackmem
from ._array import Array, BulkArray, opened
from ._dict import Dict
from ._locked import Lock, Locked, Regions
from ._objects import Objects
from ._words import Words

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
#: The racks of this process, for handles that are unpickled here.
_OPEN: list[weakref.ref["Rack"]] = []


def _bytes(size: int | str | None) -> int | None:
    if size is None or isinstance(size, int):
        return size
    number = size.rstrip("KMGTiB ")
    unit = size[len(number) :].strip()
    if unit not in _UNITS or not number.strip().isdigit():
        raise ValueError(f"{size!r} is no size: write an int, or a text like '64MiB' or '4GiB'")
    return int(number) * _UNITS[unit]


def command() -> str:
    """The path of the command `rackmem`: what `RACKMEM_COMMAND` says, the one of the wheel, or the one on the PATH."""
    given = os.environ.get("RACKMEM_COMMAND")
    beside = os.path.join(sysconfig.get_path("scripts"), "rackmem")
    found = given or (beside if os.access(beside, os.X_OK) else shutil.which("rackmem"))
    if not found:
        raise FileNotFoundError(f"there is no command `rackmem` at {beside} or on the PATH: install the wheel again")
    return found


class Rack:
    """A rack, and this process's place in it. Made by :func:`up`, :func:`join` and :func:`attach`.

    As a context manager it is left at the end. Arrays keep this process's node for as long as they are there; all other
    handles raise :class:`rackmem.Error` from then on.
    """

    def __init__(self, rack: _rackmem.Rack) -> None:
        self._rack = rack
        self._memories: weakref.WeakSet[_rackmem.Memory] = weakref.WeakSet()
        _OPEN.append(weakref.ref(self))

    @property
    def name(self) -> str:
        """The rack's name."""
        return self._rack.name

    @property
    def node(self) -> int:
        """The node that this process is, or is attached to."""
        return self._rack.node

    @property
    def nodes(self) -> int:
        """How many nodes the rack began with. Those that were added since have higher numbers."""
        return self._rack.nodes

    @property
    def joined(self) -> bool:
        """True if this process is a node itself: then it maps memory. False: it is attached to one."""
        return self._rack.joined

    @property
    def file(self) -> str | None:
        """The path of the rack file."""
        return None if self._rack.file is None else str(self._rack.file)

    def array(
        self,
        name: str,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        copies: bool = False,
        create: bool = True,
    ) -> Array:
        """The NumPy array with this name, made with zeroes if nothing has it.

        Without a shape, the array that is there, whatever its shape and type. Every node has it at the same address, and sees what
        others write as threads of one process do. On an attached process see :meth:`bulk_array`.

        With `copies`, one that is made outlives nodes, as a dictionary does: what was stored before :meth:`sync` is there.

        Raises `TypeError` for a dtype of Python objects, `rackmem.Differs` if the array that is there has another shape or type,
        `rackmem.MapError` where memory cannot be mapped, `MemoryError` if no node has as much.
        """
        if not self.joined:
            raise _rackmem.MapError(
                "an attached process cannot map memory: use rack.bulk_array, which loads and stores, or join the rack"
            )
        memory, shape, kind = opened(self._rack, name, shape, dtype, create, copies, True)
        self._memories.add(memory)
        return Array._of(memory, shape, kind)

    def bulk_array(
        self,
        name: str,
        shape: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        copies: bool = False,
        create: bool = True,
    ) -> BulkArray:
        """The same array by `load` and `store` of slices: for attached processes, and whoever wants errors and not pointers.

        With `copies`, one that is made outlives nodes, as :meth:`array` says.
        """
        return BulkArray(self, *opened(self._rack, name, shape, dtype, create, copies, False))

    def lock(self, name: str, *, copies: bool = False, create: bool = True) -> Lock:
        """The lock with this name. `with rack.lock(name):` is inside alone.

        With `copies`, one that is made outlives nodes, as :meth:`locked` says.
        """
        return Lock(self, self._rack._locked(name, bytes(8), "lock", copies, create))

    def locked(
        self, name: str, dtype: DTypeLike, initial: Any = None, *, copies: bool = False, create: bool = True
    ) -> Locked:
        """A lock with data: a record of this type, which comes with the lock. New data are `initial`, or zeroes.

        With `copies`, one that is made outlives nodes, as a dictionary does. What a writer had released when its node died is there,
        whole, if others have seen it or :meth:`sync` has ended since; nothing is there of what it had not released.
        """
        kind = np.dtype(dtype)
        return Locked(self, kind, initial, copies, create, name)

    def regions(
        self, name: str, room: int | None = None, *, copies: bool = False, create: bool = True
    ) -> Regions:
        """A lock over several regions of bytes, with room for so many bytes in all. Without that: the one that is there.

        With `copies`, one that is made outlives nodes, as :meth:`locked` says.
        """
        make = create and room is not None
        return Regions(self, self._rack._regions(name, room or 0, copies, make))

    def words(self, name: str, count: int | None = None, *, create: bool = True) -> Words:
        """Words of 64 bits, zeroes when they are new, that every node changes atomically. Without a count: those that are there."""
        make = create and count is not None
        return Words(self, self._rack._words(name, count or 0, make))

    def dict(
        self,
        name: str,
        *,
        expected_keys: int = 1 << 16,
        value_bytes: int | None = None,
        key_bytes: int = 32,
        pickle: bool = False,
        copies: bool = False,
        create: bool = True,
    ) -> Dict:
        """A dictionary, linearizable per key. Keys and values are bytes, str and int; with `pickle`, values are whatever pickles.

        Whoever reads pickles runs what they say: share such dictionaries with programs that you trust.

        Without `value_bytes`, nodes cache what they read and write. That suits keys that are read more often than others write them.
        With it, one that is made keeps its entries where they are, as objects with room for values of so many bytes and keys of
        `key_bytes` (an int has up to 8, and a text those of its UTF-8): nobody caches, processes of one machine reach them in its memory,
        and others in a trip. That suits keys that many write. It has room for `expected_keys`, and for some more; then it raises
        `MemoryError`. A dictionary that is there is opened as it is made; `rackmem.Differs` if it has other sizes than are given.

        With `copies`, one that is made outlives nodes: those of a rack with copies (`up(copies=2)`) keep as many of all that is in
        it. What a node that dies had put last may be gone; what it had put before :meth:`sync`, or others have seen, is there.
        """
        if value_bytes is not None and copies:
            raise ValueError("entries that stay where they are have no copies: leave out value_bytes or copies")
        # In front of each is what it is.
        longest = None if value_bytes is None else (key_bytes + 1, value_bytes + 1)
        return Dict(self, self._rack._dict(name, expected_keys, longest, (copies, create)), pickle)

    def sync(self) -> None:
        """Waits until what this node has written to dictionaries, locks and arrays with copies survives it."""
        self._rack.sync()

    def objects(
        self, name: str, slots: int | None = None, size: int | None = None, *, create: bool = True
    ) -> Objects:
        """Slots of bytes that are read whole, with a version. Without a number of slots and a size: those that are there."""
        make = create and slots is not None and size is not None
        return Objects(self, self._rack._objects(name, slots or 0, size or 0, make))

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin so, in their order. Those of nodes that are down are left out."""
        return self._rack.names(prefix)

    def info(self, name: str) -> Mapping[str, Any]:
        """What has a name: kind, type, bytes of each element, their count, home and maker."""
        return self._rack.info(name)

    def remove(self, name: str) -> None:
        """Takes a name away, and frees what it names. Whoever uses it is told that it is lost."""
        self._rack.remove(name)

    def leave(self) -> None:
        """Leaves the rack. Raises if arrays are still there, and names them."""
        left = sorted({memory.name for memory in self._memories})
        if left:
            raise _rackmem.Error(f"there are arrays still, and they need this node: {', '.join(left)}; delete them first")
        self._rack._close()

    def __enter__(self) -> Rack:
        return self

    def __exit__(self, *error: object) -> None:
        self._rack._close()

    def __repr__(self) -> str:
        how = "node" if self.joined else "attached to node"
        left = ", left" if self._rack.closed else ""
        return f"<rackmem.Rack {self.name!r}, {how} {self.node} of {self.nodes}{left}>"


def up(
    nodes: int = 4,
    *,
    seats: int = 1,
    memory: int | str | None = None,
    cache: int | str | None = None,
    copies: int | None = None,
) -> Rack:
    """Starts a rack of processes on this machine, and joins it as its last node. They end with the rack, or with this process.

    `seats` of its nodes get no process of their own: this process is the last one, and workers join as the others
    (`rackmem.join(rack.file)`). At least one node is none of theirs: it keeps the names. `memory` is what each node contributes (default 256 MiB), `cache` what each node caches (default 64 MiB), in bytes or as '4GiB'. With `copies`,
    2 or 3, so many nodes keep names, and dictionaries, locks and arrays with copies: they outlive one or two of them.
    """
    return Rack(_rackmem.up(nodes, seats, _bytes(memory), _bytes(cache), copies, command()))


def join(file: str | os.PathLike[str], node: int | None = None) -> Rack:
    """Joins the rack of a rack file as one of its nodes, which no other process is. Without a number: as the last one that is free."""
    if node is not None:
        return Rack(_rackmem.join(file, node))
    taken: Exception | None = None
    for seat in reversed(range(_rackmem.nodes_of(file))):
        try:
            return Rack(_rackmem.join(file, seat))
        except _rackmem.Error as why:
            taken = why
    raise _rackmem.Error(f"no node of {os.fspath(file)} is free: give the rack more seats, or attach") from taken


def attach(file: str | os.PathLike[str], node: int = 0) -> Rack:
    """Uses the node that a daemon (`rackmem node`, `rackmem up`) runs on this machine."""
    return Rack(_rackmem.attach(file, node))


def current(file: str | None = None) -> Rack:
    """The rack that this process has open: the last one, or the one of this file. Workers find theirs so.

    If it has none, it joins the rack of this file as a node that is free, or else attaches to one.
    """
    for reference in reversed(_OPEN):
        rack = reference()
        if rack is not None and not rack._rack.closed and file in (None, rack.file):
            return rack
    if file is None:
        raise _rackmem.Error("this process is on no rack: join or attach to one first")
    try:
        rack = join(file)
    except _rackmem.Error:
        rack = attach(file)
    _KEPT.append(rack)
    return rack


def _leave_all() -> None:
    """What only a node of this process has cached goes home, before the process ends."""
    for reference in _OPEN:
        rack = reference()
        if rack is not None:
            rack._rack._leave_now()


atexit.register(_leave_all)

#: Racks that were opened for handles, and that nobody else holds.
_KEPT: list[Rack] = []
