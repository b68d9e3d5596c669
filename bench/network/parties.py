"""Many parties at one coordinator: a process for it, others for the parties, each on a connection of its own.

Real keys, TLS with every party's certificate pinned, signed greetings and consents, journals at the coordinator. The
role asks everybody for 64 bytes in each round. The parties' part in it is as little as can be: they share this machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import statistics
import tempfile
import time
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path

from bench.network.sessions import CODEC, Ends, ask, make_ends, make_participant
from cloister.crypto import SystemEntropy
from cloister.runtime.remote import messages
from cloister.runtime.remote.grpc_server import GrpcServer
from cloister.runtime.remote.hub import Hub
from cloister.runtime.resuming import guard_coordinator

COUNT, ROUNDS, PROCESSES = 1000, 10, 2


def parties(count: int = COUNT) -> list[str]:
    """1,000 parties at once: the time until all are there, then a round, and the coordinator's memory for each."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ends = make_ends(Path(folder), count)
        ours, theirs = context.Pipe()
        coordinator = context.Process(target=_coordinate, args=(theirs, ends), daemon=True)
        coordinator.start()
        port, started_s = ours.recv(), time.perf_counter()
        shares = [ends.names[i::PROCESSES] for i in range(PROCESSES)]
        processes = [context.Process(target=_take_part, args=(ends, share, port), daemon=True) for share in shares]
        for process in processes:
            process.start()
        gathered_s, waits_s, memory, cpu_s = ours.recv()
        for process in (*processes, coordinator):
            process.join(60)
    finished = sum(process.exitcode == 0 for process in processes)
    print(
        f"{count:,} parties: all there after {gathered_s - started_s:.1f} s (start of {PROCESSES} processes included); "
        f"a round {1000 * statistics.median(waits_s):.0f} ms (median of {len(waits_s)}; {1000 * min(waits_s):.0f} to "
        f"{1000 * max(waits_s):.0f}); the coordinator grew by {memory / count / 1024:.0f} KiB a party and spent "
        f"{cpu_s:.1f} CPU s"
    )
    return [] if finished == PROCESSES else [f"{count:,} parties at once"]


def _coordinate(pipe: Connection, ends: Ends) -> None:
    asyncio.run(_run(pipe, ends))


async def _run(pipe: Connection, ends: Ends) -> None:
    """Hold all parties, and ask them round after round."""
    with tempfile.TemporaryDirectory() as folder:
        tls = ends.files("coordinator", ends.names)
        own = ends.own("coordinator", tls)
        hub = Hub(own, ends.agreed, run=ends.session, entropy=SystemEntropy(), deadlines=ends.deadlines)
        server = GrpcServer(tls, hub.serve, calls_most=2 * len(ends.names))
        before = _read_memory()
        pipe.send(await server.start("127.0.0.1:0"))
        cpu_s = time.process_time()
        alive = asyncio.ensure_future(hub.keep_alive())
        consents = await hub.gather()
        gathered_s, memory = time.perf_counter(), _read_memory() - before
        seen_s: list[float] = []
        endpoint = guard_coordinator(
            ask(len(ends.names), ROUNDS, 64, seen_s),
            codec=CODEC,
            session=ends.session,
            memory=ends.open_memory("coordinator", Path(folder)),
        )
        start = messages.Start("bench", ends.session, messages.Facts(), consents)
        await hub.run_session(start, endpoint, ends.names, frame_bytes=CODEC.limit_bytes, done={})
        memory = max(memory, _read_memory() - before)
        await hub.close(messages.Abandon(messages.Ending.STOPPED))
        alive.cancel()
        await server.stop()
    waits_s = [later - earlier for earlier, later in pairwise(seen_s)]
    pipe.send((gathered_s, waits_s, memory, time.process_time() - cpu_s))


def _take_part(ends: Ends, names: list[str], port: int) -> None:
    asyncio.run(_answer(ends, names, port))


async def _answer(ends: Ends, names: list[str], port: int) -> None:
    participants = [make_participant(ends, name, port) for name in names]
    await asyncio.gather(*(one.take_part() for one in participants), return_exceptions=True)


def _read_memory() -> int:
    """Return what this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
