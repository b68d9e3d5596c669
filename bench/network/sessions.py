"""What the network costs over loopback with TLS: a round trip with journals, throughput, the memory of an upload.

All ends are in one process, so they share its lock: processes of their own are quicker. Marks: a round trip with two
parties at most 5 ms (median) beyond the local runtime's, with 64 at most 100 ms; at least 60 % of the throughput of a
bare stream of the same library in the same run; 500 MB through one connection in bounded memory.
Run: ``python -m bench.network [rounds|throughput|upload]``.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.harness import run_sections
from cloister.credentials import make_keys
from cloister.crypto import Identity, SystemEntropy
from cloister.errors import LocalProtocolError
from cloister.roles import Ask, Coordinator, Message, expect
from cloister.runtime import run_local
from cloister.runtime.remote import greeting, messages
from cloister.runtime.remote.channel import Channel
from cloister.runtime.remote.chunks import CHUNK_BYTES
from cloister.runtime.remote.connection import State
from cloister.runtime.remote.greeting import Agreed, OwnEnd
from cloister.runtime.remote.grpc_client import connect
from cloister.runtime.remote.grpc_server import GrpcServer
from cloister.runtime.remote.hub import Deadlines, Hub
from cloister.runtime.remote.participant import Participant
from cloister.runtime.remote.tls import TlsFiles
from cloister.runtime.resuming import Memory, guard_coordinator, guard_party
from cloister.wire import Codec

SESSION, KEY = bytes(16), bytes(32)
FRAME_BYTES = 2**25
ROUNDS_MARK_MS = {2: 5.0, 64: 100.0}
SHARE_MARK = 0.6
UPLOAD_BYTES = 500 * 10**6


class Question(Struct, frozen=True, array_like=True, tag=0):
    """Asks for some bytes."""

    count: int


class Answer(Struct, frozen=True, array_like=True, tag=0):
    """Some bytes."""

    data: bytes


CODEC = Codec("bench", requests=Question, replies=Answer, limit_bytes=FRAME_BYTES + 2**10)


class Party:
    """Answers with zeros."""

    def handle(self, request: Message) -> Message:
        """Answer one request."""
        assert isinstance(request, Question)
        return Answer(bytes(request.count))


def ask(parties: int, rounds: int, count: int, seen_s: list[float]) -> Coordinator[None]:
    """Ask for so many bytes in so many rounds; notes when each began."""
    for _ in range(rounds):
        seen_s.append(time.perf_counter())
        requests = dict.fromkeys(range(1, parties + 1), Question(count))
        yield Ask(label="asking", requests=requests, check=expect(Answer), steps=rounds)
    seen_s.append(time.perf_counter())


class Script:
    """What each party does (`cloister.runtime.remote.participant.Script`)."""

    def __init__(self, name: str, number: int, identity: Identity, agreed: Agreed, memory: Memory | None) -> None:
        self.name, self.identity, self.agreed, self.run, self.is_complete = name, identity, agreed, b"", False
        self.endpoint = guard_party(Party(), number=number, codec=CODEC, session=SESSION, memory=memory)

    def consent(self, run: bytes) -> messages.Consent:
        """Agree."""
        self.run = run
        return messages.Consent(self.identity.sign(*greeting.consent_statement(self.agreed, run)), messages.Facts())

    def start(self, start: messages.Start) -> int:
        """Take the seat."""
        return CODEC.limit_bytes

    def answer(self, frame: bytes) -> bytes:
        """Answer."""
        return self.endpoint.receive(frame)

    def finish(self, finish: messages.Finish) -> messages.Done:
        """Only `run_remote` ends a session here, by leaving it."""
        raise LocalProtocolError("nobody finishes a session of this benchmark.")


async def run_remote(folder: Path, parties: int, rounds: int, count: int, *, journals: bool) -> list[float]:
    """Run rounds over gRPC; returns when each began, and the end."""
    names = [f"party {number}" for number in range(1, parties + 1)]
    keys = {name: make_keys(name, folder) for name in ("coordinator", *names)}
    agreed = Agreed(
        job=KEY,
        parties={name: keys[name].identity.public_bytes for name in names},
        coordinator=keys["coordinator"].identity.public_bytes,
    )

    def files(name: str, others: Sequence[str]) -> TlsFiles:
        trusted = b"".join(keys[other].public.certificates_pem for other in others)
        return TlsFiles(
            key_pem=keys[name].tls_key_pem, certificates_pem=keys[name].public.certificates_pem, trusted_pem=trusted
        )

    def own(name: str, tls: TlsFiles) -> OwnEnd:
        return OwnEnd(identity=keys[name].identity, certificate=tls.own, program="0.1.0")

    def memory(name: str) -> Memory | None:
        return Memory(folder / f"{name}.journal", key=KEY, session=SESSION) if journals else None

    deadlines = Deadlines(start_s=120.0, step_s=120.0)
    tls = files("coordinator", names)
    hub = Hub(own("coordinator", tls), agreed, run=SESSION, entropy=SystemEntropy(), deadlines=deadlines)
    server = GrpcServer(tls, hub.serve, calls_most=2 * parties)
    port = await server.start("127.0.0.1:0")
    running = []
    for number, name in enumerate(names, start=1):
        ends = files(name, ["coordinator"])
        participant = Participant(
            lambda ends=ends: connect(f"127.0.0.1:{port}", ends),  # type: ignore[misc]
            own(name, ends),
            agreed,
            party=name,
            script=Script(name, number, keys[name].identity, agreed, memory(name)),
            entropy=SystemEntropy(),
            deadlines=deadlines,
        )
        running.append(asyncio.ensure_future(participant.take_part()))
    seen_s: list[float] = []
    role = ask(parties, rounds, count, seen_s)
    endpoint = guard_coordinator(role, codec=CODEC, session=SESSION, memory=memory("coordinator"))
    start = messages.Start("bench", SESSION, messages.Facts(), await hub.gather())
    await hub.run_session(start, endpoint, names, frame_bytes=CODEC.limit_bytes, done={})
    await hub.close(messages.Abandon(messages.Ending.STOPPED))
    await asyncio.gather(*running, return_exceptions=True)
    await server.stop()
    return seen_s


def time_rounds(seen_s: Sequence[float]) -> float:
    """Return the median time of a round in milliseconds, the first few left out."""
    waits = [later - earlier for earlier, later in pairwise(seen_s)]
    return 1000 * statistics.median(waits[min(10, len(waits) // 2) :])


def rounds() -> list[str]:
    """A round trip of small frames, with journals on disk, beside the local runtime's."""
    missed = []
    for parties, mark_ms in ROUNDS_MARK_MS.items():
        count = 200 if parties < 10 else 60
        local_s: list[float] = []
        run_local(
            ask(parties, count, 64, local_s), [Party() for _ in range(parties)], codec=CODEC, session=SESSION, threads=1
        )
        row = [time_rounds(local_s)]
        for journals in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                row.append(time_rounds(asyncio.run(run_remote(Path(folder), parties, count, 64, journals=journals))))
        beyond_ms = row[2] - row[0]
        print(
            f"{parties:>3} parties: local {row[0]:.2f} ms, network {row[1]:.2f} ms, with journals {row[2]:.2f} ms; "
            f"beyond local {beyond_ms:.2f} ms (mark: {mark_ms:g} ms)"
        )
        if beyond_ms > mark_ms:
            missed.append(f"a round with {parties} parties")
    return missed


