"""Objects: bytes with versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _rackmem
from ._handle import Handle

if TYPE_CHECKING:
    from ._rack import Rack


class Object(NamedTuple):
    """What a slot was at one moment."""

    version: int
    data: bytes


class Objects(Handle):
    """Slots of bytes, each read whole and without a lock. Every write gives a slot another version."""

    def __init__(self, rack: Rack, objects: _rackmem.Objects) -> None:
        super().__init__(rack, objects.name)
        self._objects = objects

    @property
    def size(self) -> int:
        """Bytes of each slot."""
        return self._objects.size

    def __len__(self) -> int:
        return len(self._objects)

    def read(self, slot: int) -> Object:
        """A slot, whole, and its version."""
        return Object(*self._objects._read(slot))

    def write(self, slot: int, data: bytes) -> int:
        """Replaces a slot; what is shorter is padded with zeroes. Returns its version from then on."""
        return self._objects.write(slot, data)

    def write_if(self, slot: int, version: int, data: bytes) -> int | None:
        """The same if the slot still has this version. None: it has another one, or somebody is writing it; read it again."""
        return self._objects.write_if(slot, version, data)

    def __getitem__(self, slot: int) -> bytes:
        return self.read(slot).data

    def __setitem__(self, slot: int, data: bytes) -> None:
        self.write(slot, data)

    def __iter__(self) -> Iterator[bytes]:
        return (self.read(slot).data for slot in range(len(self)))

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "objects", ()
