"""The examples, as whoever reads them would run them, with small sizes."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


CASES = [
    ("kmeans", "--points 20000 --steps 5", "20000 points, 16 centres, 5 steps on 4 processes: the same centres"),
    ("sgd", "--samples 5000 --parameters 32 --steps 1000", "4 processes, 1000 steps each: the loss fell from"),
    ("accounts", "--accounts 20 --transfers 500", "between 20 accounts: the total is still 20000"),
    ("blocks", "--blocks 4 --lookups 2000", "every block was of the generation that was pinned"),
]


@pytest.mark.parametrize(("example", "arguments", "says"), CASES)
def test_examples_check_their_own_results(example: str, arguments: str, says: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{example}.py"), *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    assert says in done.stdout, done


def test_every_example_is_tested() -> None:
    tested = {case[0] for case in CASES}
    assert tested == {path.stem for path in EXAMPLES.glob("*.py")} - {"workers"}
