"""Every program of docs/python.md runs."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_page_run(number: int, tmp_path: pathlib.Path) -> None:
    # In a file: spawned workers read it again.
    file = tmp_path / "program.py"
    file.write_text(PROGRAMS[number])
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_page_has_programs() -> None:
    assert len(PROGRAMS) >= 3
