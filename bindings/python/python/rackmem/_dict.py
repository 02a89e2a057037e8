"""A dictionary in the memory of a rack."""

from __future__ import annotations

import pickle as pickling
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _rackmem
from ._handle import Handle

if TYPE_CHECKING:
    from ._rack import Rack

_MISSING: Any = object()


def _packed(value: Any, pickle: bool) -> bytes:
    # Exactly these are simple: what is more than that would come back as less.
    if pickle and type(value) not in (bytes, str, int):
        return b"p" + pickling.dumps(value, pickling.HIGHEST_PROTOCOL)
    return _rackmem.pack(value)


class Dict(Handle):
    """A dictionary, linearizable per key: every operation happens at one moment, for all nodes. It has no order."""

    def __init__(self, rack: Rack, store: _rackmem.Dict, pickle: bool) -> None:
        super().__init__(rack, store.name)
        self._store = store
        self._pickle = pickle
        self._get = store.get
        self._find = store.find

    def _unpacked(self, data: bytes) -> Any:
        simple = _rackmem.unpack(data)
        if simple is not None:
            return simple
        if data[:1] != b"p":
            raise _rackmem.Error(
                f"a value of {self.name!r} was not written by rackmem for Python: read it where it was written"
            )
        if not self._pickle:
            raise TypeError(
                f"a value of {self.name!r} is a pickle: open the dictionary with pickle=True if you trust its writers"
            )
        return pickling.loads(data[1:])

    def __getitem__(self, key: bytes | str | int) -> Any:
        found = self._find(key)
        if found is None:
            raise KeyError(key)
        return self._unpacked(found[0]) if type(found) is tuple else found

    def get(self, key: bytes | str | int, default: Any = None) -> Any:
        """The value of a key, or the default."""
        found = self._find(key)
        if found is None:
            return default
        return self._unpacked(found[0]) if type(found) is tuple else found

    def __setitem__(self, key: bytes | str | int, value: Any) -> None:
        self._store.put(_packed(key, False), _packed(value, self._pickle))

    def __delitem__(self, key: bytes | str | int) -> None:
        if not self._store.delete(_packed(key, False)):
            raise KeyError(key)

    def __contains__(self, key: bytes | str | int) -> bool:
        return self._find(key) is not None

    def insert(self, key: bytes | str | int, value: Any) -> bool:
        """Sets the value of a key that is not there. False if it is: then nothing happens."""
        return self._store.insert(_packed(key, False), _packed(value, self._pickle))

    def setdefault(self, key: bytes | str | int, default: Any) -> Any:
        """The value of a key, which is the default from now on if it was not there."""
        while True:
            found = self.get(key, _MISSING)
            if found is not _MISSING:
                return found
            if self.insert(key, default):
                return default

    def replace(self, key: bytes | str | int, old: Any, new: Any) -> bool:
        """Sets the value of a key to `new` if it is `old`. That is how a value is changed by what it is."""
        pickle = self._pickle
        return self._store.replace(_packed(key, False), _packed(old, pickle), _packed(new, pickle))

    def update_with(self, key: bytes | str | int, change: Callable[[Any], Any]) -> Any:
        """Sets the value of a key to what `change` makes of it, in one step; returns that. It may be called more than once."""
        packed = _packed(key, False)
        while True:
            found = self._get(packed)
            if found is None:
                raise KeyError(key)
            changed = change(self._unpacked(found))
            if self._store.replace(packed, found, _packed(changed, self._pickle)):
                return changed

    def __iter__(self) -> Iterator[Any]:
        """The keys, in no order. One that is there all the time is among them, once; one that comes or goes may be."""
        bucket: int | None = 0
        while bucket is not None:
            keys, bucket = self._store.keys(bucket)
            yield from map(self._unpacked, keys)

    def keys(self) -> Iterator[Any]:
        """As the dictionary itself."""
        return iter(self)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The keys with their values, each as it is when its turn comes."""
        for key in self:
            value = self.get(key, _MISSING)
            if value is not _MISSING:
                yield key, value

    def __len__(self) -> int:
        """How many keys there are: it lists them all."""
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return next(iter(self), _MISSING) is not _MISSING

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        return "dict", ()
