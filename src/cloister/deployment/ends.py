"""A job between organisations: one process serves it, and each organisation takes part with a process of its own.

`serve` is the coordinator. `take_part` is one party: it calls the coordinator and is never called. Both go on from
their journals when they are started again after a kill.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

from cloister.agreement import OwnConsent
from cloister.crypto import Identity, SystemEntropy
from cloister.deployment.coordinator_run import CoordinatorRun, choose_ending
from cloister.deployment.own_roles import PartyPlace
from cloister.deployment.party_run import Keep, PartyRun
from cloister.deployment.run_files import Begun, Confirmed, RunFiles
from cloister.deployment.watch import Watch
from cloister.errors import AbsentError, CloisterError, ConfigError, PolicyError, own_error
from cloister.job import COORDINATOR, Job, Setup
from cloister.privacy.ledger import LedgerSession
from cloister.protocol import SERVER, PublicInput, read_public_input
from cloister.report.result import Result
from cloister.runtime import OnProgress
from cloister.runtime.remote.events import Listening, Observe, ignore
from cloister.runtime.remote.greeting import Agreed, OwnEnd
from cloister.runtime.remote.grpc_client import SharedConnection, connect
from cloister.runtime.remote.grpc_server import GrpcServer
from cloister.runtime.remote.hub import Deadlines, Hub
from cloister.runtime.remote.messages import RUN_BYTES
from cloister.runtime.remote.participant import Participant, Together, UnreachableError
from cloister.runtime.remote.tls import TlsFiles, require_grpc
from cloister.sessions.assembly import Session
from cloister.sessions.tables import OnTable

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class End:
    """What one end of a deployment holds.

    Attributes
    ----------
    identity, tls, journal_key
        Its keys: to sign, for TLS, and for its journals.
    agreed
        The job's digest, and everyone's identity.
    journals
        The folder of its journals; None to do without, so that a kill ends its part.
    deadlines
        How long it waits.
    """

    identity: Identity = field(repr=False)
    tls: TlsFiles
    journal_key: bytes = field(repr=False)
    agreed: Agreed
    journals: Path | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)

    def introduce(self) -> OwnEnd:
        """Return what we prove who we are with."""
        return OwnEnd(identity=self.identity, certificate=self.tls.own, program=version("cloister"))

    def has_begun(self, role: str) -> bool:
        """Whether there are journals of a run that began and did not end."""
        return self.journals is not None and RunFiles.exist(self.journals, job=self.agreed.job, role=role)

    def open_files(self, role: str, *, anew: bool) -> RunFiles | None:
        """Open our journals; with ``anew`` an earlier run is given up."""
        if self.journals is None:
            return None
        return RunFiles(self.journals, key=self.journal_key, job=self.agreed.job, role=role, anew=anew)


@dataclass(frozen=True, kw_only=True)
class Housemates:
    """What the parties of one process share: a connection, a thread, and what all compute alike."""

    connection: SharedConnection
    together: Together
    open_session: Callable[[Job, PublicInput, bytes], Session]


def serve(
    setup: Setup,
    end: End,
    *,
    listen: str,
    sources: Mapping[str, object] | None = None,
    anew: bool = False,
    on_progress: OnProgress | None = None,
    on_listening: Callable[[int], None] = lambda port: None,
    keep: Callable[[CoordinatorRun], None] = lambda course: None,
    watch: Watch | None = None,
) -> CoordinatorRun:
    """Coordinate one run of a job between its parties.

    Parameters
    ----------
    setup
        The job; nobody's own side is read.
    end
        The coordinator's keys, and what all hold.
    listen
        ``host:port``; with port 0 the system chooses one.
    sources
        The public table, in place of its file.
    anew
        Give up an earlier run of this job that did not end.
    on_progress, on_listening
        Told about each step; told the port.
    keep
        Keeps the record of the run for good, before the journals are wiped.
    watch
        Shows the run to whoever operates it.

    Raises
    ------
    TooFewPartiesError
        If parties are missing at the deadline, or too few stay.
    CloisterError
        If the job or the public table breaks a rule.
    """
    require_grpc()
    watch = watch or Watch.make(setup.job, COORDINATOR)
    return run_until_stopped(
        watch.around(
            coordinate(
                setup,
                end,
                listen=listen,
                sources=sources,
                anew=anew,
                on_progress=on_progress,
                on_listening=on_listening,
                keep=keep,
                observe=watch.observe,
            )
        )
    )


async def coordinate(
    setup: Setup,
    end: End,
    *,
    listen: str,
    sources: Mapping[str, object] | None = None,
    anew: bool = False,
    on_progress: OnProgress | None = None,
    on_listening: Callable[[int], None] = lambda port: None,
    keep: Callable[[CoordinatorRun], None] = lambda course: None,
    observe: Observe = ignore,
) -> CoordinatorRun:
    """Do what `serve` does, in an event loop that runs."""
    public = read_public_input(setup, (sources or {}).get(SERVER))
    files = end.open_files(COORDINATOR, anew=anew)
    begun = Begun(1, SystemEntropy().bytes(RUN_BYTES), _read_clock())
    if files is not None and files.run is not None:
        begun = files.run
    elif files is not None:
        files.write(begun)
    hub = Hub(
        end.introduce(),
        end.agreed,
        run=begun.run,
        entropy=SystemEntropy(),
        deadlines=end.deadlines,
        on_progress=on_progress,
        observe=observe,
        on_done=lambda confirmations: None if files is None else files.write(*starmap(Confirmed, confirmations)),
    )
    course = CoordinatorRun(
        setup=setup,
        agreed=end.agreed,
        run=begun.run,
        began=begun.created,
        hub=hub,
        files=files,
        public=public,
        clock=asyncio.get_running_loop().time,
    )
    server = GrpcServer(end.tls, hub.serve, calls_most=2 * len(end.agreed.parties))
    port = await server.start(listen)
    observe(Listening(port))
    on_listening(port)
    alive = asyncio.ensure_future(hub.keep_alive())
    error: BaseException | None = None
    try:
        await course.take_course()
        course.ended = _read_clock()
        await hub.work(keep, course)
    except BaseException as caught:
        error = caught
        raise
    finally:
        alive.cancel()
        try:
            await hub.close(choose_ending(error, hub.left))
            await server.stop()
        finally:  # also for whoever is stopped while it says farewell
            if files is not None:
                may_be_kept = course.ended and isinstance(error, Exception)  # the disk was full, say
                (files.close if may_be_kept else files.wipe)()
    return course


def take_part(
    setup: Setup,
    party: str,
    end: End,
    *,
    address: str,
    keep: Keep,
    consent: OwnConsent | None = None,
    contract: str = "",
    sources: Mapping[str, object] | None = None,
    anew: bool = False,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
    on_ledger: Callable[[str, LedgerSession], None] | None = None,
    watch: Watch | None = None,
) -> Result:
    """Take part in a run of a job as ONE of its parties.

    Parameters
    ----------
    setup
        The job, with this party's own side and nobody else's.
    party
        Which.
    end
        Its keys, and what all hold.
    address
        Where the coordinator listens.
    keep
        Keeps the result and its labels for good, before the journals are wiped.
    consent
        Its consent to the job, which the run uses up; None if its owner agrees to every run.
    contract
        The job's text as this party read it; with it there is a record of the run.
    sources
        Its table, and the public one, in place of files.
    anew
        Give up an earlier run of this job that did not end.
    on_progress, on_table, on_ledger
        Told what the coordinator says of the run; what was found in the table; what is held of the ledger.
    watch
        Shows the run to whoever operates it.

    Raises
    ------
    RefusedError
        If the coordinator does not let us in.
    TooFewPartiesError
        If the coordinator cannot be reached, or ends the run.
    CloisterError
        Whatever is wrong with our own table, ledger or files; nobody else hears of that.
    """
    require_grpc()
    watch = watch or Watch.make(setup.job, party)
    try:
        return run_until_stopped(
            watch.around(
                participate(
                    setup,
                    party,
                    end,
                    address=address,
                    keep=keep,
                    consent=consent,
                    contract=contract,
                    sources=sources,
                    anew=anew,
                    on_progress=on_progress,
                    on_table=on_table,
                    on_ledger=on_ledger,
                    observe=watch.observe,
                )
            )
        )
    except AbsentError as error:
        raise own_error(error) from None


async def participate(
    setup: Setup,
    party: str,
    end: End,
    *,
    address: str,
    keep: Keep,
    consent: OwnConsent | None = None,
    contract: str = "",
    sources: Mapping[str, object] | None = None,
    anew: bool = False,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
    on_ledger: Callable[[str, LedgerSession], None] | None = None,
    housemates: Housemates | None = None,
    observe: Observe = ignore,
) -> Result:
    """Do what `take_part` does, in an event loop that runs; ``housemates`` are what parties of one process share."""
    if party not in end.agreed.parties:
        raise ConfigError(f"a party must be one of the job's; {party!r} is not. Name one of them.")
    files = end.open_files(party, anew=anew)
    _check_consent(consent, files)
    place = PartyPlace(
        setup=setup,
        name=party,
        identity=end.identity,
        agreed=end.agreed,
        files=files,
        consent=consent,
        contract=contract,
        sources=sources or {},
        on_table=on_table,
        on_ledger=on_ledger,
        open_session=None if housemates is None else housemates.open_session,
    )
    own = PartyRun(place, keep)
    participant = Participant(
        (lambda: connect(address, end.tls)) if housemates is None else housemates.connection.open,
        end.introduce(),
        end.agreed,
        party=party,
        script=own,
        entropy=SystemEntropy(),
        deadlines=end.deadlines,
        on_progress=on_progress,
        together=None if housemates is None else housemates.together,
        observe=observe,
    )
    is_over = False  # what keeps us from going on (a table that was moved, say) may be put right
    try:
        await participant.work(own.resume)
        is_over = True
        try:
            await participant.take_part()
        except CloisterError:
            if not own.is_complete:  # otherwise it only wanted to say so
                raise
        assert own.result is not None
        return own.result
    except UnreachableError:
        is_over = False
        raise
    finally:
        await participant.close(lambda: own.close(wipe=is_over))


def _check_consent(consent: OwnConsent | None, files: RunFiles | None) -> None:
    """Refuse to call the coordinator without a consent to the run that we go on with, or to a new one."""
    if consent is None:
        return
    try:
        consent.check(b"" if files is None or files.run is None else files.run.run)
    except PolicyError:
        if files is not None:
            files.close()
        raise


def _read_clock() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def run_until_stopped(main: Coroutine[Any, Any, Value]) -> Value:
    """Run to the end, or until SIGINT or SIGTERM: then the other ends are told that we leave.

    Raises
    ------
    KeyboardInterrupt
        If it was stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(main)
    earlier = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return asyncio.run(main)
    finally:
        signal.signal(signal.SIGTERM, earlier)
