"""One rack for all tests of a run: 2 nodes of the command's, and 3 that tests join."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rackmem


@pytest.fixture(scope="session")
def rack() -> Iterator[rackmem.Rack]:
    with rackmem.up(nodes=5, seats=3, memory="64MiB", cache="16MiB") as rack:
        yield rack


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return str(request.node.name)
