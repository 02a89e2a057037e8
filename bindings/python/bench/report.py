"""What was measured: pairs of times of one run, their ratios, and the table of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

#: Seconds that each side takes in a row, about, and how often in a round: a machine that others use is fast and slow by turns.
TURN = 0.01
TURNS = 5

#: Seconds of one operation in the same round, here and elsewhere.
Pairs = list[tuple[float, float]]


def installed(package: str) -> Any:
    """A package that may not be there: then None."""
    try:
        return importlib.import_module(package)
    except ImportError:
        return None


@dataclass
class Mark:
    """One line of the table: seconds of one operation, here and elsewhere."""

    what: str
    ours: float
    against: str
    theirs: float | None
    ratio: float | None
    target: str
    met: bool


@dataclass
class Report:
    marks: list[Mark] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def bounded(self, what: str, against: str, pairs: Pairs, most: float) -> None:
        """A cost that may be so many times theirs."""
        ratio = median(ours / theirs for ours, theirs in pairs)
        ours, theirs = (median(side) for side in zip(*pairs))
        self.marks.append(Mark(what, ours, against, theirs, ratio, f"at most {most}x", ratio <= most))

    def faster(self, what: str, against: str, pairs: Pairs, least: int | None) -> None:
        """Something that is to be so many times as fast, if that was promised."""
        ratio = median(theirs / ours for ours, theirs in pairs)
        ours, theirs = (median(side) for side in zip(*pairs))
        target = "-" if least is None else f"at least {least}x"
        self.marks.append(Mark(what, ours, against, theirs, ratio, target, least is None or ratio >= least))


def seconds(run: Callable[[], object], times: int) -> float:
    """Of one call."""
    began = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - began) / times


def alternate(rounds: int, ours: Callable[[], object], theirs: Callable[[], object]) -> Pairs:
    """Times both, in turns. Each runs as often in a turn as fits into it."""
    # Their first calls are not like the others.
    fits = [max(1, round(TURN / min(seconds(side, 1) for _ in range(3)))) for side in (ours, theirs)]
    return [(seconds(ours, fits[0]), seconds(theirs, fits[1])) for _ in range(rounds * TURNS)]


def shown(value: float | None) -> str:
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.2f} {unit}"
    return f"{value * 1e9:.0f} ns"


def table(report: Report) -> str:
    lines = [("operation", "rackmem", "against", "takes", "ratio", "target", "")]
    for mark in report.marks:
        ratio = "-" if mark.ratio is None else f"{mark.ratio:.2f}x"
        met = "met" if mark.met else "missed"
        lines.append((mark.what, shown(mark.ours), mark.against, shown(mark.theirs), ratio, mark.target, met))
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)
