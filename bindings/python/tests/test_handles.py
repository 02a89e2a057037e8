from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import rackmem

SPAWN = multiprocessing.get_context("spawn")
FIELDS = [("used", "u8"), ("limit", "u8")]


def _use(quota: rackmem.Locked, times: int) -> None:
    for _ in range(times):
        with quota.write() as row:
            row["used"] += 1


def _put(users: rackmem.Dict, key: str) -> str:
    users[key] = key.upper()
    return repr(users)


def test_data_come_with_their_lock_to_every_process(rack: rackmem.Rack, name: str) -> None:
    quota = rack.locked(name, FIELDS, (1, 1000))
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        done = [pool.submit(_use, quota, 200) for _ in range(2)]
        _use(quota, 200)
        for each in done:
            each.result(60)
    with quota.read() as row:
        assert row["used"] == 601 and row["limit"] == 1000


def test_a_writer_that_raises_has_changed_nothing_and_rows_end_with_their_lock(rack: rackmem.Rack, name: str) -> None:
    quota = rack.locked(name, FIELDS)
    with pytest.raises(RuntimeError), quota.write() as row:
        row["used"] = 5
        raise RuntimeError
    with quota.read() as seen:
        assert seen["used"] == 0
        with pytest.raises(ValueError, match="read-only"):
            seen["used"] = 1
    with pytest.raises(ValueError, match="read-only"):
        row["used"] = 1
    with pytest.raises(rackmem.Differs):
        rack.locked(name, [("used", "u4")])


def _append(regions: rackmem.Regions, times: int) -> None:
    for _ in range(times):
        with regions.write() as all:
            all[0][:1] = bytes([all[0][0] + 1])
            all.append(bytearray(all[0][:1]))
            all[1].extend(b"x")


def test_regions_come_go_and_grow_in_every_process(rack: rackmem.Rack, name: str) -> None:
    regions = rack.regions(name, room=4096)
    with regions.write() as all:
        assert all == []
        all.extend([bytearray(8), bytearray()])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        done = pool.submit(_append, regions, 20)
        _append(regions, 20)
        done.result(60)
    with regions.read() as seen:
        assert seen[0][0] == 40 and seen[1] == b"x" * 40
        assert [region[0] for region in seen[2:]] == list(range(1, 41))
    with pytest.raises(RuntimeError), regions.write() as all:
        all.clear()
        raise RuntimeError
    for wrong, says in (([bytearray(5000)], "room for 4096"), ([bytearray(1)] * 65, "at most 64")):
        with pytest.raises(ValueError, match=says), regions.write() as all:
            all[:] = wrong
    with regions.read() as seen:
        assert len(seen) == 42
        with pytest.raises(TimeoutError, match=name):
            _in_another_thread(lambda: rack.regions(name).write(timeout=0.1).__enter__())
    with pytest.raises(rackmem.Differs):
        rack.locked(name, FIELDS)
    assert rack.regions(name).room == 4096


def _in_another_thread(call: Callable[[], object]) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(call).result(30)


def test_locks_exclude_time_out_and_number_those_who_are_inside(rack: rackmem.Rack, name: str) -> None:
    lock = rack.lock(name)
    with lock:
        first = lock.fence
        with pytest.raises(rackmem.Error, match="inside"):
            lock.acquire()
        raised: list[BaseException] = []

        def other() -> None:
            try:
                rack.lock(name).acquire(timeout=0.1)
            except TimeoutError as why:
                raised.append(why)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        assert name in str(raised[0])
    with lock:
        assert lock.fence > first
    with pytest.raises(rackmem.Error, match="not inside"):
        lock.release()
    with pytest.raises(ValueError):
        lock.acquire(timeout=-1)


WAITS = """
import rackmem, signal, threading
# Whoever started the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rack = rackmem.up(nodes=2)
lock = rack.lock("held")
threading.Thread(target=lambda: (lock.acquire(), threading.Event().wait()), daemon=True).start()
while True:
    try:
        rack.lock("held").acquire(timeout=0.01)
        rack.lock("held")
    except TimeoutError:
        break
print("waits", flush=True)
try:
    rack.lock("held").acquire()
except KeyboardInterrupt:
    print("interrupted", flush=True)
import os
os._exit(0)
"""


def test_ctrl_c_ends_a_wait() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        late = threading.Timer(60, process.kill)
        late.start()
        assert process.stdout.readline() == "waits\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        late.cancel()


def test_other_threads_run_while_one_waits(rack: rackmem.Rack, name: str) -> None:
    lock = rack.lock(name)
    lock.acquire()
    waiting = threading.Thread(target=lambda: rack.lock(name).acquire())
    waiting.start()
    assert sum(range(100_000)) > 0
    lock.release()
    waiting.join(20)
    assert not waiting.is_alive()


