from __future__ import annotations

import gc
import multiprocessing
import pathlib
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest

import rackmem

SPAWN = multiprocessing.get_context("spawn")


def _add(file: str, name: str, rows: slice) -> None:
    with rackmem.join(file) as rack:
        rack.array(name)[rows] += 2


def _sum(array: rackmem.Array) -> float:
    return float(array.sum())


def _count(file: str, name: str, times: int) -> None:
    with rackmem.join(file) as rack:
        hits = rack.words(name)
        for _ in range(times):
            hits.fetch_add(0, 1)


def test_what_one_process_writes_others_read_and_write(rack: rackmem.Rack, name: str) -> None:
    a = rack.array(name, (300, 40), "f4")
    assert a.shape == (300, 40) and a.dtype == np.float32 and not a.any()
    a[:] = 1
    workers = [
        SPAWN.Process(target=_add, args=(rack.file, name, slice(at, at + 150))) for at in (0, 150)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert (a == 3).all()


def test_arrays_pickle_as_their_names_and_open_in_workers(rack: rackmem.Rack, name: str) -> None:
    a = rack.array(name, (50, 8))
    a[10:20, 3] = 5
    part = a[10:20, 3]
    with SPAWN.Pool(1) as pool:
        assert pool.apply(_sum, (part,)) == 50
    again = pickle.loads(pickle.dumps(part))
    again[0] = 7
    assert a[10, 3] == 7 and np.shares_memory(again, a)
    computed = pickle.loads(pickle.dumps(a + 1))
    assert type(computed) is np.ndarray and computed.shape == (50, 8)


def test_slices_are_of_the_rack_and_results_are_not(rack: rackmem.Rack, name: str) -> None:
    a = rack.array(name, 100, "i8")
    assert isinstance(a[5:], rackmem.Array) and a[5:].rack_name == name
    assert type(a + 1) is np.ndarray
    b = a
    a += 1
    assert a is b and a.sum() == 100
    a[5:].touch(write=True)
    a.prefetch()
    rackmem.touch(np.asarray(a))
    with pytest.raises(ValueError, match="not in the memory of a rack"):
        rackmem.touch(np.zeros(3))


def test_an_array_that_is_there_is_opened_as_it_is_or_not_at_all(rack: rackmem.Rack, name: str) -> None:
    del_me = rack.array(name, (4, 5), "u2")
    del del_me
    gc.collect()
    a = rack.array(name)
    assert a.shape == (4, 5) and a.dtype == np.uint16
    with pytest.raises(rackmem.Differs, match="4x5"):
        rack.array(name, (5, 4), "u2")
    with pytest.raises(rackmem.Differs, match="uint16"):
        rack.array(name, dtype="f8")
    with pytest.raises(rackmem.NotFound):
        rack.array("nothing has this name")
    rack.words("some words", 3)
    with pytest.raises(rackmem.Differs, match="no array"):
        rack.array("some words")


@pytest.mark.parametrize(
    ("shape", "dtype", "raised", "says"),
    [
        (3, object, TypeError, "Python objects"),
        ((3, -1), "f8", ValueError, "positive"),
        (0, "f8", ValueError, "no bytes"),
        (1 << 40, "f8", (ValueError, MemoryError), "bytes"),
        (2.5, "f8", TypeError, "float"),
    ],
)
def test_what_cannot_be_an_array_is_refused(
    rack: rackmem.Rack, name: str, shape: object, dtype: object, raised: type[Exception], says: str
) -> None:
    with pytest.raises(raised, match=says):
        rack.array(name, shape, dtype)  # type: ignore[arg-type]


def test_records_are_elements(rack: rackmem.Rack, name: str) -> None:
    kind = np.dtype([("at", "f8", (3,)), ("owner", "S12"), ("count", "u4")])
    a = rack.array(name, 20, kind)
    a[3] = ((1, 2, 3), b"ann", 9)
    assert rack.array(name, dtype=kind)["count"].sum() == 9
    with pytest.raises(TypeError, match="say their dtype"):
        rack.array(name)


def test_a_second_mapping_of_an_array_is_that_memory(rack: rackmem.Rack, name: str) -> None:
    a, b = rack.array(name, 10), rack.array(name, 10)
    a[0] = 4
    assert b[0] == 4 and np.shares_memory(a, b)


KEPT = """
import gc, rackmem
rack = rackmem.up(nodes=2)
a = rack.array("kept", 10)
try:
    rack.leave()
except rackmem.Error as why:
    assert "kept" in str(why)
    print("named", flush=True)
with rack:
    words = rack.words("hits", 1)
# The node is there for the array, and for nothing else.
a[:] = 2
assert a.sum() == 20
try:
    words.load(0)
except rackmem.Error as why:
    assert "was left" in str(why)
assert "left" in repr(rack)
del a
gc.collect()
rack.leave()
print("left", flush=True)
"""


def test_arrays_keep_the_rack_and_leave_names_them() -> None:
    # Two racks of one process do not map memory at the same addresses.
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, timeout=60)
    assert done.stdout == "named\nleft\n", done


