"""The coordinator's part in a run between organisations: session after session, and a record of who took part.

It has no table and no result. What it knows of a job is the job; what it is told is in the leakage tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloister.crypto import Entropy, make_entropy
from cloister.deployment.course import (
    ALIGNMENT,
    CLUSTERING,
    LABELS,
    add_facts,
    list_members,
    make_session_id,
    make_terms,
    merge_facts,
    needs_alignment,
)
from cloister.deployment.run_files import Confirmed, RunFiles, Started
from cloister.errors import CloisterError, ConfigError, TooFewPartiesError
from cloister.job import COORDINATOR, Setup
from cloister.privacy.books import make_sampler
from cloister.privacy.samplers import Sampler
from cloister.protocol import PublicInput, find_protocol
from cloister.protocols.align.coordinator import coordinate
from cloister.protocols.align.terms import CODEC, Mode
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.hub import Hub
from cloister.runtime.remote.messages import Abandon, Consented, Ending, Facts, Finish, Over, Start
from cloister.runtime.remote.steps import RemoteRun
from cloister.runtime.resuming import Memory, guard_coordinator
from cloister.sessions.assembly import open_session, seat_coordinator
from cloister.wire import CoordinatorEndpoint


class EndedEarlyError(CloisterError):
    """The run ends without a result; what the parties are told."""

    exit_code = TooFewPartiesError.exit_code

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.text)
        self.ending = ending


class DisagreementError(EndedEarlyError, ConfigError):
    """The parties do not hold the same records in the same order."""

    exit_code = ConfigError.exit_code


@dataclass(frozen=True, kw_only=True)
class SessionRecord:
    """One session of a run, as the coordinator saw it."""

    kind: str
    run: RemoteRun
    session: bytes
    members: tuple[str, ...]
    seconds: float


@dataclass(kw_only=True, eq=False)
class CoordinatorRun:
    """One run, on the coordinator's side.

    Attributes
    ----------
    setup
        The job, and where its public table is.
    agreed
        What all hold.
    run
        The run's ID.
    hub
        Who is connected.
    files
        Its journals; None to do without.
    public
        What everyone knows.
    clock
        Seconds since some moment.
    began, ended
        When, ISO 8601.
    """

    setup: Setup
    agreed: Agreed
    run: bytes
    hub: Hub
    files: RunFiles | None
    public: PublicInput
    clock: Callable[[], float]
    began: str
    ended: str = ""
    sessions: list[SessionRecord] = field(default_factory=list)
    consents: tuple[Consented, ...] = ()

    async def take_course(self) -> None:
        """Run all sessions."""
        job = self.setup.job
        earlier = [entry.start for entry in self._recovered() if isinstance(entry, Started)]
        if earlier:
            self.consents = earlier[0].consents
            self.hub.go_on(self.consents)
        else:
            self.consents = await self.hub.gather()
        facts = [self.hub.members[name].facts for name in list_members(job, ALIGNMENT)]
        if any(start.kind == ALIGNMENT for start in earlier) or needs_alignment(job, facts):
            facts = await self._align()
        agreed_facts = earlier_facts(earlier, CLUSTERING) or merge_facts(job, facts)
        if agreed_facts is None:
            raise DisagreementError(Ending.DISAGREE)
        granted = await self._cluster(agreed_facts)
        if granted is not None:
            await self._label(agreed_facts, granted)

    def _recovered(self) -> Sequence[Any]:
        return () if self.files is None else self.files.recovered

    async def _align(self) -> list[Facts]:
        job, names = self.setup.job, list_members(self.setup.job, ALIGNMENT)
        terms = make_terms(job, [self.agreed.parties[name] for name in names])

        def seat(session: bytes, memory: Memory | None) -> CoordinatorEndpoint[Any]:
            role = coordinate(terms, entropy=self._make_entropy("align coordinator", memory), session=session)
            return guard_coordinator(role, codec=CODEC, session=session, memory=memory)

        run = await self._run_session(ALIGNMENT, Facts(), seat, CODEC.limit_bytes, lambda outcome: b"")
        if terms.mode is Mode.UNION and sum(run.result.sizes) != run.result.count:
            raise DisagreementError(Ending.REPEATED)
        missing = [name for name in names if self.hub.members[name].has_left]
        if missing:
            raise TooFewPartiesError(
                f"every party must stay while records are aligned; {', '.join(missing)} left. Run the job again."
            )
        return [self.hub.members[name].facts for name in names]

    async def _cluster(self, facts: Facts) -> Any:
        """Run the clustering; return what a session for labels starts from, if there is to be one."""
        directory = self.agreed.directory
        session_id = make_session_id(CLUSTERING, run=self.run, seed=self.setup.seed)
        public = add_facts(self.public, facts)
        session = await self.hub.work(lambda: open_session(self.setup.job, directory, public, session=session_id))
        codec = session.protocol.codec(session.agreed)

        def seat(_: bytes, memory: Memory | None) -> CoordinatorEndpoint[Any]:
            entropy = self._make_entropy(COORDINATOR, memory)
            role = seat_coordinator(session, entropy, sampler=self._make_sampler(memory))[0]
            return guard_coordinator(role, codec=codec, session=session.id, memory=memory)

        protocol, agreed = session.protocol, session.agreed
        least, digest = protocol.members_min(agreed), protocol.digest(agreed)
        await self._run_session(
            CLUSTERING, facts, seat, codec.limit_bytes, protocol.tell, agreed=digest, members_min=least
        )
        return find_protocol(self.setup.job).label_relay(self.setup.job, directory, public)

    async def _label(self, facts: Facts, labelling: Any) -> None:
        codec = labelling.roles.codec(labelling.agreed)

        def seat(session: bytes, memory: Memory | None) -> CoordinatorEndpoint[Any]:
            entropy = self._make_entropy(f"labels: {COORDINATOR}", memory)
            role = labelling.roles.coordinate(labelling.agreed, session=session, entropy=entropy)
            return guard_coordinator(role, codec=codec, session=session, memory=memory)

        await self._run_session(LABELS, facts, seat, codec.limit_bytes, lambda outcome: b"")

    async def _run_session(
        self,
        kind: str,
        facts: Facts,
        seat: Callable[[bytes, Memory | None], CoordinatorEndpoint[Any]],
        frame_bytes: int,
        tell: Callable[[Any], bytes],
        *,
        agreed: bytes = b"",
        members_min: int = 1,
    ) -> RemoteRun:
        """Run one session, from its start to its confirmed end; after a kill, go on with it."""
        began_s, names = self.clock(), list_members(self.setup.job, kind)
        session = make_session_id(kind, run=self.run, seed=self.setup.seed)
        start = Start(kind, session, facts, self.consents, agreed)
        memory: Memory | None = None
        if self.files is not None:
            if start not in [entry.start for entry in self._recovered() if isinstance(entry, Started)]:
                await self.hub.work(self.files.write, Started(start))
            memory = await self.hub.work(self.files.open_memory, kind, session)
        endpoint = await self.hub.work(seat, session, memory)
        done = {
            entry.party: entry.done
            for entry in self._recovered()
            if isinstance(entry, Confirmed) and entry.done.session == session
        }
        run = await self.hub.run_session(
            start, endpoint, names, frame_bytes=frame_bytes, done=done, members_min=members_min
        )
        outcome, left = tell(run.result), self.hub.left
        await self.hub.finish_session(
            {
                name: Finish(session, outcome, run.traffic[number].steps_missed, left)
                for number, name in enumerate(names, start=1)
            }
        )
        self.sessions.append(
            SessionRecord(kind=kind, run=run, session=session, members=names, seconds=self.clock() - began_s)
        )
        return run

    def _make_entropy(self, label: str, memory: Memory | None) -> Entropy:
        if memory is None or self.setup.seed is not None:
            return make_entropy(label, seed=self.setup.seed)
        return memory.make_entropy(label)

    def _make_sampler(self, memory: Memory | None) -> Sampler:
        sampler = make_sampler(COORDINATOR, self.setup.seed)
        return sampler if memory is None else memory.keep_noise(sampler)


def earlier_facts(starts: Sequence[Start], kind: str) -> Facts | None:
    """Return what was known when a session began before a kill."""
    return next((start.facts for start in starts if start.kind == kind), None)


def choose_ending(error: BaseException | None, left: tuple[str, ...]) -> Over | Abandon:
    """Return what the parties are told at the end; ``left`` are those who have left the run."""
    if error is None:
        return Over()
    if isinstance(error, EndedEarlyError):
        return Abandon(error.ending)
    if isinstance(error, TooFewPartiesError):
        missing: tuple[str, ...] = getattr(error, "missing", ())
        return Abandon(Ending.MISSING, missing) if missing else Abandon(Ending.TOO_FEW, left)
    return Abandon(Ending.FAILED if isinstance(error, Exception) else Ending.STOPPED)
