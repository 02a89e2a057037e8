"""pandas and scikit-learn on one array, on hosts that only a network connects."""

from __future__ import annotations

import pathlib
import sys

import pytest

from hosts import rack_on_hosts, why_not

#: Makes a table, wants it learned from, and looks at what came of it.
PANDAS = """
import time
import numpy as np, pandas as pd, rackmem

with rackmem.join("rack.toml", 1) as rack:
    table = rack.array("table", (4000, 4), "f8")
    turn = rack.words("turn", 1)
    frame = pd.DataFrame(table, columns=["x", "y", "z", "found"], copy=False)
    assert np.shares_memory(frame["x"].array, table), "pandas uses the memory of the rack"
    random = np.random.default_rng(1)
    table[:, :2] = random.normal(size=(4000, 2))
    table[:, 2] = 3 * frame["x"] - 2 * frame["y"] + 1
    turn.store(0, 1)
    while turn.load(0) != 2:
        time.sleep(0.01)
    error = (frame["found"] - frame["z"]).abs().max()
    assert error < 1e-9, error
    said = frame.groupby(frame["x"] > 0)["found"].mean()
    assert said[True] > said[False]
    print("pandas saw", len(frame), "rows, learned elsewhere")
    turn.store(0, 3)
    del frame, table
"""

#: Learns from the table, and writes what it predicts beside it.
LEARNS = """
import time
import numpy as np, rackmem
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LinearRegression

with rackmem.join("rack.toml", 2) as rack:
    turn = rack.words("turn", 1)
    while turn.load(0) != 1:
        time.sleep(0.01)
    table = rack.array("table")
    model = LinearRegression().fit(table[:, :2], table[:, 2])
    assert np.allclose(model.coef_, [3, -2]) and np.isclose(model.intercept_, 1)
    table[:, 3] = model.predict(table[:, :2])
    MiniBatchKMeans(4, random_state=0, n_init=1).fit(table[:, :2])
    turn.store(0, 2)
    while turn.load(0) != 3:
        time.sleep(0.01)
    print("scikit-learn found", model.coef_.round(6))
    del table
"""


def test_pandas_and_scikit_learn_share_an_array_across_hosts(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    if why := why_not():
        pytest.skip(why)
    with rack_on_hosts(3, tmp_path) as hosts:
        programs = [hosts.start(host, [sys.executable, "-c", text]) for host, text in ((1, PANDAS), (2, LEARNS))]
        said = [program.communicate(timeout=120) for program in programs]
        assert [program.returncode for program in programs] == [0, 0], said
        assert "4000 rows" in said[0][0] and "[ 3. -2.]" in said[1][0], said