@pytest.mark.parametrize("value_bytes", [None, 64])
def test_dictionaries_keep_bytes_text_and_numbers(rack: rackmem.Rack, name: str, value_bytes: int | None) -> None:
    users = rack.dict(name, value_bytes=value_bytes)
    pairs: list[tuple[bytes | str | int, bytes | str | int]] = [
        ("ann", b"\x00\xff"),
        (b"ann", "ünï"),
        (7, -(2**200)),
        (-1, 0),
        ("", ""),
    ]
    for key, value in pairs:
        users[key] = value
        assert users[key] == value and type(users[key]) is type(value)
    assert "ann" in users and "bob" not in users and users.get("bob") is None
    with pytest.raises(KeyError, match="bob"):
        users["bob"]
    del users["ann"]
    with pytest.raises(KeyError):
        del users["ann"]
    assert users.insert("new", 1) and not users.insert("new", 2)
    assert users.setdefault("new", 3) == 1 and users.setdefault("newer", 3) == 3
    assert users.replace("new", 1, 5) and not users.replace("new", 1, 6) and not users.replace("gone", 1, 2)
    assert users.update_with("new", lambda value: value + 1) == 6 and users["new"] == 6
    for wrong in ([1], 1.5, None):
        with pytest.raises(TypeError, match="pickle=True"):
            users["x"] = wrong
    with pytest.raises(ValueError):
        users["k" * 5000] = 1


def test_dictionaries_in_place_are_opened_as_they_are_and_refuse_what_does_not_fit(
    rack: rackmem.Rack, name: str
) -> None:
    users = rack.dict(name, value_bytes=10, key_bytes=4, expected_keys=20)
    users["four"] = "ten bytes."
    long: list[tuple[str | int, str | int]] = [("four!", ""), ("four", "eleven byte"), ("ünï", "ten bytes!"), (2**33, 1)]
    for key, value in long:
        with pytest.raises(ValueError, match="too long"):
            users[key] = value
    with pytest.raises(KeyError):
        users["one"]
    # Opened without sizes it is what it is.
    assert rack.dict(name)["four"] == rack.dict(name, create=False)["four"] == "ten bytes."
    with pytest.raises(rackmem.Differs, match="up to 4 bytes and values of up to 10"):
        rack.dict(name, value_bytes=11, key_bytes=4)
    with pytest.raises(ValueError, match="copies"):
        rack.dict(name + "c", value_bytes=10, copies=True)
    with pytest.raises(ValueError, match="sizes"):
        rack.dict(name + "b", value_bytes=1 << 20)
    rack.dict(name + "k")[1] = 2
    with pytest.raises(rackmem.Differs):
        rack.dict(name + "k", value_bytes=10)
    with pytest.raises(MemoryError, match="more keys"):
        for number in range(1000):
            users[number] = number
    there = len(users)
    del users["four"]
    users["five"] = 5
    assert len(users) == there and users["five"] == 5
    rack.remove(name)
    with pytest.raises(rackmem.Lost):
        users["five"]
    again = rack.dict(name, value_bytes=11)
    assert len(again) == 0


def _put_for_ever(file: str, node: int, name: str) -> None:
    with rackmem.join(file, node) as rack:
        values, done = rack.dict(name), rack.words(name + " done")
        number = 0
        while True:
            number += 1
            key = number % len(done)
            last = done[key] + 1
            values[key] = last.to_bytes(8, "little") * 64
            done[key] = last


def test_a_worker_that_is_killed_in_the_middle_of_a_put_leaves_what_was_or_what_will_be(name: str) -> None:
    with rackmem.up(nodes=3, seats=2, memory="64MiB") as rack:
        values = rack.dict(name, value_bytes=512, expected_keys=8)
        done = rack.words(name + " done", 8)
        for key in range(8):
            values[key] = bytes(512)
        for turn in range(8):
            before = done[0]
            worker = SPAWN.Process(target=_put_for_ever, args=(rack.file, 1, name))
            worker.start()
            while done[0] < before + 100:
                time.sleep(0.001)
            time.sleep(turn * 0.0007)
            worker.kill()
            worker.join(30)
            for key in range(8):
                value, last = values[key], done[key]
                # What was put is there; of what was being put, all or nothing.
                assert value == value[:8] * 64 and int.from_bytes(value[:8], "little") in (last, last + 1)
                values[key] = last.to_bytes(8, "little") * 64


