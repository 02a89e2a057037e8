"""One shared memory for a rack of machines: NumPy arrays, locks that bring their data, words, dictionaries and objects.

>>> import rackmem
>>> with rackmem.up(nodes=2) as rack:
...     a = rack.array("table", (1000, 4), "f8")
...     a[17] += 1.5
...     float(a[17].sum())
6.0

What has a name is the same on every node. A handle pickles as its name, and opens again in a worker that is on a rack
(`rackmem.join`, `rackmem.attach`, or one that the handle's own rack file leads to).
"""

from __future__ import annotations

import os
import sys

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("rackmem has not been tested without the interpreter's lock: run it with PYTHON_GIL=1")

from . import _rackmem
from ._array import Array, BulkArray, prefetch, touch
from ._dict import Dict
from ._locked import Lock, Locked, Regions, Row
from ._objects import Object, Objects
from ._rack import Rack, attach, command, current, join, up
from ._rackmem import Differs, Error, Fenced, Lost, MapError, NodeDown, NotFound
from ._words import Words

os.register_at_fork(after_in_child=_rackmem._forked)

__all__ = [
    "Array",
    "BulkArray",
    "Dict",
    "Differs",
    "Error",
    "Fenced",
    "Lock",
    "Locked",
    "Lost",
    "MapError",
    "NodeDown",
    "NotFound",
    "Object",
    "Objects",
    "Rack",
    "Regions",
    "Row",
    "Words",
    "attach",
    "command",
    "current",
    "join",
    "prefetch",
    "touch",
    "up",
]
