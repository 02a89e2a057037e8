"""Hosts that are network namespaces of this machine, on one bridge: for tests as root.

All of it is gone when the value is closed, and nothing of it is in the machine's own network.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = [sys.executable, "-m", "rackmem"]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=20)


def why_not() -> str | None:
    """What keeps this machine from having such hosts."""
    if shutil.which("ip") is None:
        return "`ip` of iproute2 is not there"
    name = f"rackmem-python-{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except subprocess.CalledProcessError as why:
        return f"no network namespaces: {why.stderr.strip()}"
    return None


class Hosts:
    """Host 0 has the switch and node 0; every other one is for the node with its number, which a program joins as."""

    def __init__(self, count: int, folder: pathlib.Path) -> None:
        self._spaces = [f"rackmem-python-{os.getpid()}-{host}" for host in range(count)]
        self._folder = folder
        self.programs: list[subprocess.Popen[str]] = []

    def address(self, host: int) -> str:
        return f"10.78.0.{host + 1}"

    def build(self) -> None:
        for space in self._spaces:
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
        first = self._spaces[0]
        _ip("-n", first, "link", "add", "middle", "type", "bridge", "forward_delay", "0")
        _ip("-n", first, "addr", "add", f"{self.address(0)}/24", "dev", "middle")
        _ip("-n", first, "link", "set", "middle", "up")
        for host, space in enumerate(self._spaces[1:], 1):
            _ip("-n", first, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("-n", first, "link", "set", f"port{host}", "master", "middle", "up")
            _ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")

    def write_files(self) -> None:
        """Each host has the rack's file and key in a folder of its own, as several machines have."""
        rack = (
            '[rack]\nname = "python"\ntransport = "udp"\nblock = "4 KiB"\ncache = "8 MiB"\nmemory = "32 MiB"\n'
            f'timeout = "2 s"\nkey = "rack.key"\nruntime = "run"\nname_nodes = 1\n\n[switch]\nlisten = "{self.address(0)}:7400"\n'
        )
        for host in range(len(self._spaces)):
            port = 7401 if host == 0 else 7400
            rack += f'\n[[node]]\nid = {host}\nlisten = "{self.address(host)}:{port}"\n'
        key = self._folder / "rack.key"
        subprocess.run([*COMMAND, "key", str(key)], check=True, capture_output=True, timeout=20)
        for host in range(len(self._spaces)):
            home = self.home(host)
            home.mkdir()
            (home / "rack.toml").write_text(rack)
            shutil.copy2(key, home / "rack.key")

    def home(self, host: int) -> pathlib.Path:
        return self._folder / str(host)

    def start(self, host: int, command: list[str]) -> subprocess.Popen[str]:
        """A process on a host."""
        inside = ["ip", "netns", "exec", self._spaces[host], *command]
        program = subprocess.Popen(
            inside, cwd=self.home(host), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.programs.append(program)
        return program

    def close(self) -> None:
        for program in self.programs:
            program.kill()
            program.communicate()
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, timeout=20)


@contextmanager
def rack_on_hosts(count: int, folder: pathlib.Path) -> Iterator[Hosts]:
    """Hosts, and the rack's switch and node 0 on the first of them."""
    hosts = Hosts(count, folder)
    try:
        hosts.build()
        hosts.write_files()
        hosts.start(0, [*COMMAND, "switch"])
        hosts.start(0, [*COMMAND, "node", "--id", "0"])
        yield hosts
    finally:
        hosts.close()
