"""Run a whole session in one process: every message still becomes bytes, passes both endpoints and is counted.

Beyond moving messages it offers a byte meter per party and direction, a transcript hash, recorded views, simulated
network time, injected faults, progress, and threads for the parties' local work once that work is long enough to pay
for them. Progress says which step is open and whom it waits for, never a value.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Generic

from cloister.crypto import Stream
from cloister.errors import ConfigError, RemoteProtocolError, told_to_owner
from cloister.roles import COORDINATOR, Coordinator, Message, Party, Result
from cloister.runtime.faults import Fault, FaultKind, FaultPlan, flip_bit
from cloister.runtime.network import NetworkModel
from cloister.wire import Codec, CoordinatorEndpoint, PartyEndpoint


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One step has been opened or answered."""

    step: int
    """Steps finished so far."""
    steps: int
    """Steps expected in all."""
    label: str
    waiting_for: tuple[str, ...]
    """Names of the parties that have not answered this step."""


OnProgress = Callable[[Progress], None]
"""Called at every step; raising from it stops the run."""


_THREADS_PAY_S = 2e-3  # a party's mean work in one step, above which handing it to a thread costs less than it saves
_REPORTS_MAX = 50  # progress reports per step: each lists who is missing, so one for every reply would be quadratic


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What one party's link carried, faults included; counted where the bytes pass."""

    bytes_sent: int = 0
    bytes_received: int = 0
    messages_sent: int = 0
    messages_received: int = 0
    steps_missed: int = 0


@dataclass(frozen=True, kw_only=True)
class ViewEntry:
    """One message as a role received it."""

    step: int
    sender: int
    message: Message


@dataclass(frozen=True, kw_only=True)
class Carried:
    """One frame that was delivered, as it was."""

    step: int
    sender: int
    receiver: int
    frame: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """One frame that an endpoint refused."""

    step: int
    receiver: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class LocalRun(Generic[Result]):
    """A finished session."""

    result: Result
    steps: int
    traffic: Mapping[int, Traffic]
    transcript_sha256: str
    network_s: float | None
    views: Mapping[int, tuple[ViewEntry, ...]] = field(repr=False)
    frames: tuple[Carried, ...] = field(default=(), repr=False)
    rejected: tuple[Rejected, ...] = ()


def run_local(
    coordinator: Coordinator[Result],
    parties: Sequence[Party],
    *,
    codec: Codec,
    session: bytes,
    names: Sequence[str] | None = None,
    network: NetworkModel | None = None,
    network_seed: int = 0,
    step_deadline_s: float | None = None,
    faults: Iterable[Fault] = (),
    restart: Callable[[int], Party] | None = None,
    record_views: bool = False,
    record_frames: bool = False,
    on_progress: OnProgress | None = None,
    threads: int | None = None,
) -> LocalRun[Result]:
    """Run a session to its end.

    Parameters
    ----------
    coordinator, parties
        The roles; parties are numbered from 1 in this order.
    network, network_seed, step_deadline_s
        Simulate message times; a party whose request and reply take longer than the deadline is late and counts as
        dropped.
    faults, restart
        What goes wrong, and how to recreate a party that lost its memory.
    record_views
        Keep every message that each role accepted (for tests; it holds what the messages hold).
    record_frames
        Keep every frame that was delivered, for audits.
    threads
        Threads for the parties' work: 1 for none, ``None`` to use them once they pay.

    Raises
    ------
    CloisterError
        What the coordinator raises: too few parties, say.
    AbsentError
        If a party cannot go on, because of its own data, say; its owner alone is told why.
    """
    run = _Session(
        coordinator=coordinator,
        parties=parties,
        codec=codec,
        session=session,
        names=tuple(names or (f"party {number}" for number in range(1, len(parties) + 1))),
        network=network,
        stream=Stream.from_seed(network_seed, "network"),
        deadline_s=step_deadline_s,
        plan=FaultPlan(faults),
        restart=restart,
        recording=record_views,
        recording_frames=record_frames,
        on_progress=on_progress,
    )
    with ExitStack() as stack:
        workers = threads if threads is not None else min(len(parties), os.cpu_count() or 1)
        pool: ThreadPoolExecutor | None = None
        while not run.endpoint.finished:
            pays = threads is not None or run.party_work_s > _THREADS_PAY_S
            if pool is None and workers > 1 and pays:
                pool = stack.enter_context(ThreadPoolExecutor(workers, thread_name_prefix="party"))
            run.run_step(pool)
    return run.summary()


