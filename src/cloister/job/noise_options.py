"""Options that several protocols share: those of sums in a ring, and of the noise added to them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from msgspec import Meta

from cloister.aggregation import MaskKind, least_quorum
from cloister.job.model import Job
from cloister.job.options import Options
from cloister.job.refusals import KeyPath, refuse, show_value
from cloister.numeric import FixedPoint, RingBits
from cloister.privacy.placement import Aggregator, Joint, Local, Owner, Placement, Shared

PlacementKind = Literal["aggregator", "shared", "local", "joint"]
PADS_MOST = 300
"""Up to so many parties add the noise themselves by default: each pads its vector with every other one."""
_ALL_STAY = 5  # up to so many parties all must stay, by default: one that is missing can come back


class SumOptions(Options, frozen=True):
    """Options of protocols that add up fixed-point numbers in a ring.

    Attributes
    ----------
    fractional_bits, ring
        The fixed-point grid 2^-fractional_bits, and the width of the ring of the masked sums.
    min_parties
        The run aborts when fewer parties answer. By default three, where there are as many: in a sum of two each could
        subtract itself; with shared noise all of up to five parties, and all but one of more.
    """

    fractional_bits: Annotated[int, Meta(ge=1, le=30)] = 16
    ring: Literal["auto", 32, 64] = "auto"
    min_parties: Annotated[int, Meta(ge=2)] | None = None

    def check(self, job: Job) -> None:
        """Refuse to wait for more parties than there are."""
        parties = len(job.parties)
        if self.min_parties is not None and self.min_parties > parties:
            must = "be at most the number of parties"
            refuse(("protocol", "min_parties"), must, f"{self.min_parties} of {parties} parties")

    @property
    def grid(self) -> FixedPoint:
        """The grid that tables are rounded to."""
        return FixedPoint(self.fractional_bits)

    @property
    def ring_bits(self) -> RingBits | Literal["auto"]:
        """The ring that the job asks for."""
        return self.ring

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for this many parties."""
        return min(3, parties) if self.min_parties is None else self.min_parties


def default_placement(parties: int) -> PlacementKind:
    """Return who adds the noise where a job does not say."""
    if parties > PADS_MOST:
        return "aggregator"
    return "shared" if parties > 2 else "local"


