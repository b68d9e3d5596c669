"""What a protocol is: one object that agrees on parameters, seats parties, coordinates, and explains the outcome.

A protocol is one package and one line in the registry (:mod:`cloister.protocols`). Code outside ``protocols/`` asks the
object and never refers to a protocol by name.

There are two levels:

- `Roles` makes the roles of one session from what was agreed. A role is made for ONE party, from that party's own input
  and its own books. Sessions that align records or distribute labels are of this kind, too.
- `Clustering` adds what a job needs. It derives the public parameters, the charges and the leakage table. It extracts
  what ONE party holds at the end and explains it to the reader. For plans and audits, it makes a forecast and attacks.

Public values come from the job and `PublicInput` alone, so every party computes the same ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from cloister.audit import JobUnderAudit
from cloister.audit.whole_view import Released
from cloister.columns import Scale
from cloister.crypto import PUBLIC_KEY_BYTES, Entropy, is_signed
from cloister.data import open_table
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.forecast.model import Forecast, PlanRequest
from cloister.job import Job, Options, Setup
from cloister.job.options import forget_options, known_options, register_options
from cloister.privacy.books import Charges
from cloister.privacy.card import Circumstances, PrivacyCard
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import LeakageTable
from cloister.records import FloatArray, IntArray, Records
from cloister.report.result import CellBook, KChoice
from cloister.report.sizes import Sizes
from cloister.roles import Coordinator, Party, PartyNumber, Seat
from cloister.wire import Codec

__all__ = [
    "RESULT_VOTE",
    "SERVER",
    "CardMaker",
    "Clustering",
    "Coordinator",
    "Explanation",
    "Finding",
    "LabelSession",
    "OwnInput",
    "Party",
    "PublicInput",
    "Roles",
    "Seat",
    "StandIn",
    "ToldOutcome",
    "ToldRounds",
    "Votes",
    "default_name",
    "find_protocol",
    "placeholder_directory",
    "prepare_audit",
    "read_public_input",
    "register",
    "resolve_protocol",
    "unregister",
]

Agreed = TypeVar("Agreed")


# --- input ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicInput:
    """What everyone knows besides the job.

    Attributes
    ----------
    server
        The server's points in [-1, 1]^d, if the job names a public table.
    records
        How many records were aligned.
    alignment
        The alignment's digest; None if the rows are already in the same order or nothing was aligned.
    """

    server: FloatArray | None = field(default=None, repr=False)
    records: int | None = None
    alignment: str | None = None


SERVER = "server"
"""The name of the public table, in jobs and among a caller's sources."""


def read_public_input(setup: Setup, source: object = None) -> PublicInput:
    """Read the public table that a job names, if it names one; ``source`` replaces the file."""
    job = setup.job
    if source is None and job.data.server is not None:
        source = setup.folder / job.data.server
    if source is None:
        return PublicInput()
    table = open_table(
        source,
        job.columns,
        fixed_point=job.protocol.grid,
        match=job.data.match,
        missing="drop" if job.data.missing == "drop" else "refuse",
        label="the server's data" + (f" ({source})" if isinstance(source, str | Path) else ""),
    )
    return PublicInput(server=np.concatenate(list(table.batches())))


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnInput:
    """What ONE party brings into a session.

    Attributes
    ----------
    records
        Its records. Where columns are split: its columns of the aligned records, in the common order.
    places
        The place of each of its records in the common order, where records are aligned by ID and each has one holder.
    """

    records: Records
    places: IntArray | None = field(default=None, repr=False)


# --- cost -------------------------------------------------------------------------------------------------------------


class CardMaker(Protocol):
    """Makes the privacy card from the books that were charged and the circumstances of the run."""

    def __call__(self, circumstances: Circumstances) -> PrivacyCard:
        """Make the card."""


# --- output -----------------------------------------------------------------------------------------------------------

RESULT_VOTE = "guided sums result"
"""What stands in front of everything that is signed as a vote on a result."""


