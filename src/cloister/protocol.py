"""What a protocol is: one object that can agree, seat a party, coordinate, and say what was found and at what price.

A protocol is its package and one line in the registry (:mod:`cloister.protocols`). Everything outside of
``protocols/`` asks the object; nobody else knows a protocol by its name.

Two levels:

- `Roles` makes the roles of one session from what was agreed. A seat is made for ONE party, from its own input and its
  own books. Aligning records and handing out labels are sessions of this kind, too.
- `Clustering` adds what a job needs: it agrees on a job's public parameters, says what is charged, who learns what,
  what ONE party holds at the end and what its reader must know, and, for planning and audits, what to expect and how
  to attack it.

Public values come from the job alone (and from `PublicInput`), so every party computes the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.job import Job, Options
from cloister.job.options import forget_options, known_options, register_options
from cloister.privacy.card import Circumstances, PrivacyCard
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Placement
from cloister.privacy.release import Charger, NoiseDuty
from cloister.privacy.units import Budget
from cloister.records import FloatArray, IntArray, Records
from cloister.report.result import CellBook, KChoice
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec

if TYPE_CHECKING:
    from cloister.audit.attack import JobUnderAudit
    from cloister.planning.model import Forecast, PlanRequest

Agreed = TypeVar("Agreed")


# --- who learns what ------------------------------------------------------------------------------------------------


class Learns(Enum):
    """How much of a value a role learns."""

    EXACT = "exactly"
    NOISY = "with DP noise"
    OWN = "only its own"
    NOTHING = "nothing of"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell of a leakage table, in words a user understands."""

    role: str
    value: str
    meaning: str
    learns: Learns


@dataclass(frozen=True, kw_only=True)
class LeakageTable:
    """Who learns what, and which coalition undoes it; printed in reports and checked against recorded views."""

    source: str
    rows: tuple[Row, ...]
    breaks_if: str

    def learns(self, role: str, value: str) -> Learns:
        """Look one cell up."""
        return next(row.learns for row in self.rows if (row.role, row.value) == (role, value))


# --- what goes in -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicInput:
    """What everyone knows besides the job.

    Attributes
    ----------
    server
        The server's points in [-1, 1]^d, where the job names a public table.
    records
        How many records were aligned.
    alignment
        The alignment's digest; None where rows stand in the same order already, or nothing was aligned.
    """

    server: FloatArray | None = field(default=None, repr=False)
    records: int | None = None
    alignment: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnInput:
    """What ONE party brings into a session.

    Attributes
    ----------
    records
        Its records; where columns are split, its columns of the aligned records, in the common order.
    places
        Where records are aligned by ID and each has one holder: the place of each of its records in the common order.
    """

    records: Records
    places: IntArray | None = field(default=None, repr=False)


# --- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Charges:
    """What a job's releases may cost, and who pays when.

    Attributes
    ----------
    budget, placement
        What is allowed, and who adds the noise.
    prepaid
        What each ledger is charged before the first round.
    prepayment
        All rounds as one payment, where they are not known before the first; each round is then taken out of it.
    by_rho
        Whether rounds have noise of different scales, so that only their rho can be compared with the payment's.
    plan
        All rounds, where they are known and the accountant's tighter rules apply.
    coordinator_books
        Makes the books of a coordinator that adds noise; None where it never does.
    parties_pay
        Whether the parties charge their books; otherwise only the coordinator's are.
    """

    budget: Budget
    placement: Placement
    prepaid: tuple[Release, ...] = ()
    prepayment: Release | None = None
    by_rho: bool = False
    plan: tuple[Release, ...] | None = None
    coordinator_books: Callable[[], Charger] | None = None
    parties_pay: bool = True


class CardMaker(Protocol):
    """Makes the privacy card from the books that were charged, and from what is known of the run."""

    def __call__(self, circumstances: Circumstances, *, middleman: str = "coordinator") -> PrivacyCard: ...


