"""Options that several protocols share: those of sums in a ring, and of the noise added to them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from msgspec import Meta

from cloister.job.model import Job
from cloister.job.options import Options
from cloister.job.refusals import KeyPath, refuse, show_value
from cloister.numeric import FixedPoint, RingBits
from cloister.privacy.placement import Aggregator, Joint, Local, Placement, Shared


class SumOptions(Options, frozen=True):
    """Options of protocols that add up fixed-point numbers in a ring.

    Attributes
    ----------
    fractional_bits, ring
        The fixed-point grid 2^-fractional_bits, and the width of the ring of the masked sums.
    min_parties
        The run aborts when fewer parties answer. By default three, if there are that many: in a sum of two, each could
        subtract its own part.
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


class NoiseOptions(SumOptions, frozen=True):
    """Options of protocols in which either the coordinator or the parties can add the noise.

    Attributes
    ----------
    placement
        Who adds the noise: the coordinator (default), every party a share of it, or every party all of it.
    colluding_max, honest_fraction
        With shares: how many parties may reveal theirs to each other, or the fraction of parties that does not. A
        fraction of 0.6 of 10 parties leaves 4 that may collude.
    """

    placement: Literal["aggregator", "shared", "local"] = "aggregator"
    colluding_max: Annotated[int, Meta(ge=1)] | None = None
    honest_fraction: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def check(self, job: Job) -> None:
        """Refuse shares of noise that dropouts or colluding parties would leave too small."""
        super().check(job)
        given = [key for key in ("colluding_max", "honest_fraction") if getattr(self, key) is not None]
        if self.placement != "shared":
            for key in given:
                got = show_value(self.placement)
                refuse(("protocol", key), 'come with placement = "shared"', got, "Remove it.")
            return
        path: KeyPath = ("protocol", "colluding_max")
        if not given:
            what_to_do = "Each party knows its own share: write at least 1."
            refuse(path, 'be given with placement = "shared"', "neither it nor honest_fraction", what_to_do)
        if len(given) > 1:
            refuse(path, "be left out with honest_fraction", "both", "They say the same: remove one.")
        self._check_shares(len(job.parties), ("protocol", given[0]))

    def _check_shares(self, parties: int, path: KeyPath) -> None:
        colluding = self.resolve_colluding_max(parties) or 0
        got = show_value(self.honest_fraction if self.colluding_max is None else self.colluding_max)
        if not 1 <= colluding < parties:
            what_to_do = "Each party knows its own share, and at least one must be honest."
            refuse(path, f"leave from 1 to {parties - 1} of {parties} parties that may collude", got, what_to_do)
        least = parties - colluding + 1  # a party knows its own share, so the others' must be enough
        if self.resolve_min_parties(parties) < least:
            must = f"be at least {least}: with fewer, one party's own share would leave less noise than promised"
            refuse(("protocol", "min_parties"), must, f"{self.min_parties} of {parties} parties")

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for this many parties."""
        colluding = self.resolve_colluding_max(parties)
        least = super().resolve_min_parties(parties)
        if self.min_parties is None and self.placement == "shared" and colluding is not None:
            least = max(least, parties - colluding + 1)  # a party knows its own share, so the others' must be enough
        return least

    def resolve_colluding_max(self, parties: int) -> int | None:
        """Return ``colluding_max``, or how many the honest fraction leaves; None if neither is given."""
        if self.honest_fraction is None:
            return self.colluding_max
        return parties - math.ceil(Fraction(str(self.honest_fraction)) * parties)  # 0.28 of 25 is 7, in doubles more

    def make_placement(self, parties: int) -> Placement:
        """Return who adds the noise among this many parties."""
        match str(self.placement):
            case "shared":
                return Shared(parties=parties, colluding_max=self.resolve_colluding_max(parties) or 0)
            case "local":
                return Local(parties=parties)
            case "joint":
                return Joint(parties=parties)
            case _:
                return Aggregator()
