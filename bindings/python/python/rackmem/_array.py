"""Arrays in the memory of a rack."""

from __future__ import annotations

import math
import operator
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from . import _rackmem

try:
    from numpy.lib.array_utils import byte_bounds as _byte_bounds
except ImportError:
    # Before NumPy 2.
    from numpy import byte_bounds as _byte_bounds  # type: ignore[no-redef,attr-defined,unused-ignore]

if TYPE_CHECKING:
    from ._rack import Rack


#: What rackmem calls memory that can be mapped.
_REGION = "rackmem::Region"


def _tag(kind: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """What a name says of an array. It has at most 64 bytes: of longer types only a sum."""
    text = kind.str if kind.names is None and kind.subdtype is None else f"V{zlib.crc32(repr(kind.descr).encode()):08x}"
    return f"{_REGION} numpy {text} {'x'.join(map(str, shape)) or '-'}"


def _parsed(name: str, tag: str, given: DTypeLike | None) -> tuple[np.dtype[Any], tuple[int, ...]]:
    parts = tag.removeprefix(_REGION).split(" ")[1:]
    if not tag.startswith(_REGION) or len(parts) != 3 or parts[0] != "numpy":
        raise _rackmem.Differs(f"{name!r} is no array, but {tag or 'something without a type'}")
    shape = () if parts[2] == "-" else tuple(map(int, parts[2].split("x")))
    if parts[1].startswith("V"):
        if given is None:
            raise TypeError(f"the elements of {name!r} are records: say their dtype")
        return np.dtype(given), shape
    return np.dtype(parts[1]), shape


def opened(
    rack: _rackmem.Rack,
    name: str,
    shape: int | Sequence[int] | None,
    dtype: DTypeLike | None,
    create: bool,
    copies: bool,
    mapped: bool,
) -> tuple[_rackmem.Memory, tuple[int, ...], np.dtype[Any]]:
    """The memory of an array, its shape and its type."""
    if shape is None:
        kind, found = _parsed(name, rack.info(name)["type"], dtype)
        if dtype is not None and np.dtype(dtype) != kind:
            raise _rackmem.Differs(f"the elements of {name!r} are {kind}, and not {np.dtype(dtype)}")
        return rack._memory(name, 0, _tag(kind, found), (False, False, mapped)), found, kind
    kind = np.dtype("f8" if dtype is None else dtype)
    if kind.hasobject:
        raise TypeError(f"elements of {kind} are Python objects, which only this process knows: use rack.dict with pickle=True")
    sizes = (operator.index(shape),) if not isinstance(shape, Sequence) else tuple(map(operator.index, shape))
    if any(size < 0 for size in sizes) or math.prod(sizes) * kind.itemsize == 0:
        raise ValueError(f"an array of shape {sizes} and type {kind} has no bytes: shapes are positive")
    count = math.prod(sizes) * kind.itemsize
    try:
        memory = rack._memory(name, count, _tag(kind, sizes), (copies, create, mapped))
    except _rackmem.Differs:
        there = rack.info(name)["type"]
        raise _rackmem.Differs(
            f"{name!r} is {there or 'of no type'}, and not {_tag(kind, sizes)}: open it as it is (rack.array({name!r})), or take another name"
        ) from None
    return memory, sizes, kind


class Array(np.ndarray[Any, Any]):
    """A NumPy array in the memory of a rack. Slices of it are, too; what NumPy computes from it is not."""

    @staticmethod
    def _of(memory: _rackmem.Memory, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
        flat = np.asarray(memory)
        # Words are whole, so there may be more bytes than elements.
        flat = flat[: math.prod(shape) * kind.itemsize]
        return flat.view(kind).reshape(shape).view(Array)

    if TYPE_CHECKING:
        # What is taken of an array may be an array or an element.
        def __getitem__(self, key: Any, /) -> Any: ...

    def touch(self, write: bool = False) -> None:
        """Gets the memory of the array, or slice, now: raises what would end the process if it were accessed."""
        touch(self, write)

    def prefetch(self, write: bool = False) -> None:
        """Gets its memory together, as a hint that it will be used."""
        prefetch(self, write)

    @contextmanager
    def pin(self, write: bool = False) -> Iterator[None]:
        """Keeps its memory here during the `with` block: no other node writes it meanwhile.

        For what must be seen as a whole, and for system calls (`file.readinto`) of processes that are told that these fail else.
        At most a quarter of what a node caches can be pinned.
        """
        memory, at, length = _where(self)
        pinned = memory.pin(at, length, write)
        try:
            yield
        finally:
            pinned.end()

    @property
    def rack_name(self) -> str:
        """The name under which the rack has it."""
        return _where(self)[0].name

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:
            return self
        return array[()] if return_scalar else np.asarray(array)

    def __reduce__(self) -> Any:
        try:
            memory, _, _ = _where(self)
        except ValueError:
            return super().__reduce__()
        at = self.__array_interface__["data"][0] - memory.address
        file = None if memory.rack_file is None else str(memory.rack_file)
        return _again, (file, memory.name, at, self.shape, self.strides, self.dtype)


def _again(file: str | None, name: str, at: int, shape: Any, strides: Any, kind: np.dtype[Any]) -> Array:
    from ._rack import current

    rack = current(file)
    whole = rack.array(name, dtype=kind if kind.names else None)
    flat = np.asarray(_memory(whole))
    return np.ndarray(shape, kind, flat, at, strides).view(Array)


def _memory(array: np.ndarray[Any, Any]) -> _rackmem.Memory:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, _rackmem.Memory):
        raise ValueError("this array is not in the memory of a rack: it was computed or copied")
    return base


def _where(array: np.ndarray[Any, Any]) -> tuple[_rackmem.Memory, int, int]:
    """The memory, and the bytes of it that the array lies in."""
    memory = _memory(array)
    low, high = _byte_bounds(array)
    return memory, low - memory.address, high - low


def touch(array: np.ndarray[Any, Any], write: bool = False) -> None:
    """As :meth:`Array.touch`, of whatever array lies in the memory of a rack."""
    memory, at, length = _where(array)
    memory.touch(at, length, write)


def prefetch(array: np.ndarray[Any, Any], write: bool = False) -> None:
    """As :meth:`Array.prefetch`, of whatever array lies in the memory of a rack."""
    memory, at, length = _where(array)
    memory.prefetch(at, length, write)


class BulkArray:
    """An array of a rack by calls: slices of its first axis are loaded as copies, and stored."""

    def __init__(self, rack: Rack, memory: _rackmem.Memory, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
        self._rack = rack
        self._memory = memory
        self.shape = shape
        self.dtype = kind

    @property
    def rack_name(self) -> str:
        """The name under which the rack has it."""
        return self._memory.name

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def _rows(self, key: int | slice) -> tuple[int, int, tuple[int, ...]]:
        row = math.prod(self.shape[1:])
        if isinstance(key, slice):
            first, end, step = key.indices(len(self))
            if step != 1:
                raise IndexError(f"a step of {step}: load a slice without one, and take what you need of the copy")
            return first * row, max(end - first, 0) * row, (max(end - first, 0), *self.shape[1:])
        index = operator.index(key)
        first = index + len(self) if index < 0 else index
        if not 0 <= first < len(self):
            raise IndexError(f"index {index} of {len(self)} rows")
        return first * row, row, self.shape[1:]

    def load(self, key: int | slice = slice(None)) -> np.ndarray[Any, Any]:
        """A copy of rows. Each block of it is one moment; the whole need not be."""
        first, count, shape = self._rows(key)
        size = self.dtype.itemsize
        copy = self._memory.load(first * size, count * size)
        return np.frombuffer(copy, self.dtype).reshape(shape)

    def store(self, key: int | slice, values: Any) -> None:
        """Replaces rows by values, which are broadcast to their shape."""
        first, count, shape = self._rows(key)
        filled = np.empty(shape, self.dtype)
        filled[...] = values
        self._memory.store(first * self.dtype.itemsize, filled.tobytes())

    def __getitem__(self, key: Any) -> Any:
        raise TypeError("this array is reached by calls: a.load(rows) is a copy; rack.array on a joined process is memory")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("this array is reached by calls: a.store(rows, values); rack.array on a joined process is memory")

    def __repr__(self) -> str:
        return f"<rackmem.BulkArray {self.rack_name!r} {self.shape} {self.dtype} on {self._rack!r}>"
