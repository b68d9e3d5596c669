"""Roles that survive a kill: rebuilt from a journal, they go on where they were.

A role is a function of the messages that it took and of its randomness. So its journal holds these and nothing else:

::

    entry 0     the session's secret: every key and salt of the role follows from it, and from the number of the record
    entry i     record i: the frames that were taken, the noise that was drawn on their account, a digest of the answer

A party's record is one request; the coordinator's, the replies of one step. A record is written when the answer is
ready and before it leaves. So whoever was stopped before has said nothing, and draws anew; whoever was stopped after
draws nothing, charges nothing twice, and answers the same bytes. A rebuilt role that would answer otherwise (its table
was changed, say) ends with a :class:`JournalError` instead: a second answer to a paid question would be a second
release.

A refused request leaves no record. Keys are made from the number of the record, so that it does not matter to later
ones how many requests were refused in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from cloister.crypto import Entropy, Stream, SystemEntropy
from cloister.crypto.stream import KEY_BYTES, encode_context
from cloister.errors import JournalError, LocalProtocolError
from cloister.privacy.mechanisms import Noise
from cloister.privacy.samplers import OnProgress, Sampler
from cloister.records import IntArray
from cloister.roles import COORDINATOR, Coordinator, Party
from cloister.runtime.journal import Journal
from cloister.wire import Codec, CoordinatorEndpoint, PartyEndpoint


class _Start(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: Literal[1]
    secret: bytes


class Record(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What was taken in one step, what was drawn on its account, and a digest of what was answered."""

    frames: dict[int, bytes]
    noise: tuple[bytes, ...]
    answer: bytes


class Memory:
    """What one role keeps: its randomness, and the records of what it did with it.

    Parameters
    ----------
    path, key, session
        As in `Journal`.
    """

    def __init__(self, path: Path, *, key: bytes, session: bytes) -> None:
        self._journal = Journal(path, key=key, session=session)
        self.was_there = bool(self._journal.recovered)
        """Whether an earlier process began it."""
        if not self.was_there:
            self._secret = SystemEntropy().bytes(KEY_BYTES)
            self._journal.append(msgspec.msgpack.encode(_Start(1, self._secret)))
        else:
            self._secret = self._read_start(self._journal.recovered[0]).secret
        self.recovered = [msgspec.msgpack.decode(entry, type=Record) for entry in self._journal.recovered[1:]]
        """What was done before the kill, in order."""
        self._number = 0  # of the record that is being made; 0: none yet
        self._streams: dict[str, Stream] = {}  # of its keys
        self._noise: list[IntArray] = []  # drawn for it
        self._kept: tuple[bytes, ...] | None = None  # what was drawn for it before the kill

    def _read_start(self, entry: bytes) -> _Start:
        try:
            return msgspec.msgpack.decode(entry, type=_Start)
        except msgspec.MsgspecError:
            raise self._refuse("it must begin with version 1, and does not") from None

    # --- randomness ---------------------------------------------------------------------------------------------------

    def make_entropy(self, label: str) -> Entropy:
        """Return a source of keys that gives the same ones after a kill."""
        return _KeptEntropy(self, label)

    def keep_noise(self, sampler: Sampler) -> Sampler:
        """Return a sampler whose draws are kept."""
        return _KeptSampler(self, sampler)

    def draw_bytes(self, label: str, count: int) -> bytes:
        """Draw bytes of keys for the record that is being made."""
        if label not in self._streams:
            self._streams[label] = Stream.from_seed(self._secret, "journal", label, self._number)
        return self._streams[label].bytes(count)

    def draw_noise(self, sampler: Sampler, mechanism: Noise, entries: int, on_progress: OnProgress | None) -> IntArray:
        """Draw noise for the record that is being made, or return what was drawn before the kill."""
        if self._number == 0:
            raise LocalProtocolError("noise must be drawn on account of a message; it was drawn before any came.")
        if self._kept is None or sampler.is_simulation:  # a seed gives the same noise again
            drawn = sampler.draw(mechanism, entries, on_progress)
        else:
            place = len(self._noise)
            kept = self._kept[place] if place < len(self._kept) else b""
            drawn = np.frombuffer(kept, dtype="<i8").astype(np.int64)
            if len(drawn) != entries:
                raise self._refuse("it does not hold the noise that this role draws")
        self._noise.append(drawn)
        return drawn

    # --- records ------------------------------------------------------------------------------------------------------

    def begin(self, number: int, kept: Record | None = None) -> None:
        """Begin a record, or begin it again if a request was refused; ``kept`` is what it was before a kill."""
        self._number, self._streams = number, {}
        self._noise, self._kept = [], None if kept is None else kept.noise

    def finish(self, frames: Mapping[int, bytes], answer: bytes) -> None:
        """Write the record down; what follows from it may leave afterwards."""
        noise = tuple(drawn.astype("<i8").tobytes() for drawn in self._noise)
        self._journal.append(msgspec.msgpack.encode(Record(dict(frames), noise, _digest(answer))))

    def confirm(self, kept: Record, answer: bytes) -> None:
        """Go on from a record, if its answer is what it was."""
        if kept.answer != _digest(answer) or len(self._noise) != len(kept.noise):
            raise self._refuse(f"in record {self._number} the role would answer otherwise than it did")

    def close(self) -> None:
        """Keep the journal: the role may come back."""
        self._journal.close()

    def wipe(self) -> None:
        """Delete the journal: the session is over."""
        self._journal.wipe()

    def _refuse(self, why: str) -> JournalError:
        return JournalError(
            f"{self._journal.path}: a journal must be of this role, with the same table and the same version of the "
            f"program; {why}. This role cannot go on in this session, and what was charged stays charged. "
            "Run the job again."
        )