def default_colluding_max(parties: int) -> int:
    """Return how many parties may collude where a job does not say: a third of them, and at least one."""
    return max(1, (parties - 1) // 3)


def default_quorum(parties: int, colluding_max: int) -> int:
    """Return how many parties a sum is over where a job does not say: each missing one costs noise in every run."""
    return parties if parties <= _ALL_STAY else max(parties - 1, least_quorum(parties, colluding_max))


def check_quorum(min_parties: int, parties: int, colluding_max: int) -> None:
    """Refuse sums of which two could be opened in a round."""
    least = least_quorum(parties, colluding_max)
    if min_parties < least:
        must = f"be at least {least}, so that any two sums of a round have an honest party in common"
        got = f"{min_parties} of {parties} parties, of which {colluding_max} may collude"
        refuse(("protocol", "min_parties"), must, got, "Raise it, or let fewer parties collude.")


class NoiseOptions(SumOptions, frozen=True):
    """Options of protocols in which either the coordinator or the parties can add the noise.

    Attributes
    ----------
    placement
        Who adds the noise: every party a share of it (default from three parties on), every party all of it (default of
        two), or the coordinator, which then must never see the result (default beyond `PADS_MOST` parties).
    masks
        From a seed that all parties know, or double masks, which no coordinator removes with up to ``colluding_max``
        parties; double by default where parties add shares of the noise.
    colluding_max, honest_fraction
        With shares: how many parties may tell each other theirs, by default a third of them; or the same as the
        fraction that does not. 0.6 of 10 parties leaves 4 that may collude.
    """

    placement: Literal["aggregator", "shared", "local"] | None = None
    masks: MaskKind | None = None
    colluding_max: Annotated[int, Meta(ge=1)] | None = None
    honest_fraction: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def check(self, job: Job) -> None:
        """Refuse shares of noise that dropouts or colluding parties would leave too small."""
        super().check(job)
        parties = len(job.parties)
        if parties == 1:
            self._check_alone()
            return
        given = [key for key in ("colluding_max", "honest_fraction") if getattr(self, key) is not None]
        if self.resolve_placement(parties) == "shared":
            self._check_shares(given, parties)
        else:
            for key in given:
                got = show_value(self.resolve_placement(parties))
                refuse(("protocol", key), 'come with placement = "shared"', got, "Remove it.")
        if self.resolve_masks(parties) == "double":
            check_quorum(self.resolve_min_parties(parties), parties, self.resolve_colluding_max(parties))

    def _check_alone(self) -> None:
        """Refuse what is between several parties."""
        for key in ("placement", "masks", "colluding_max", "honest_fraction", "min_parties"):
            if getattr(self, key) is not None:
                what_to_do = "Whoever holds the table adds the noise; there is nobody to mask it from: remove it."
                refuse(("protocol", key), "be left out with one party", show_value(getattr(self, key)), what_to_do)

    def _check_shares(self, given: list[str], parties: int) -> None:
        if len(given) > 1:
            path: KeyPath = ("protocol", "colluding_max")
            refuse(path, "be left out with honest_fraction", "both", "They say the same: remove one.")
        colluding = self.resolve_colluding_max(parties)
        if not 1 <= colluding < parties:
            got = show_value(self.honest_fraction if self.colluding_max is None else self.colluding_max)
            must = f"leave from 1 to {parties - 1} of {parties} parties that may collude"
            what_to_do = "Each party knows its own share, and somebody must be honest."
            refuse(("protocol", *(given or ["placement"])), must, got, what_to_do)
        check_quorum(self.resolve_min_parties(parties), parties, colluding)

    def resolve_placement(self, parties: int) -> PlacementKind:
        """Return who adds the noise among this many parties: as given, or the default."""
        return self.placement or default_placement(parties)

    def name_placement(self, parties: int) -> str:
        """Return who adds the noise."""
        return self.resolve_placement(parties)

    def name_masks(self, parties: int) -> str:
        """Return what masks the sums."""
        return self.resolve_masks(parties)

    def resolve_masks(self, parties: int) -> MaskKind:
        """Return what masks the sums."""
        return self.masks or ("double" if self.resolve_placement(parties) == "shared" else "common")

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for so many parties; with double masks more than half of them."""
        if self.min_parties is not None:
            return self.min_parties
        colluding = self.resolve_colluding_max(parties)
        if self.resolve_placement(parties) == "shared":
            return default_quorum(parties, colluding)
        least = super().resolve_min_parties(parties)
        return max(least, least_quorum(parties, colluding)) if self.resolve_masks(parties) == "double" else least

    def resolve_colluding_max(self, parties: int) -> int:
        """Return how many parties may collude: as given, or what the honest fraction leaves; 0 without shares."""
        if self.honest_fraction is not None:
            return parties - math.ceil(Fraction(str(self.honest_fraction)) * parties)  # 0.28 of 25 is 7, not 8
        if self.resolve_placement(parties) != "shared":
            return 0
        return default_colluding_max(parties) if self.colluding_max is None else self.colluding_max

    def make_placement(self, parties: int) -> Placement:
        """Return who adds the noise among this many parties."""
        if parties == 1:
            return Owner()
        match self.resolve_placement(parties):
            case "shared":
                return Shared(
                    parties=parties,
                    colluding_max=self.resolve_colluding_max(parties),
                    quorum=self.resolve_min_parties(parties),
                )
            case "local":
                return Local(parties=parties)
            case "joint":
                return Joint(parties=parties)
            case _:
                return Aggregator()
