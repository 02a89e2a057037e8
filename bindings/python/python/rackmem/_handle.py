"""What all handles have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._rack import Rack


def _open(file: str | None, kind: str, name: str, more: tuple[Any, ...]) -> Any:
    from ._rack import current

    return getattr(current(file), kind)(name, *more, create=False)


class Handle:
    """A handle of something that a rack has under a name. It pickles as the name."""

    def __init__(self, rack: Rack, name: str) -> None:
        self._rack = rack
        self.name = name

    def _again(self) -> tuple[str, tuple[Any, ...]]:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        kind, more = self._again()
        return _open, (self._rack.file, kind, self.name, more)

    def __repr__(self) -> str:
        return f"<rackmem.{type(self).__name__} {self.name!r} on {self._rack!r}>"