class Votes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signatures of those who found the same result, over what the coordinator has seen, too.

    Attributes
    ----------
    session
        In which session.
    statement
        What they had in common: derived from the parties' common seed and a hash over sealed boxes, never over what is
        in them.
    members, signatures
        Who signed, by their numbers; what, in the same order.
    """

    session: bytes
    statement: bytes
    members: tuple[int, ...]
    signatures: tuple[bytes, ...]

    def count(self, directory: Sequence[bytes]) -> int:
        """Return how many of the parties with these identities have signed."""
        if len(self.members) != len(self.signatures) or len(set(self.members)) != len(self.members):
            return 0
        return sum(
            1 <= member <= len(directory)
            and is_signed(signature, directory[member - 1], RESULT_VOTE, self.session, self.statement)
            for member, signature in zip(self.members, self.signatures, strict=True)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What ONE party holds at the end of a clustering; all parties that finish hold the same.

    Attributes
    ----------
    centres
        (k, d) in [-1, 1]^d.
    rounds
        Rounds of Lloyd's algorithm.
    sizes, curve
        As in ``report.result.Result``.
    centre_noise
        (k, d), in unit scaling: the standard deviations of what noise does to the centres; None where it is not known.
        It follows from what was released and from public scales of noise alone.
    scale
        The map from original units to the centres' domain, if a spread was released; else the job's bounds are.
    codebooks
        Where columns are split: the cells of each encrypted party.
    details
        The protocol's own record of the run, which `Clustering.explain` reads.
    votes
        On the result, where the protocol has some that may be shown.
    """

    centres: FloatArray = field(repr=False)
    rounds: int
    sizes: Sizes | None = None
    centre_noise: FloatArray | None = field(default=None, repr=False)
    curve: tuple[KChoice, ...] = ()
    scale: Scale | None = None
    codebooks: tuple[CellBook, ...] = ()
    details: Any = None
    votes: Votes | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What the reader of a result must know besides its numbers; all of it is public or released.

    Attributes
    ----------
    leakage, public
        Who learned what; what everyone knows.
    notes
        What else the reader must know.
    card
        The privacy card, if there is a budget.
    middleman
        The role between the parties: the coordinator, or a relay.
    ring_bits
        The width of the masks' ring; None if nothing was masked in a ring.
    fractional_bits
        The coordinates' fractional bits, if they differ from the job's.
    """

    leakage: LeakageTable
    public: str
    notes: tuple[str, ...] = ()
    card: PrivacyCard | None = None
    middleman: str = "coordinator"
    ring_bits: int | None = None
    fractional_bits: int | None = None


# --- the interface ----------------------------------------------------------------------------------------------------


class Roles(ABC, Generic[Agreed]):
    """Makes the roles of one session."""

    @abstractmethod
    def codec(self, agreed: Agreed) -> Codec:
        """The messages of the session."""

    @abstractmethod
    def seat(self, agreed: Agreed, seat: Seat, own: OwnInput, *, duty: NoiseDuty | None = None) -> Party:
        """Make ONE party's role, from its own input and its own books.

        Parameters
        ----------
        agreed
            The public parameters.
        seat
            Its place in the session.
        own
            Its input.
        duty
            Its books and its source of noise, where there is a budget.
        """

    @abstractmethod
    def coordinate(
        self, agreed: Agreed, *, session: bytes, entropy: Entropy, duty: NoiseDuty | None = None
    ) -> Coordinator[Any]:
        """Make the coordinator's role; it takes a ``duty`` if it adds noise."""

    def work_alone(self, agreed: Agreed, party: Party) -> Any:
        """Run the only party of a job, without a coordinator; return the public outcome."""
        raise LocalProtocolError("a protocol that takes one party must say how it works alone; this one does not.")

    def close(self, party: Party) -> None:
        """Wipe what a party's role must not keep, even if the session was aborted."""


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A job that runs in place of another, and the reason."""

    job: Job
    why: str


class ToldOutcome(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the coordinator tells the parties of its outcome; protocols derive from it and name the fields."""