OUTLIVED = """
import os, rackmem, signal
with rackmem.up(nodes=4, copies=2, memory="32MiB", cache="8MiB") as rack:
    users = rack.dict("users", copies=True)
    for number in range(300):
        users[number] = "a" * number
    total = rack.locked("total", "u8", 7, copies=True)
    jobs = rack.regions("jobs", 1000, copies=True)
    last = rack.lock("last", copies=True)
    with total.write() as row, jobs.write() as list_, last:
        row[()] = 8
        list_.append(bytearray(b"job"))
    table = rack.bulk_array("table", (100, 3), "i4", copies=True)
    table.store(slice(10, 12), [[1, 2, 3], [4, 5, 6]])
    try:
        mapped = rack.array("mapped", 100, "u4", copies=True)
        mapped[:] = range(100)
    except rackmem.MapError as why:
        mapped = range(100)
        assert "mapped" in str(why), why
    rack.sync()
    children = [line.split() for line in os.popen("ps -eww -o pid,args").read().splitlines()]
    nodes = sorted(int(pid) for pid, *args in children if "node" in args and rack.file in args)
    assert len(nodes) == 3, children
    os.kill(nodes[0], signal.SIGKILL)
    same = rack.dict("users", create=False)
    assert [same[number] for number in range(300)] == ["a" * number for number in range(300)]
    with rack.locked("total", "u8", create=False).write() as row, rack.regions("jobs").read() as list_, rack.lock("last"):
        assert (row[()], list_, last.writer_that_died) == (8, [b"job"], None)
        row[()] = 9
    with total.read() as row:
        assert row[()] == 9
    assert rack.bulk_array("table").load(11).tolist() == [4, 5, 6]
    assert list(mapped) == list(range(100))
    same[7] = "changed"
    assert users[7] == "changed" and 8 in users
    print("there", flush=True)
"""


