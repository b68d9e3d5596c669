"""Machines of one network: a namespace each, joined by a switch that delays, loses and holds back whole IP packets.

The kernel's own ``netem`` is not everywhere. Here each namespace has a TUN device, and a thread passes packets between
them, so TCP sends again, backs off and times out as over a real line. It takes root, iproute2 and ``/dev/net/tun``.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import selectors
import shutil
import struct
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

_CLONE_NEWNET, _TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x40000000, 0x400454CA, 0x1, 0x1000
_PACKET_BYTES = 1 << 16
PLACES = Path("/run/netns")


def find_missing() -> str:
    """Return what is missing to make namespaces here; empty if nothing is."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("ip") is None:
        return "needs iproute2"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "needs /dev/net/tun"
    name = f"cloister-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


def enter(namespace: str) -> None:
    """Let this thread be in a namespace from here on."""
    handle = os.open(PLACES / namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(handle)


class Network:
    """Namespaces by name, and the switch between them; a context manager.

    Parameters
    ----------
    names
        Of the machines.
    delay_s
        Of a packet, one way; each is delayed by up to a tenth more, so some overtake others.
    loss
        The share of packets that are lost.
    seed
        Chooses which.

    Attributes
    ----------
    cut
        Who is cut off from all others; may change at any time.
    passed
        How many packets have passed.
    """

    def __init__(self, names, *, delay_s=0.0, loss=0.0, seed=0):
        self.names, self.delay_s, self.loss = tuple(names), delay_s, loss
        self.cut: set[str] = set()
        self.passed = self.lost = 0
        self._rng, self._is_over = Random(seed), False
        self._devices: dict[bytes, int] = {}
        self._places = {name: f"cloister-{os.getpid()}-{number}" for number, name in enumerate(self.names, start=1)}

    def __enter__(self):
        try:
            for number, name in enumerate(self.names, start=1):
                self._ip("netns", "add", self._places[name])
                device = self._open_device(self._places[name])
                self._devices[bytes((10, 77, 0, number))] = device
                for words in (("addr", "add", f"{self.find_address(name)}/24", "dev", "cloister"),
                              ("link", "set", "cloister", "up"), ("link", "set", "lo", "up")):  # fmt: skip
                    self._ip("-n", self._places[name], *words)
            self._owners = dict(zip(self._devices, self.names, strict=True))
            self._thread = threading.Thread(target=self._switch, name="switch")
            self._thread.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *error):
        self._is_over = True
        self._thread.join()
        self._remove()

    def find_address(self, name: str) -> str:
        """Return the address of a machine."""
        return f"10.77.0.{1 + self.names.index(name)}"

    def find_place(self, name: str) -> str:
        """Return the name of a machine's namespace."""
        return self._places[name]

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def _remove(self) -> None:
        for device in self._devices.values():
            os.close(device)
        for place in self._places.values():
            subprocess.run(["ip", "netns", "del", place], check=False, capture_output=True)

    def _open_device(self, place: str) -> int:
        """Open a new device in a namespace; a thread of its own goes there, and ends."""
        opened = []

        def open_there() -> None:
            enter(place)
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"cloister", _IFF_TUN | _IFF_NO_PI))
            opened.append(device)

        thread = threading.Thread(target=open_there)
        thread.start()
        thread.join()
        return opened[0]

    # --- the switch ---------------------------------------------------------------------------------------------------

    def _switch(self) -> None:
        due: list[tuple[float, int, bytes, bytes]] = []
        with selectors.DefaultSelector() as ready:
            for address, device in self._devices.items():
                ready.register(device, selectors.EVENT_READ, address)
            while not self._is_over:
                wait_s = min(0.05, max(0.0, due[0][0] - time.monotonic())) if due else 0.05
                for key, _ in ready.select(wait_s):
                    self._take(key.fd, key.data, due)
                while due and due[0][0] <= time.monotonic():
                    _, _, address, packet = heapq.heappop(due)
                    with suppress(OSError):
                        os.write(self._devices[address], packet)

    def _take(self, device: int, sender: bytes, due: list) -> None:
        """Take all packets that wait, and put each aside until it is due, or lose it."""
        with suppress(BlockingIOError):
            while True:
                packet = os.read(device, _PACKET_BYTES)
                receiver = packet[16:20]
                if packet[0] >> 4 != 4 or receiver not in self._devices:
                    continue
                if self.cut & {self._owners[sender], self._owners[receiver]} or self._rng.random() < self.loss:
                    self.lost += 1
                    continue
                self.passed += 1
                due_s = time.monotonic() + self.delay_s * (1 + self._rng.random() / 10)
                heapq.heappush(due, (due_s, self.passed, receiver, packet))