async def send(folder: Path, total: int, *, in_frames: bool) -> float:
    """Send so many bytes one way, in bare chunks or as frames of a session; returns the seconds."""
    keys = {name: make_keys(name, folder) for name in ("server", "client")}
    got = 0

    def files(name: str, other: str) -> TlsFiles:
        return TlsFiles(
            key_pem=keys[name].tls_key_pem,
            certificates_pem=keys[name].public.certificates_pem,
            trusted_pem=keys[other].public.certificates_pem,
        )

    async def serve(stream: Any) -> None:
        nonlocal got
        channel = open_session(stream, is_coordinator=True)
        while got < total:
            if in_frames:
                message = await channel.receive()
                assert isinstance(message, messages.Reply)
                got += len(message.frame)
            else:
                got += len(await stream.read())
        await stream.write(b"\0")

    server = GrpcServer(files("server", "client"), serve, calls_most=2)
    port = await server.start("127.0.0.1:0")
    stream = await connect(f"127.0.0.1:{port}", files("client", "server"))
    channel, data = open_session(stream, is_coordinator=False), bytes(FRAME_BYTES if in_frames else CHUNK_BYTES)
    started_s = time.perf_counter()
    for number in range(total // len(data)):
        if in_frames:
            await channel.send(messages.Reply(number, data))
        else:
            await stream.write(data)
    await stream.read()
    spent_s = time.perf_counter() - started_s
    await stream.close()
    await server.stop()
    return spent_s


def open_session(stream: Any, *, is_coordinator: bool) -> Channel:
    """Return one end of a connection in the middle of a session in which everything has been asked."""
    channel = Channel(stream, is_coordinator=is_coordinator)
    channel.connection.state = State.RUNNING
    channel.connection.allow_frames(FRAME_BYTES)
    channel.connection._asked = list(range(1000))
    return channel


def throughput() -> list[str]:
    """Frames of 32 MiB one way, as a session's, beside bare chunks of 1 MiB."""
    total, shares = 12 * FRAME_BYTES, []
    for _ in range(5):
        spent_s = []
        for in_frames in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                spent_s.append(asyncio.run(send(Path(folder), total, in_frames=in_frames)))
        shares.append(spent_s[0] / spent_s[1])
        print(
            f"bare stream {total / spent_s[0] / 1e6:.0f} MB/s, frames {total / spent_s[1] / 1e6:.0f} MB/s: "
            f"{100 * shares[-1]:.0f} %"
        )
    print(f"median {100 * statistics.median(shares):.0f} % (mark: {100 * SHARE_MARK:.0f} %)")
    return [] if statistics.median(shares) >= SHARE_MARK else ["throughput"]


def upload() -> list[str]:
    """500 MB from one party: what the process grows by, both ends and the codec together."""
    count = -(-UPLOAD_BYTES // FRAME_BYTES)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        seen_s = asyncio.run(run_remote(Path(folder), 1, count, FRAME_BYTES, journals=False))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(
        f"{count * FRAME_BYTES / 1e6:.0f} MB in {seen_s[-1] - seen_s[0]:.1f} s, frames of {FRAME_BYTES / 1e6:.0f} MB; "
        f"both ends grew by {grown / 1e6:.0f} MB (mark: ten frames)"
    )
    return [] if grown < 10 * FRAME_BYTES else ["memory of an upload"]


SECTIONS: dict[str, Callable[[], list[str]]] = {"upload": upload, "rounds": rounds, "throughput": throughput}


def main(only: str | None = None) -> int:
    """Run the benchmark; 1 if a mark was missed."""
    return run_sections(SECTIONS, only)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
