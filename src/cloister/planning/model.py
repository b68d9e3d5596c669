"""What a plan is: frozen values, all of them from the job file and from made-up records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloister.columns import Column
from cloister.protocol import LeakageTable
from cloister.runtime.progress import OnProgress


@dataclass(frozen=True, kw_only=True)
class Range:
    """The least and the most over the families that were tried."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Size:
    """A size of the job that is tried: records of all parties together, and parties."""

    records: int
    parties: int


@dataclass(frozen=True, kw_only=True)
class FamilyLoss:
    """How good the centres were on one family of made-up records."""

    family: str
    ratio: float
    """The loss over that of k-means without privacy on the same records, mean over the runs."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What to expect for one number of records and one epsilon; at client level, for one number of parties.

    Attributes
    ----------
    epsilon, records, parties
        For which. At client level the records grow with the parties, so many each.
    route
        Where the histogram is laid: on the columns, or on axes found in noisy second moments; over the cells of several
        parties that hold different columns.
    cells, rounds
        Cells of the histogram, and rounds of Lloyd's algorithm that are needed.
    losses
        One for each family.
    centre_noise
        The standard deviation of a coordinate of a centre of average size from run to run, columns scaled to [-1, 1];
        over the families whose clusters are all of about that size.
    smallest_cluster
        Records that a compact cluster apart from all others must have to get a centre in half of the runs. None where
        not even one of average size does, or where it was not looked for.
    smallest_without_privacy
        The same for k-means without privacy: where one centre more is worth more elsewhere, no noise is to blame.
    looked_for_smallest
        Whether they were looked for.
    """

    epsilon: float
    records: int
    parties: int
    route: Literal["direct", "projected", "joint"]
    cells: int
    rounds: int
    losses: tuple[FamilyLoss, ...]
    centre_noise: Range
    smallest_cluster: int | None
    smallest_without_privacy: int | None
    looked_for_smallest: bool

    @property
    def loss_ratio(self) -> Range:
        """Over all families."""
        ratios = [loss.ratio for loss in self.losses]
        return Range(low=min(ratios), high=max(ratios))


@dataclass(frozen=True, kw_only=True)
class RoundNoise:
    """What to expect of noisy Lloyd for one number of records: the noise of its last round on a centre."""

    records: int
    centre_noise: float
    """The standard deviation of a coordinate of a centre of average size, columns scaled to [-1, 1]."""


@dataclass(frozen=True, kw_only=True)
class PartyBytes:
    """What one party's link carries if nobody drops out."""

    bytes_up: int
    bytes_down: int
    messages_up: int
    messages_down: int


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What goes over the wire if nobody drops out.

    Attributes
    ----------
    steps
        Exchanges between the coordinator and the parties, one after another.
    leader
        Party 1, which seals the common seed to the others.
    other
        Each other party; in a ring the one with the most to carry.
    total_bytes
        Of all parties, both ways.
    at_most
        Whether the run may stop earlier.
    uneven
        Whether other parties carry less than ``other``.
    """

    steps: int
    leader: PartyBytes
    other: PartyBytes
    total_bytes: int
    at_most: bool = False
    uneven: bool = False


@dataclass(frozen=True, kw_only=True)
class PartyLink:
    """What one party does and what its link carries, where parties differ.

    Attributes
    ----------
    name, does
        Who it is, and what it does, in words.
    carried
        What its link carries.
    upload_bytes
        Its encrypted columns, which are part of that; 0 where it has none.
    """

    name: str
    does: str
    carried: PartyBytes
    upload_bytes: int


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What a plan is to be made for.

    Attributes
    ----------
    sizes
        Which sizes of the job to try, rising.
    records
        The number of records where the job declares it or the user guesses it; None where nobody says.
    guessed
        Whether it is a guess.
    epsilons
        To compare with the job's own; None for the usual ones.
    quick
        Try less.
    on_progress
        Told about each family of made-up records that was tried.
    """

    sizes: tuple[Size, ...]
    records: int | None = None
    guessed: bool = False
    epsilons: tuple[float, ...] | None = None
    quick: bool = False
    on_progress: OnProgress | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of records to try."""
        return tuple(size.records for size in self.sizes)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The part of a plan that its protocol fills.

    Attributes
    ----------
    leakage
        Who learns what, and which coalition breaks it.
    who_adds_noise
        In words; None without noise.
    rounds_max, traffic
        Rounds on the wire, needed or not; messages and bytes.
    what_runs
        How it runs, a sentence or two each; by default how many rounds there are.
    cases, round_noise, notes, advice
        As in `Plan`.
    exact_losses, links, memory_bytes
        As in `Plan`.
    middleman
        Whoever stands between the parties: the coordinator, or a relay.
    """

    leakage: LeakageTable
    who_adds_noise: str | None = None
    rounds_max: int
    traffic: Traffic
    what_runs: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    round_noise: tuple[RoundNoise, ...] = ()
    notes: tuple[str, ...] = ()
    advice: str = ""
    exact_losses: tuple[FamilyLoss, ...] = ()
    links: tuple[PartyLink, ...] = ()
    memory_bytes: int | None = None
    middleman: str = "coordinator"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a job would do, cost and find, said before anything is spent. No table was opened for it.

    Attributes
    ----------
    name, protocol, parties, k, choose_k, columns
        As in the job; with ``choose_k``, ``k`` is the most.
    why
        Why this protocol, and which others there are.
    epsilon, delta, unit
        The budget; None where the job is not differentially private.
    who_adds_noise
        In words; None without noise.
    learned, breaks_if
        Who learns what, and which coalition breaks it.
    declared_records
        The number of records that the job declares public.
    records
        For which numbers of records the plan was made, rising; at client level, one for each number of parties.
    rounds_max
        Rounds on the wire, needed or not.
    traffic
        Messages and bytes.
    what_runs
        How it runs, in sentences.
    cases
        Where losses are forecast: each epsilon and number of records that was tried.
    round_noise
        With noise in each round of Lloyd's algorithm: one for each number of records.
    exact_losses
        Where there is no noise, and approximation costs something: losses over those of k-means on whole records.
    links
        Where parties do different things: one for each.
    memory_bytes
        What the busiest party needs for ciphertexts and sums; None where that is little.
    notes, advice
        What the reader must know besides, and what follows from it.
    split
        Whether parties hold different rows, or different columns of the same rows.
    """

    name: str
    protocol: str
    parties: int
    k: int
    choose_k: bool
    columns: tuple[Column, ...]
    why: str
    epsilon: float | None
    delta: float | None
    unit: str | None
    who_adds_noise: str | None
    learned: str
    breaks_if: str
    declared_records: int | None
    records: tuple[int, ...]
    rounds_max: int
    traffic: Traffic
    split: Literal["rows", "columns"] = "rows"
    what_runs: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    round_noise: tuple[RoundNoise, ...] = ()
    exact_losses: tuple[FamilyLoss, ...] = ()
    links: tuple[PartyLink, ...] = ()
    memory_bytes: int | None = None
    notes: tuple[str, ...] = ()
    advice: str = ""

    @property
    def by_parties(self) -> bool:
        """Whether cases differ by the number of parties, which are the units, and not of records."""
        return self.unit == "client"

    def find_case(self, *, epsilon: float, records: int) -> Case:
        """Return the case of one epsilon and number of records."""
        return next(case for case in self.cases if (case.epsilon, case.records) == (epsilon, records))