class _Session(Generic[Result]):
    """The state of one run: endpoints, meters, late frames on their way."""

    def __init__(
        self,
        *,
        coordinator: Coordinator[Result],
        parties: Sequence[Party],
        codec: Codec,
        session: bytes,
        names: tuple[str, ...],
        network: NetworkModel | None,
        stream: Stream,
        deadline_s: float | None,
        plan: FaultPlan,
        restart: Callable[[int], Party] | None,
        recording: bool,
        recording_frames: bool,
        on_progress: OnProgress | None,
    ) -> None:
        if restart is None and plan.restarts:
            raise ConfigError("a RESTART fault must come with restart=, which recreates the party; got none.")
        if deadline_s is not None and network is None:
            raise ConfigError("a step deadline must come with a network model, whose time it limits; got none.")
        self._codec, self._id = codec, session
        self._names, self._network, self._stream = names, network, stream
        self._deadline_s, self._plan, self._restart = deadline_s, plan, restart
        self._recording, self._on_progress = recording, on_progress
        self._frames: list[Carried] | None = [] if recording_frames else None
        self.endpoint = CoordinatorEndpoint(coordinator, codec=codec, session=session)
        self._parties = {
            number: PartyEndpoint(party, number=number, codec=codec, session=session)
            for number, party in enumerate(parties, start=1)
        }
        self._traffic = {number: Traffic() for number in self._parties}
        self._late: list[tuple[int, bytes]] = []  # replies that arrive after their step
        self._last_request: dict[int, bytes] = {}
        self._hash = hashlib.sha256()
        self._network_s = 0.0
        self._views: dict[int, list[ViewEntry]] = {number: [] for number in (COORDINATOR, *self._parties)}
        self._rejected: list[Rejected] = []
        self._steps = 0
        self._replies_taken = 0
        self.party_work_s = 0.0  # a party's mean work in the longest step so far that threads could have shared

    def run_step(self, pool: ThreadPoolExecutor | None) -> None:
        """Deliver one step's requests, collect the replies in party order, close the step."""
        step = self.endpoint.step
        ask = self.endpoint.ask
        frames = self.endpoint.frames()
        self._report(self.endpoint.waiting_for())
        for party, frame in self._late:  # from the step before; the endpoint must refuse it
            self._deliver_reply(party, frame, step)
        self._late = []
        requests = {party: self._deliver_request(party, frame, step) for party, frame in frames.items()}
        work = list(requests.items())
        if pool is None:
            started_s = time.perf_counter()
            replies = [self._answer(party, arriving, step) for party, arriving in work]
            if len(work) > 1:  # one party alone, such as the leader that seals the seed, gains nothing from a thread
                self.party_work_s = max(self.party_work_s, (time.perf_counter() - started_s) / len(work))
        else:
            replies = list(pool.map(lambda item: self._answer(item[0], item[1], step), work))
        slowest_s = 0.0
        for (party, arriving), answers in zip(work, replies, strict=True):
            for frame in arriving:
                self._record(COORDINATOR, party, frame)
            slowest_s = max(slowest_s, self._carry_back(party, arriving, answers, step))
        self._network_s += slowest_s
        missing = self.endpoint.waiting_for()
        for party in missing:
            self._count(party, steps_missed=1)
        self._steps += 1
        self.endpoint.close_step()
        if self.endpoint.finished and self._on_progress:
            self._on_progress(Progress(step=self._steps, steps=self._steps, label=ask.label, waiting_for=()))

    def summary(self) -> LocalRun[Result]:
        """Return what the run produced."""
        return LocalRun(
            result=self.endpoint.result,
            steps=self._steps,
            traffic=self._traffic,
            transcript_sha256=self._hash.hexdigest(),
            network_s=self._network_s if self._network else None,
            views={role: tuple(entries) for role, entries in self._views.items()},
            frames=tuple(self._frames or ()),
            rejected=tuple(sorted(self._rejected, key=lambda entry: (entry.step, entry.receiver))),
        )

    # --- requests -------------------------------------------------------------------------------------------------

    def _deliver_request(self, party: int, frame: bytes, step: int) -> list[bytes]:
        """The frames that reach a party in this step, in order."""

        def hit(kind: FaultKind) -> bool:
            return self._plan.hits(kind, party, step)

        arriving = [frame]
        if hit(FaultKind.DROP_REQUEST) or self._plan.crashed(party, step):
            arriving = []
        if arriving and hit(FaultKind.CORRUPT_REQUEST):
            arriving = [flip_bit(frame, salt=step * 31 + party)]
        if arriving and hit(FaultKind.DUPLICATE_REQUEST):
            arriving = arriving * 2
        if arriving and hit(FaultKind.REORDER) and party in self._last_request:
            arriving = [self._last_request[party], *arriving]
        self._last_request[party] = frame
        return arriving

    def _answer(self, party: int, arriving: list[bytes], step: int) -> list[bytes]:
        """One party's work in one step; runs in that party's thread and touches only its own state."""
        if self._restart is not None and self._plan.hits(FaultKind.RESTART, party, step):
            self._parties[party] = PartyEndpoint(
                self._restart(party), number=party, codec=self._codec, session=self._id
            )
        answers = []
        for frame in arriving:
            try:
                with told_to_owner(self._names[party - 1], but=(RemoteProtocolError,)):
                    answers.append(self._parties[party].receive(frame))
            except RemoteProtocolError as error:
                self._rejected.append(Rejected(step=step, receiver=party, reason=str(error)))
            else:
                self._view(party, COORDINATOR, step, frame)
        return answers

    # --- replies --------------------------------------------------------------------------------------------------

    def _carry_back(self, party: int, arriving: list[bytes], answers: list[bytes], step: int) -> float:
        """Carry a party's answers back, faults included; returns its simulated network time."""

        def hit(kind: FaultKind) -> bool:
            return self._plan.hits(kind, party, step)

        if hit(FaultKind.DROP_REPLY) or hit(FaultKind.CRASH_AFTER):
            answers = []
        if hit(FaultKind.CORRUPT_REPLY):
            answers = [flip_bit(frame, salt=step * 17 + party) for frame in answers]
        if hit(FaultKind.DUPLICATE_REPLY):
            answers = answers * 2
        spent_s = 0.0
        if self._network is not None:
            spent_s = sum(self._network.draw_time_s(len(frame), self._stream) for frame in (*arriving, *answers))
            if self._deadline_s is not None and spent_s > self._deadline_s:
                self._late.extend((party, frame) for frame in answers)
                return self._deadline_s
        if hit(FaultKind.DELAY_REPLY):
            self._late.extend((party, frame) for frame in answers)
            return spent_s
        for frame in answers:
            self._deliver_reply(party, frame, step)
        return spent_s

    def _deliver_reply(self, party: int, frame: bytes, step: int) -> None:
        self._record(party, COORDINATOR, frame)
        try:
            self.endpoint.receive(party, frame)
        except RemoteProtocolError as error:
            self._rejected.append(Rejected(step=step, receiver=COORDINATOR, reason=str(error)))
            return
        self._view(COORDINATOR, party, step, frame)
        self._replies_taken += 1
        if self._on_progress and self._replies_taken % -(-len(self._parties) // _REPORTS_MAX) == 0:
            self._report(self.endpoint.waiting_for())

    # --- meters ---------------------------------------------------------------------------------------------------

    def _record(self, sender: int, receiver: int, frame: bytes) -> None:
        """Count a frame and put it into the transcript hash."""
        head = b"".join(number.to_bytes(4, "little") for number in (sender, receiver, len(frame)))
        self._hash.update(head)
        self._hash.update(frame)
        if self._frames is not None:
            self._frames.append(Carried(step=self._steps, sender=sender, receiver=receiver, frame=frame))
        if sender == COORDINATOR:
            self._count(receiver, bytes_received=len(frame), messages_received=1)
        else:
            self._count(sender, bytes_sent=len(frame), messages_sent=1)

    def _count(self, party: int, **more: int) -> None:
        before = self._traffic[party]
        now = {name: getattr(before, name) + amount for name, amount in more.items()}
        self._traffic[party] = Traffic(**{**before.__dict__, **now})

    def _view(self, receiver: int, sender: int, step: int, frame: bytes) -> None:
        if self._recording:
            envelope = self._codec.open(frame, session=self._id, sender=sender)
            decode = self._codec.reply if receiver == COORDINATOR else self._codec.request
            self._views[receiver].append(ViewEntry(step=step, sender=sender, message=decode(envelope.body)))

    def _report(self, waiting: tuple[int, ...]) -> None:
        if self._on_progress:
            ask = self.endpoint.ask
            self._on_progress(
                Progress(
                    step=self._steps,
                    steps=max(ask.steps, self._steps + 1),
                    label=ask.label,
                    waiting_for=tuple(self._names[party - 1] for party in waiting),
                )
            )