class ToldRounds(ToldOutcome, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rounds there were; who was in the sum of each, and after them who signed, where that is so."""

    rounds: Annotated[int, Meta(ge=0)]
    members: Annotated[tuple[tuple[PartyNumber, ...], ...], Meta(min_length=1)]


class Clustering(Roles[Agreed]):
    """A protocol that clusters the records of a job's parties."""

    Told: ClassVar[type[ToldOutcome]] = ToldOutcome
    """What `find` and `explain` read of the coordinator's outcome: every party may know it."""

    Options: ClassVar[type[Options]]
    """Its options. Their tag is the protocol's name; their facts hold for all its jobs."""

    @property
    def name(self) -> str:
        """The name in jobs, in results and on the wire."""
        return str(self.Options.__struct_config__.tag)

    # --- public side: from the job alone, the same at every party

    def stand_in(self, job: Job, public: PublicInput) -> StandIn | None:
        """Return the job that runs instead if the public input lacks what this protocol needs."""
        return None

    @abstractmethod
    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> Agreed:
        """Translate a job into the public parameters of a session; what cannot run is refused here, before any payment.

        ``directory`` holds the parties' public identities.
        """

    @abstractmethod
    def digest(self, agreed: Agreed) -> bytes:
        """Return the SHA-256 of all public parameters, derived ones too: everyone in a session must have the same."""

    def members_min(self, agreed: Agreed) -> int:
        """Return how many parties must have a seat before anything is asked, and so before anything is charged."""
        return 1

    def charges(self, agreed: Agreed) -> Charges | None:
        """Return what is charged; None without noise."""
        return None

    @abstractmethod
    def leakage(self, agreed: Agreed) -> LeakageTable:
        """Return who learns what, and which coalition breaks the protection."""

    def explain_choice(self, job: Job, others: str) -> str:
        """Explain why this protocol is used, and name the ``others`` for the same split."""
        variant = job.protocol.variant_in_words
        named = f"{self.name}, {variant}" if variant else self.name
        default = f"the default for rows split across organisations is {default_name()}"
        return f"the job names {named}; {default}; also: {others}."

    # --- results

    @abstractmethod
    def find(self, agreed: Agreed, party: Party, outcome: Any) -> Finding | None:
        """Return what ONE party holds at the end; None if it did not stay to the end.

        ``outcome`` is what the coordinator's role returned, which is public.
        """

    @abstractmethod
    def explain(
        self, job: Job, agreed: Agreed, finding: Finding, outcome: Any, make_card: CardMaker | None
    ) -> Explanation:
        """Explain a finding to the reader of the result; ``make_card`` is given if there is a budget."""

    # --- between organisations

    def tell(self, outcome: Any) -> bytes:
        """Encode what every party may know of the coordinator's outcome: the fields of `Told`, and nothing else."""
        return msgspec.msgpack.encode(msgspec.convert(outcome, self.Told, from_attributes=True))

    def hear(self, agreed: Agreed, told: bytes) -> Any:
        """Read what the coordinator told, as `find` and `explain` take it.

        Raises
        ------
        RemoteProtocolError
            If it is anything else.
        """
        try:
            return msgspec.msgpack.decode(told, type=self.Told)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise RemoteProtocolError(
                "the coordinator must tell its outcome as its protocol does; it did not."
            ) from None

    def list_coordinator_charges(self, agreed: Agreed, outcome: Any) -> tuple[Release, ...]:
        """Return what the coordinator's books were charged, where parties keep none: every party can compute it."""
        return ()

    # --- optional

    def label_session(
        self, job: Job, directory: tuple[bytes, ...], public: PublicInput, finding: Finding
    ) -> LabelSession | None:
        """Return the session in which parties get the labels of their records, if the job grants any."""
        return None

    def label_relay(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> LabelSession | None:
        """Return the same session as its coordinator knows it, who has no finding."""
        return None

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Forecast what a job would do, cost and find, from public values and made-up records."""
        raise ConfigError(f"a plan must be for a protocol that supports plans; got {self.name}, which does not.")

    def find_released(self, agreed: Agreed, parties: Sequence[Party]) -> Released | None:
        """Return what a session released, from all its parties; None if the protocol cannot say. For audits."""
        return None

    def attacks(self, job: Job, public: PublicInput) -> JobUnderAudit:
        """Build attacks on a job's claim, on made-up records; refuse a job that claims nothing."""
        raise ConfigError(
            f"an audit must have a claim about added or removed records to test; got {self.name}, which makes none. "
            "Audit a differentially private job."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelSession:
    """A session that distributes labels: its roles, what was agreed, who gets labels, and how to read a party's."""

    roles: Roles[Any]
    agreed: Any
    granted: tuple[int, ...]
    """The numbers of the parties that get labels."""
    read: Callable[[Party], IntArray]
    """Returns one granted party's labels, one per aligned record in the common order."""


def placeholder_directory(job: Job) -> tuple[bytes, ...]:
    """Return placeholder identities for plans: who the parties are does not change any length."""
    return (bytes(PUBLIC_KEY_BYTES),) * len(job.parties)


# --- the registry -----------------------------------------------------------------------------------------------------

_MAKERS: dict[str, Callable[[], Clustering[Any]]] = {}
_MADE: dict[str, Clustering[Any]] = {}


def register(options: type[Options], make: Callable[[], Clustering[Any]]) -> None:
    """Make a protocol known by its options' tag: in job files, simulations, plans, audits and reports.

    ``make`` returns its object, for the first job that needs it; it is the object's class, or imports it.
    """
    name = str(options.__struct_config__.tag)
    if name in known_options():
        raise ConfigError(f"a protocol must have a unique name; got {name}, which is taken.")
    register_options(options)
    _MAKERS[name] = make


def unregister(name: str) -> None:
    """Forget a protocol."""
    forget_options(name)
    del _MAKERS[name]
    _MADE.pop(name, None)


def find_protocol(job: Job) -> Clustering[Any]:
    """Return a job's protocol."""
    name = job.protocol.name
    if name not in _MADE:
        _MADE[name] = _MAKERS[name]()
    return _MADE[name]


def resolve_protocol(job: Job, public: PublicInput) -> tuple[Job, Clustering[Any], tuple[str, ...]]:
    """Return the job that runs, its protocol, and the reasons if that is not the job that was asked for."""
    protocol = find_protocol(job)
    stand_in = protocol.stand_in(job, public)
    if stand_in is None:
        return job, protocol, ()
    return stand_in.job, find_protocol(stand_in.job), (stand_in.why,)


def prepare_audit(job: Job | Setup) -> JobUnderAudit:
    """Build the attacks on a differentially private job. No party's table is opened.

    Raises
    ------
    ConfigError
        If the job claims nothing.
    """
    setup = Setup.of(job)
    job = setup.job
    if job.budget is None:
        raise ConfigError(
            f"an audit must have a claim to refute; got the protocol {job.protocol.name} without a [budget]. "
            "Audit a differentially private job."
        )
    public = read_public_input(setup)
    job, protocol, _ = resolve_protocol(job, public)
    return protocol.attacks(job, public)


def default_name() -> str:
    """Return the name of the protocol of a job that does not name one."""
    return next(iter(known_options()))