def test_dictionaries_locks_and_arrays_with_copies_outlive_a_node_and_are_found_by_name() -> None:
    done = subprocess.run([sys.executable, "-c", OUTLIVED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "there\n", done


def test_copies_are_refused_where_a_rack_keeps_none(rack: rackmem.Rack, name: str) -> None:
    with pytest.raises(rackmem.Error, match="copies = 2"):
        rack.dict(name, copies=True)
    with pytest.raises(rackmem.Error, match="copies = 2"):
        rack.locked(name, "u8", copies=True)
    rack.dict(name)[1] = 2
    rack.sync()


def test_numbers_of_any_size_are_keys_and_values(rack: rackmem.Rack, name: str) -> None:
    numbers = rack.dict(name)
    edges = {sign * (1 << bits) + more for bits in (0, 7, 8, 15, 31, 55, 56, 62, 63, 64, 200) for sign in (1, -1) for more in (-1, 0, 1)}
    for edge in edges:
        numbers[edge] = edge
    for edge in edges:
        assert numbers[edge] == edge and edge in numbers and str(edge) not in numbers
    for wrong in (True, 1.5, None, ()):
        with pytest.raises(TypeError, match="neither bytes, str nor int"):
            numbers[wrong]  # type: ignore[index]


def test_pickles_are_read_only_by_whoever_asks_for_them(rack: rackmem.Rack, name: str) -> None:
    rack.dict(name, pickle=True)["x"] = {"a": [1, 2.5]}
    assert rack.dict(name, pickle=True)["x"] == {"a": [1, 2.5]}
    with pytest.raises(TypeError, match="pickle=True"):
        rack.dict(name)["x"]


def test_changes_of_one_key_by_processes_are_all_counted(rack: rackmem.Rack, name: str) -> None:
    users = rack.dict(name)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        assert name in pool.submit(_put, users, "zoe").result(60)
    assert users["zoe"] == "ZOE"
    users["count"] = 0

    def add() -> None:
        for _ in range(500):
            users.update_with("count", lambda count: count + 1)

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert users["count"] == 1500


def test_objects_have_versions(rack: rackmem.Rack, name: str) -> None:
    slots = rack.objects(name, slots=10, size=64)
    version = slots.write(7, b"one")
    assert slots.read(7) == (version, b"one".ljust(64, b"\0"))
    later = slots.write_if(7, version, b"two")
    assert later is not None and later != version and slots.write_if(7, version, b"three") is None
    slots[8] = bytes(range(64))
    assert slots[8] == bytes(range(64)) and len(slots) == 10 and slots.size == 64
    with pytest.raises(IndexError):
        slots.read(10)
    with pytest.raises(IndexError, match="-1 is no position here: they count from 0"):
        slots.read(-1)
    with pytest.raises((ValueError, rackmem.Error)):
        slots.write(0, bytes(65))
    assert len(rack.objects(name)) == 10


def test_words_wrap_around_and_refuse_what_is_no_word(rack: rackmem.Rack, name: str) -> None:
    words = rack.words(name, 4)
    assert words.fetch_add(1, -1) == 0 and words[1] == 2**64 - 1
    assert words.compare_exchange(2, 0, 5) == 0 and words.compare_exchange(2, 0, 6) == 5
    assert words.swap(2, 9) == 5 and words.fetch_or(2, 6) == 9 and words.fetch_and(2, 3) == 15
    assert list(words) == [0, 2**64 - 1, 3, 0] and len(words) == 4
    for wrong in (-1, 2**64):
        with pytest.raises(OverflowError):
            words[0] = wrong
    for index in (4, 10**9, -1, 2**70):
        with pytest.raises(IndexError):
            words.load(index)
    with pytest.raises(TypeError):
        words.load("1")  # type: ignore[arg-type]


def test_names_are_listed_looked_at_and_removed(rack: rackmem.Rack, name: str) -> None:
    rack.words(name + " a", 1)
    users = rack.dict(name + " b")
    users["x"] = 1
    assert rack.names(name) == [name + " a", name + " b"]
    assert rack.info(name + " a")["kind"] == "word" and rack.info(name + " b")["maker"] == rack.node
    rack.remove(name + " a")
    rack.remove(name + " b")
    assert rack.names(name) == []
    with pytest.raises(rackmem.NotFound):
        rack.remove(name + " a")
    with pytest.raises(rackmem.NotFound):
        rack.words(name + " a")
    with pytest.raises(ValueError):
        rack.words("", 1)


def test_handles_pickle_as_names(rack: rackmem.Rack, name: str) -> None:
    for handle in [
        rack.words(name + "w", 2),
        rack.dict(name + "d"),
        rack.dict(name + "i", value_bytes=10),
        rack.lock(name + "l"),
        rack.locked(name + "q", FIELDS),
        rack.regions(name + "r", 100),
        rack.objects(name + "o", 2, 8),
    ]:
        again = pickle.loads(pickle.dumps(handle))
        assert type(again) is type(handle) and repr(again) == repr(handle)


FORKED = """
import os, rackmem
rack = rackmem.up(nodes=2)
hits = rack.words("hits", 1)
pid = os.fork()
if pid == 0:
    try:
        hits.load(0)
    except rackmem.Error as why:
        print(why, flush=True)
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print(hits.load(0))
"""


def test_a_forked_child_is_refused_and_its_parent_goes_on() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said, count = done.stdout.strip().split("\n")
    assert "spawn" in said and count == "0"


def test_racks_that_are_not_there_and_wrong_sizes_say_what_to_do(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(rackmem.Error, match="rack.toml"):
        rackmem.join(os.path.join(tmp_path, "rack.toml"), 0)
    with pytest.raises(rackmem.Error, match="nodes"):
        rackmem.up(nodes=1)
    with pytest.raises(rackmem.Error, match="nodes"):
        rackmem.up(nodes=4, seats=4)
    with pytest.raises(ValueError, match="64MiB"):
        rackmem.up(nodes=2, memory="a lot")
    with pytest.raises(rackmem.Error, match="memory"):
        rackmem.up(nodes=2, memory=1)


def test_the_command_comes_with_the_package() -> None:
    done = subprocess.run([sys.executable, "-m", "rackmem", "up", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "--seats" in done.stdout


def test_numpy_scalars_are_numbers(rack: rackmem.Rack, name: str) -> None:
    words = rack.words(name, 2)
    words.fetch_add(0, int(np.int64(3)))
    assert words[np.int64(0).item()] == 3


@pytest.mark.parametrize("value_bytes", [None, 5000])
def test_keys_are_listed_while_others_change(rack: rackmem.Rack, name: str, value_bytes: int | None) -> None:
    users = rack.dict(name, expected_keys=100 if value_bytes is None else 2000, value_bytes=value_bytes)
    assert not users and len(users) == 0 and list(users) == []
    # More than its index was made for, if it grows, and values that do not fit where the first ones were.
    for number in range(2000):
        users[number] = number
    stop = threading.Event()

    def change() -> None:
        length = 1
        while not stop.is_set():
            for number in range(0, 2000, 7):
                users[number] = "x" * length
            length = length * 2 % 5000 + 1

    changing = threading.Thread(target=change)
    changing.start()
    for _ in range(5):
        assert sorted(users) == list(range(2000))
    stop.set()
    changing.join(60)
    for number in range(0, 2000, 2):
        del users[number]
    assert users and len(users) == 1000 and {key for key, _ in users.items()} == set(range(1, 2000, 2))