# --- what comes out -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What ONE party holds at the end of a clustering; whoever finishes holds the same.

    Attributes
    ----------
    centres
        (k, d) in [-1, 1]^d.
    rounds
        Rounds of Lloyd's algorithm.
    cluster_records, cluster_records_noise, released_records, curve
        As in ``report.result.Result``.
    codebooks
        Where columns are split: for each encrypted party its cells.
    details
        The protocol's own record of the run, for `Clustering.tell`.
    """

    centres: FloatArray = field(repr=False)
    rounds: int
    cluster_records: tuple[float, ...] = ()
    cluster_records_noise: float | None = None
    released_records: float | None = None
    curve: tuple[KChoice, ...] = ()
    codebooks: tuple[CellBook, ...] = ()
    details: Any = None


@dataclass(frozen=True, kw_only=True)
class Story:
    """What the reader of a result must know besides its numbers; all of it public or released.

    Attributes
    ----------
    leakage, public
        Who learned what; what everyone knows.
    notes
        What else the reader must know.
    card
        What is promised, where there is a budget.
    middleman
        Whoever stands between the parties: the coordinator, or a relay.
    ring_bits
        None where nothing was masked in a ring.
    fractional_bits
        Of the coordinates, where that is not the job's.
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
    def seat(
        self, agreed: Agreed, seat: Seat, own: OwnInput, *, duty: NoiseDuty | None = None, cache: Any = None
    ) -> Party:
        """Make ONE party's role, from its own input and its own books.

        Parameters
        ----------
        agreed
            The public parameters.
        seat
            Its place in the session.
        own
            What it brings.
        duty
            Its books and its source of noise, where there is a budget.
        cache
            From `make_cache`, where several parties sit in one process.
        """

    @abstractmethod
    def coordinate(
        self, agreed: Agreed, *, session: bytes, entropy: Entropy, duty: NoiseDuty | None = None
    ) -> Coordinator[Any]:
        """Make the coordinator's role; ``duty`` where it adds noise."""

    def make_cache(self, agreed: Agreed, guard: AbstractContextManager[object] = nullcontext()) -> Any:  # noqa: B008
        """Return what parties of one process can share so that public things are computed once; None for nothing.

        ``guard`` is a lock, where parties run in several threads.
        """

    def close(self, party: Party) -> None:
        """Wipe what a party's role must not keep, also where the session was given up."""


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A job that runs in place of another, and why."""

    job: Job
    why: str


class Clustering(Roles[Agreed]):
    """A protocol that clusters the records of a job's parties."""

    Options: ClassVar[type[Options]]
    """Its options; their tag is the protocol's name, their facts say what it takes and promises in general."""

    @property
    def name(self) -> str:
        """In jobs, in results and on the wire."""
        return str(self.Options.__struct_config__.tag)

    # --- public side: from the job alone, the same at every party

    def stand_in(self, job: Job, public: PublicInput) -> StandIn | None:
        """Return the job that runs instead where the public input lacks what this protocol needs."""
        return None

    @abstractmethod
    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> Agreed:
        """Translate a job into the public parameters of a session; refuse now what would be refused after payment.

        ``directory`` holds the parties' public identities.
        """

    def charges(self, agreed: Agreed) -> Charges | None:
        """Say what is charged; None without noise."""
        return None

    @abstractmethod
    def leakage(self, agreed: Agreed) -> LeakageTable:
        """Say who learns what, and which coalition breaks it."""

    def explain_choice(self, job: Job, others: str) -> str:
        """Say why this protocol is used, and which ``others`` there are for the same split."""
        variant = job.protocol.variant_in_words
        named = f"{self.name}, {variant}" if variant else self.name
        return f"the job names {named}; the default for rows split across organisations is {default_name()}; also: {others}."

    # --- results

    @abstractmethod
    def find(self, agreed: Agreed, party: Party, outcome: Any) -> Finding | None:
        """Return what ONE party holds at the end; None if it did not stay to the end.

        ``outcome`` is what the coordinator's role returned, which is public.
        """

    @abstractmethod
    def tell(self, job: Job, agreed: Agreed, finding: Finding, outcome: Any, make_card: CardMaker | None) -> Story:
        """Say what the reader of a result must know; ``make_card`` where there is a budget."""

    # --- optional

    def label_session(
        self, job: Job, directory: tuple[bytes, ...], public: PublicInput, finding: Finding
    ) -> LabelSession | None:
        """Return the session in which parties get the labels of their records, where the job grants them."""
        return None

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Say what a job would do, cost and find, from public values and made-up records."""
        raise ConfigError(f"a plan must be of a protocol that can make one; got {self.name}, which cannot.")

    def attacks(self, job: Job, public: PublicInput) -> JobUnderAudit:
        """Build attacks on a job's claim, on made-up records; refuse where it claims nothing."""
        raise ConfigError(
            f"an audit must have a claim about records added or removed; got {self.name}, which makes none. "
            "Audit a differentially private job."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelSession:
    """A session that hands out labels: its roles, what was agreed, who gets labels, and how to read a party's."""

    roles: Roles[Any]
    agreed: Any
    granted: tuple[int, ...]
    """The numbers of the parties that get labels."""
    read: Callable[[Party], IntArray]
    """Returns one granted party's labels, one per aligned record in the common order."""


# --- the registry -------------------------------------------------------------------------------------------------------

_REGISTRY: dict[str, Clustering[Any]] = {}


def register(protocol: Clustering[Any]) -> None:
    """Make a protocol known by its name: in job files, simulations, plans, audits and reports."""
    if protocol.name in _REGISTRY:
        raise ConfigError(f"a protocol must have a name of its own; got {protocol.name}, which is taken.")
    register_options(protocol.Options)
    _REGISTRY[protocol.name] = protocol


def unregister(name: str) -> None:
    """Forget a protocol."""
    del _REGISTRY[name]
    forget_options(name)


def find_protocol(job: Job) -> Clustering[Any]:
    """Return a job's protocol."""
    known_options()  # the registry is filled by now
    return _REGISTRY[job.protocol.name]


def registered_protocols() -> Mapping[str, Clustering[Any]]:
    """Return all protocols by name, in the order of registration; the first is the default."""
    known_options()
    return _REGISTRY


def default_name() -> str:
    """Return the name of the protocol that a job gets which names none."""
    return next(iter(registered_protocols()))
