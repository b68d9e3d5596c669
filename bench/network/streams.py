"""Throughput: frames as a session sends them beside bare chunks, over the same library, in two processes both times.

Both ways use the same connection, certificates and chunks of 1 MiB, and the receiver has read all before it says so.
Frames also pass the state machine, are cut into chunks, and are put together again in memory of their own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cloister.credentials import OwnKeys, make_keys
from cloister.runtime.remote import messages
from cloister.runtime.remote.channel import Channel
from cloister.runtime.remote.chunks import CHUNK_BYTES
from cloister.runtime.remote.connection import State
from cloister.runtime.remote.grpc_client import connect
from cloister.runtime.remote.grpc_server import GrpcServer
from cloister.runtime.remote.tls import TlsFiles

FRAME_BYTES = 2**25
SHARE_MARK = 0.6
_FRAMES, _PAIRS = 12, 9


def throughput() -> list[str]:
    """Frames of 32 MiB one way, as a session's, beside bare chunks of 1 MiB."""
    total, shares, cpu = _FRAMES * FRAME_BYTES, [], []
    for _ in range(_PAIRS):
        (bare_s, bare_cpu_s), (frames_s, frames_cpu_s) = (_transfer(total, in_frames=way) for way in (False, True))
        shares.append(bare_s / frames_s)
        cpu.append(bare_cpu_s / frames_cpu_s)
        print(
            f"bare stream {total / bare_s / 1e6:.0f} MB/s, frames {total / frames_s / 1e6:.0f} MB/s: "
            f"{100 * shares[-1]:.0f} %; CPU {bare_cpu_s:.2f} and {frames_cpu_s:.2f} s: {100 * cpu[-1]:.0f} %",
            flush=True,
        )
    median, low, high = statistics.median(shares), min(shares), max(shares)
    print(
        f"median {100 * median:.0f} % ({100 * low:.0f} to {100 * high:.0f}; mark: {100 * SHARE_MARK:.0f} %); "
        f"of CPU time, which says more on a busy machine, {100 * statistics.median(cpu):.0f} %"
    )
    return [] if median >= SHARE_MARK else ["throughput"]


def _transfer(total: int, *, in_frames: bool) -> tuple[float, float]:
    """Return the seconds until another process has read so many bytes, and the CPU seconds of both processes."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        keys = {name: make_keys(name, Path(folder)) for name in ("server", "client")}
        ours, theirs = context.Pipe()
        files = _read_files(keys, "server", "client")
        process = context.Process(target=_serve, args=(theirs, files, total, in_frames), daemon=True)
        process.start()
        files = _read_files(keys, "client", "server")
        spent_s, sender_s = asyncio.run(_send(ours.recv(), files, total, in_frames=in_frames))
        receiver_s: float = ours.recv()
        process.join()
    return spent_s, sender_s + receiver_s


def _read_files(keys: dict[str, OwnKeys], name: str, other: str) -> TlsFiles:
    return TlsFiles(
        key_pem=keys[name].tls_key_pem,
        certificates_pem=keys[name].public.certificates_pem,
        trusted_pem=keys[other].public.certificates_pem,
    )


def _serve(pipe: Connection, files: TlsFiles, total: int, in_frames: bool) -> None:
    asyncio.run(_receive(pipe, files, total, in_frames=in_frames))


async def _receive(pipe: Connection, files: TlsFiles, total: int, *, in_frames: bool) -> None:
    """Read so many bytes twice: the first time to warm up."""
    is_over, cpu_s = asyncio.Event(), 0.0

    async def serve(stream: Any) -> None:
        nonlocal cpu_s
        for warm in (True, False):
            cpu_s = time.process_time()
            channel, got = _open_session(stream, is_coordinator=True), 0
            while got < (FRAME_BYTES if warm else total):
                if in_frames:
                    message = await channel.receive()
                    assert isinstance(message, messages.Reply)
                    got += len(message.frame)
                else:
                    got += len(await stream.read())
            await stream.write(b"\0")
        is_over.set()

    server = GrpcServer(files, serve, calls_most=2)
    pipe.send(await server.start("127.0.0.1:0"))
    await is_over.wait()
    pipe.send(time.process_time() - cpu_s)
    await server.stop()


async def _send(port: int, files: TlsFiles, total: int, *, in_frames: bool) -> tuple[float, float]:
    stream = await connect(f"127.0.0.1:{port}", files)
    data, spent_s = os.urandom(FRAME_BYTES if in_frames else CHUNK_BYTES), 0.0
    cpu_s = 0.0
    for size in (FRAME_BYTES, total):
        channel = _open_session(stream, is_coordinator=False)
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        for number in range(size // len(data)):
            if in_frames:
                await channel.send(messages.Reply(number, data))
            else:
                await stream.write(data)
        await stream.read()
        spent_s, cpu_s = time.perf_counter() - started_s, time.process_time() - started_cpu_s
    await stream.close()
    return spent_s, cpu_s


def _open_session(stream: Any, *, is_coordinator: bool) -> Channel:
    """Return one end of a connection in the middle of a session in which everything has been asked."""
    channel = Channel(stream, is_coordinator=is_coordinator)
    channel.connection.state = State.RUNNING
    channel.connection.allow_frames(FRAME_BYTES)
    channel.connection._asked = list(range(_FRAMES))
    return channel