class _KeptEntropy:
    is_simulation = False

    def __init__(self, memory: Memory, label: str) -> None:
        self._memory, self._label = memory, label

    def bytes(self, count: int) -> bytes:
        return self._memory.draw_bytes(self._label, count)


class _KeptSampler:
    def __init__(self, memory: Memory, inner: Sampler) -> None:
        self._memory, self._inner = memory, inner

    @property
    def is_simulation(self) -> bool:
        return self._inner.is_simulation

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        return self._memory.draw_noise(self._inner, mechanism, entries, on_progress)


class ResumingParty(PartyEndpoint):
    """A party's endpoint that writes down each request before its reply leaves."""

    def __init__(self, party: Party, *, number: int, codec: Codec, session: bytes, memory: Memory) -> None:
        super().__init__(party, number=number, codec=codec, session=session)
        self._memory, self._records = memory, 0
        for record in memory.recovered:
            self._records += 1
            memory.begin(self._records, record)
            memory.confirm(record, super().receive(record.frames[COORDINATOR]))
        memory.recovered.clear()

    def receive(self, frame: bytes) -> bytes:
        """Answer one frame from the coordinator, the same bytes to the same frame."""
        if self.has_answered(frame):
            return super().receive(frame)
        self._memory.begin(self._records + 1)
        reply = super().receive(frame)
        self._memory.finish({COORDINATOR: frame}, reply)
        self._records += 1
        return reply


class ResumingCoordinator(CoordinatorEndpoint[Any]):
    """A coordinator's endpoint that writes down each step before the next one is asked."""

    def __init__(self, coordinator: Coordinator[Any], *, codec: Codec, session: bytes, memory: Memory) -> None:
        super().__init__(coordinator, codec=codec, session=session)
        self._memory, self._records = memory, 0
        for record in memory.recovered:
            self._records += 1
            memory.begin(self._records, record)
            for party, frame in record.frames.items():
                self.receive(party, frame)
            super().close_step()
            memory.confirm(record, self._next_frames())
        memory.recovered.clear()

    def close_step(self) -> None:
        """Count the missing parties as dropped and go on to the next step."""
        taken = self.taken
        self._records += 1
        self._memory.begin(self._records)
        super().close_step()
        self._memory.finish(taken, self._next_frames())

    def _next_frames(self) -> bytes:
        frames = {} if self.finished else self.frames()
        return encode_context(*(part for party, frame in frames.items() for part in (party, frame)))


def guard_party(party: Party, *, number: int, codec: Codec, session: bytes, memory: Memory | None) -> PartyEndpoint:
    """Return a party's endpoint, which goes on after a kill if it has a memory."""
    if memory is None:
        return PartyEndpoint(party, number=number, codec=codec, session=session)
    return ResumingParty(party, number=number, codec=codec, session=session, memory=memory)


def guard_coordinator(
    coordinator: Coordinator[Any], *, codec: Codec, session: bytes, memory: Memory | None
) -> CoordinatorEndpoint[Any]:
    """Return a coordinator's endpoint, which goes on after a kill if it has a memory."""
    if memory is None:
        return CoordinatorEndpoint(coordinator, codec=codec, session=session)
    return ResumingCoordinator(coordinator, codec=codec, session=session, memory=memory)


def _digest(answer: bytes) -> bytes:
    return hashlib.sha256(answer).digest()