LOST = """
import os, rackmem, signal, sys, time
rack = rackmem.up(nodes=2)
a = rack.array("gone", 4096)
# Whoever keeps its memory dies with it.
children = [line.split() for line in os.popen("ps -eww -o pid,args").read().splitlines()]
node = [int(pid) for pid, *args in children if "node" in args and rack.file in args]
assert len(node) == 1, children
os.kill(node[0], signal.SIGKILL)
while True:
    try:
        a.touch()
    except (rackmem.Lost, rackmem.NodeDown) as why:
        print("raised", why, flush=True)
        break
    time.sleep(0.05)
print(a.sum(), flush=True)
"""


def test_a_lost_array_raises_when_touched_and_ends_the_process_when_accessed() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGABRT, done
    assert done.stdout.startswith("raised") and done.stdout.count("\n") == 1, done
    assert "cannot be read" in done.stderr and "Mapping::touch" in done.stderr, done


def test_bulk_arrays_load_and_store(rack: rackmem.Rack, name: str) -> None:
    a = rack.bulk_array(name, (10, 3), "i4")
    a.store(slice(2, 4), [[1, 2, 3], [4, 5, 6]])
    a.store(-1, 9)
    assert a.load(3).tolist() == [4, 5, 6] and a.load().sum() == 21 + 27
    assert a.load(slice(2, 3)).shape == (1, 3)
    with pytest.raises(IndexError):
        a.load(10)
    with pytest.raises(IndexError, match="step"):
        a.load(slice(0, 10, 2))
    with pytest.raises(TypeError, match="load"):
        a[0]
    assert rack.array(name)[9].tolist() == [9, 9, 9]


def test_an_attached_process_is_told_that_it_cannot_map(rack: rackmem.Rack, name: str) -> None:
    assert rack.file is not None
    rack.array(name, 10)[:] = 3
    with rackmem.attach(rack.file) as attached:
        assert not attached.joined and "attached to node 0" in repr(attached)
        with pytest.raises(rackmem.MapError, match="bulk_array"):
            attached.array(name)
        a = attached.bulk_array(name)
        assert a.load().sum() == 30
        a.store(0, 1)
    assert rack.array(name)[0] == 1


def test_counters_of_processes_are_all_counted(rack: rackmem.Rack, name: str) -> None:
    hits = rack.words(name, 2)
    workers = [SPAWN.Process(target=_count, args=(rack.file, name, 5000)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for _ in range(5000):
        hits.fetch_add(0, 1)
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert hits[0] == 15000


def test_pinned_pages_are_read_into_and_stay(rack: rackmem.Rack, name: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "numbers"
    np.arange(5000).tofile(file)
    a = rack.array(name, 5000, "i8")
    with a.pin(write=True), file.open("rb") as opened:
        assert opened.readinto(a.data) == 40000
    assert a.sum() == 5000 * 4999 // 2
    with pytest.raises(rackmem.Error, match="pinned"), rack.array(name + " large", 1_500_000).pin():
        pass
