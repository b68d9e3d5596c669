"""What a forecast holds: frozen values, all from the job and from made-up records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloister.job.noise_options import PlacementKind
from cloister.privacy.units import Counted, LeakageTable
from cloister.runtime import OnProgress


@dataclass(frozen=True, kw_only=True)
class Range:
    """The minimum and the maximum over the families that were tried."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Size:
    """A size of the job that is tried: the number of records of all parties together, and of parties."""

    records: int
    parties: int


@dataclass(frozen=True, kw_only=True)
class FamilyLoss:
    """How good the centres were on one family of made-up records."""

    family: str
    ratio: float
    """The ratio of the loss to that of k-means without privacy on the same records, averaged over the runs."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What to expect for one number of records and one epsilon; at client level, for one number of parties.

    Attributes
    ----------
    epsilon, records, parties
        What the case is for. At client level, records are in proportion to parties.
    route
        What the histogram is over: the columns, axes found in noisy second moments, or the joint cells of parties that
        hold different columns.
    cells, rounds
        Cells of the histogram, and rounds of Lloyd's algorithm that are needed.
    losses
        One per family.
    centre_noise
        The standard deviation from run to run of a coordinate of a centre of average size, columns scaled to [-1, 1],
        over the families whose clusters all have about that size.
    smallest_cluster
        Records that a compact, separate cluster must have to get a centre in half of the runs. None if
        not even one of average size does, or if it was not looked for.
    smallest_without_privacy
        The same for k-means without privacy, which may also spend a centre elsewhere.
    looked_for_smallest
        Whether they were looked for.
    counted
        What these numbers count: records, or persons where each counts once at a party.
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
    counted: Counted = "records"

    @property
    def loss_ratio(self) -> Range:
        """The range of loss ratios over all families."""
        ratios = [loss.ratio for loss in self.losses]
        return Range(low=min(ratios), high=max(ratios))


@dataclass(frozen=True, kw_only=True)
class RoundNoise:
    """What to expect from noisy Lloyd for one number of records: the noise of the last round on a centre."""

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
class TrafficForecast:
    """The bytes and messages of a session if nobody drops out.

    Attributes
    ----------
    steps
        Exchanges between the coordinator and the parties, one after another.
    leader
        Party 1, which seals the common seed to the others.
    other
        Each other party; in a ring, the one with the most bytes.
    total_bytes
        The bytes of all parties, in both directions.
    at_most
        Whether the run may end earlier.
    uneven
        Whether some parties carry less than ``other``.
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
        The party's name, and what it does, in words.
    carried
        What its link carries.
    upload_bytes
        The part of that which is its encrypted columns; 0 if it has none.
    """

    name: str
    does: str
    carried: PartyBytes
    upload_bytes: int


@dataclass(frozen=True, kw_only=True)
class QuorumNoise:
    """What shares of the noise cost for one quorum.

    Attributes
    ----------
    min_parties, parties, colluding_max
        A sum is over at least so many of the parties, and so many of them may collude.
    variance_ratio
        The variance of all shares together, over what privacy needs: of the ``honest_min`` that nobody else knows.
    """

    min_parties: int
    parties: int
    colluding_max: int
    variance_ratio: float

    @property
    def honest_min(self) -> int:
        """How many shares are the noise that privacy needs."""
        return self.min_parties - self.colluding_max


@dataclass(frozen=True, kw_only=True)
class PlacementForecast:
    """What to expect if the noise were added by others, or as the job says.

    Attributes
    ----------
    placement
        The coordinator, shares, each party in full, or all together, by its name in job files.
    chosen
        Whether it is the job's.
    variance_ratio
        The variance of all noise on a number, over what privacy needs.
    noise_ratio
        Its standard deviation, over that of the job's placement.
    removed_by
        Who could take the noise away again, in a few words.
    traffic
        Messages and bytes.
    quorums
        With shares: what the quorum costs that the job has or would have; then, where it is possible, another one: all
        parties, or one fewer.
    smallest_clusters
        Where a plan forecasts the smallest cluster: that for each of its numbers of records. For placements other than
        the job's it is scaled by the noise, as the trials show it to grow. None if not even a cluster of average size
        is seen, or if the trials do not show how it grows.
    """

    placement: PlacementKind
    chosen: bool
    variance_ratio: float
    noise_ratio: float
    removed_by: str
    traffic: TrafficForecast
    quorums: tuple[QuorumNoise, ...] = ()
    smallest_clusters: tuple[int | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What to make a plan for.

    Attributes
    ----------
    sizes
        The sizes of the job to try, ascending.
    records
        The number of records if the job declares it or the user guesses it; else None.
    guessed
        Whether it is a guess.
    epsilons
        To compare with the job's own; None for the default ones.
    quick
        Try less.
    on_progress
        Called after each family of made-up records.
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
    warnings
        What everybody must heed who has the result.
    rounds_max, traffic
        Rounds on the wire, needed or not; messages and bytes.
    what_runs
        How the job runs, a sentence or two each; by default the number of rounds.
    cases, round_noise, placements, notes, advice
        As in `Plan`.
    exact_losses, links, memory_bytes
        As in `Plan`.
    middleman
        The role between the parties: the coordinator, or a relay.
    """

    leakage: LeakageTable
    who_adds_noise: str | None = None
    warnings: tuple[str, ...] = ()
    rounds_max: int
    traffic: TrafficForecast
    what_runs: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    round_noise: tuple[RoundNoise, ...] = ()
    placements: tuple[PlacementForecast, ...] = ()
    notes: tuple[str, ...] = ()
    advice: str = ""
    exact_losses: tuple[FamilyLoss, ...] = ()
    links: tuple[PartyLink, ...] = ()
    memory_bytes: int | None = None
    middleman: str = "coordinator"
