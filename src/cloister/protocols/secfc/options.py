"""The options of SecFC, and which codes the parties could decode."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from cloister.job import Job
from cloister.job.options import Facts, Options
from cloister.job.refusals import KeyPath, check_integer, refuse


class SecfcOptions(Options, frozen=True, tag="secfc"):
    """Options of SecFC.

    Attributes
    ----------
    iterations
        The most assignments to the nearest centre; the session ends as soon as they repeat.
    privacy, segments
        t and l: how many clients may collude, and how many segments a record is cut into.
    coordinate_bits
        By default as many as the field has room for.
    separate_after
        After how many assignments clusters are separated once (section 5); by default never.
    """

    facts: ClassVar[Facts] = Facts(
        budget="optional",
        ledger=False,
        data_keys=frozenset({"records", "id"}),
        alignment="union",
        clusters_most=65_535,
        remedy="Another start finds less: run again.",
        private=False,
        hides_values="shares and pads in a prime field",
    )
    iterations: Annotated[int, Meta(ge=1, le=10_000)] = 100
    privacy: Annotated[int, Meta(ge=1)] | None = None
    segments: Annotated[int, Meta(ge=1)] = 1
    coordinate_bits: Annotated[int, Meta(ge=2, le=31)] | None = None
    separate_after: Annotated[int, Meta(ge=0)] | None = None

    def check(self, job: Job) -> None:
        """Refuse numbers beyond the columns, rounds and parties, and codes that too few parties could decode."""
        parties = len(job.parties)
        check_integer(("protocol", "segments"), self.segments, 1, job.dimensions)
        if self.separate_after is not None:
            check_integer(("protocol", "separate_after"), self.separate_after, 0, self.iterations - 1)
        if self.privacy is not None:
            check_integer(("protocol", "privacy"), self.privacy, 1, parties)
        if 2 * self.resolve_privacy(parties) + 2 * self.segments - 1 > parties:
            self._refuse_code(parties)

    def name_placement(self, parties: int) -> str:
        """The coordinator adds the noise."""
        return "aggregator"

    def _refuse_code(self, parties: int) -> None:
        """Refuse the code, and say which one the parties could decode."""
        privacy, segments = self.resolve_privacy(parties), self.segments
        path: KeyPath = ("protocol", "privacy")
        must = "be so small that 2 privacy + 2 segments - 1 is at most the number of parties"
        if self.privacy is None and segments == 1:
            path, must = ("parties",), "be at least 3 with the protocol secfc, the fewest that can decode a distance"
        most = (parties + 1 - 2 * segments) // 2
        what_to_do = f"With {parties} parties and segments = {segments}, privacy is at most {most}."
        if most < 1:
            what_to_do = f"With segments = {segments}, there must be at least {1 + 2 * segments} parties."
        refuse(path, must, f"privacy = {privacy}, segments = {segments}, {parties} parties", what_to_do)

    def resolve_privacy(self, parties: int) -> int:
        """Return ``privacy``, or its default: a third of the parties as in the paper (5.1), or what fits.

        One client may then be silent in a round, where there are four or more.
        """
        if self.privacy is not None:
            return self.privacy
        return max(1, min((parties - 2 * self.segments) // 2, -(-parties // 3)))
