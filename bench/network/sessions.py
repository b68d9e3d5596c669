"""Sessions of a role that asks for bytes: round trips with journals, and the memory of an upload."""

from __future__ import annotations

import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from cloister.credentials import OwnKeys, load_keys, load_public, make_keys
from cloister.crypto import Identity, SystemEntropy
from cloister.errors import LocalProtocolError
from cloister.roles import Ask, Coordinator, Message, expect
from cloister.runtime import run_local
from cloister.runtime.remote import greeting, messages
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

    def __init__(self, number: int, identity: Identity, agreed: Agreed, memory: Memory | None) -> None:
        self.identity, self.agreed, self.run, self.is_complete = identity, agreed, b"", False
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
        """Nobody finishes a session here."""
        raise LocalProtocolError("nobody finishes a session of this benchmark.")


@dataclass(frozen=True)
class Ends:
    """Everyone's keys in one folder."""

    folder: Path
    names: list[str]
    agreed: Agreed
    session: bytes = SESSION
    deadlines: Deadlines = field(default_factory=lambda: Deadlines(start_s=300.0, step_s=120.0))

    def keys(self, name: str) -> OwnKeys:
        """Read one end's keys."""
        return load_keys(self.folder / f"{name}.key")

    def files(self, name: str, others: Sequence[str]) -> TlsFiles:
        """Return what one end gives TLS."""
        own = self.keys(name)
        return TlsFiles(
            key_pem=own.tls_key_pem,
            certificates_pem=own.public.certificates_pem,
            trusted_pem=b"".join(load_public(self.folder / f"{one}.pub").certificates_pem for one in others),
        )

    def own(self, name: str, tls: TlsFiles) -> OwnEnd:
        """Return what one end proves who it is with."""
        return OwnEnd(identity=self.keys(name).identity, certificate=tls.own, program="0.1.0")

    def open_memory(self, name: str, folder: Path) -> Memory:
        """Open one role's journal."""
        return Memory(folder / f"{name}.journal", key=KEY, session=SESSION)


def make_ends(folder: Path, parties: int) -> Ends:
    """Make keys for so many parties and a coordinator."""
    names = [f"party {number}" for number in range(1, parties + 1)]
    identities = {name: make_keys(name, folder).identity.public_bytes for name in ("coordinator", *names)}
    coordinator = identities.pop("coordinator")
    return Ends(folder, names, Agreed(job=KEY, parties=identities, coordinator=coordinator))


def make_participant(ends: Ends, name: str, port: int, *, journals: bool = False) -> Participant:
    """Return one party, which will call this port."""
    tls = ends.files(name, ["coordinator"])
    own = ends.own(name, tls)
    memory = ends.open_memory(name, ends.folder) if journals else None
    return Participant(
        lambda: connect(f"127.0.0.1:{port}", tls),
        own,
        ends.agreed,
        party=name,
        script=Script(1 + ends.names.index(name), own.identity, ends.agreed, memory),
        entropy=SystemEntropy(),
        deadlines=ends.deadlines,
    )


async def run_remote(folder: Path, parties: int, rounds: int, count: int, *, journals: bool) -> list[float]:
    """Run rounds over gRPC, all ends in this process; returns when each began, and the end."""
    ends = make_ends(folder, parties)
    tls = ends.files("coordinator", ends.names)
    own = ends.own("coordinator", tls)
    hub = Hub(own, ends.agreed, run=SESSION, entropy=SystemEntropy(), deadlines=ends.deadlines)
    server = GrpcServer(tls, hub.serve, calls_most=2 * parties)
    port = await server.start("127.0.0.1:0")
    participants = [make_participant(ends, name, port, journals=journals) for name in ends.names]
    running = [asyncio.ensure_future(one.take_part()) for one in participants]
    seen_s: list[float] = []
    memory = ends.open_memory("coordinator", folder) if journals else None
    endpoint = guard_coordinator(ask(parties, rounds, count, seen_s), codec=CODEC, session=SESSION, memory=memory)
    start = messages.Start("bench", SESSION, messages.Facts(), await hub.gather())
    await hub.run_session(start, endpoint, ends.names, frame_bytes=CODEC.limit_bytes, done={})
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


def upload() -> list[str]:
    """500 MB from one party, then three times as much: what the process grows by, both ends and the codec together.

    Frames are held whole, one at a time, so growth must follow their size and not how many there are.
    """
    count = -(-UPLOAD_BYTES // FRAME_BYTES)
    before, grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    for times in (1, 3):
        with tempfile.TemporaryDirectory() as folder:
            seen_s = asyncio.run(run_remote(Path(folder), 1, times * count, FRAME_BYTES, journals=False))
        grown.append((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
        print(
            f"{times * count * FRAME_BYTES / 1e6:.0f} MB in {seen_s[-1] - seen_s[0]:.1f} s, frames of "
            f"{FRAME_BYTES / 1e6:.0f} MB; both ends have grown by {grown[-1] / 1e6:.0f} MB"
        )
    print("mark: ten frames, and less than one more for three times as many")
    is_bounded = grown[0] < 10 * FRAME_BYTES and grown[1] - grown[0] < FRAME_BYTES
    return [] if is_bounded else ["memory of an upload"]
