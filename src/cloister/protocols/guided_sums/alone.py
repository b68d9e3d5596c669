"""One party that holds the whole table: it asks itself, pays, and adds the noise once. Nothing is sent or masked.

The algorithm, its questions, their prices and the books are those of a session between several. The algorithm sees
totals with noise only, so whatever it finds is post-processing of what was paid for (docs/proofs/synopsis.md, "One
table"). Totals are not published; the promise would hold if they were.
"""

from __future__ import annotations

from typing import Any

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.privacy.placement import Owner
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import LeakageTable, Learns, Row
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, explain_nothing
from cloister.protocols.guided_sums.coordinator import GuidedOutcome
from cloister.protocols.guided_sums.party import release_answer
from cloister.records import IntArray, Records
from cloister.roles import Message, Seat


class LoneParty:
    """The only party.

    Parameters
    ----------
    seat
        Its place: where its randomness comes from.
    agreed
        The public parameters.
    records
        Its records in [-1, 1]^d, on the agreed grid.
    duty
        Its books and its source of noise.
    """

    votes = None
    """There is nobody else to sign a result."""

    def __init__(self, *, seat: Seat, agreed: GuidedSession[Any], records: Records, duty: NoiseDuty) -> None:
        self._seat, self._agreed, self._records, self._duty = seat, agreed, records, duty
        self._finding: GuidedFinding | None = None
        self.released_totals: tuple[IntArray, ...] = ()
        """The noisy numbers of each round, whole slots."""

    @property
    def finished(self) -> bool:
        """Whether the algorithm has ended."""
        return self._finding is not None

    @property
    def finding(self) -> GuidedFinding:
        """The result, once there is one; refused as for several parties, where there were too few records for one."""
        if self._finding is None:
            raise LocalProtocolError("the algorithm must have ended before anything is found; it has not.")
        if self._finding.is_nothing:
            raise explain_nothing()
        return self._finding

    def handle(self, request: Message) -> Message:
        """Refuse: nobody has anything to ask."""
        raise RemoteProtocolError("the only party of a job takes no requests; got one.")

    def work(self) -> GuidedOutcome:
        """Run the algorithm, once.

        Privacy
        -------
        Neighbours: one unit added or removed. Each round is charged before its noise is drawn (`release_answer`); the
        prices add up to at most what was prepaid, which the books check. Theorem: docs/proofs/synopsis.md, claim 6.
        """
        agreement: Agreement[Any] = self._agreed.agreement
        asking = self._agreed.algorithm(agreement.settings, Stream(self._seat.entropy.bytes(32)))
        query = next(asking)
        for round_ in range(1, len(agreement.slots) + 1):
            total = release_answer(agreement, round_, query, self._records, duty=self._duty)
            self.released_totals = (*self.released_totals, total)
            try:
                query = asking.send(total[: query.length])
            except StopIteration as stop:
                self._finding = stop.value
                break
        rounds = len(agreement.slots)
        if not self.finished or len(self.released_totals) != rounds:
            raise LocalProtocolError(f"the algorithm must end after {rounds} rounds; it did not: this is a bug.")
        return GuidedOutcome(rounds=rounds, members=((1,),) * (rounds + 1))


PUBLIC = "columns, bounds, k or the most it may be, and the budget"
"""What everyone knows."""


def make_leakage(source: str) -> LeakageTable:
    """Who learns what of one table: its owner has it anyway; everybody else sees the result."""
    placement = Owner()
    return LeakageTable(
        source=source,
        rows=(
            Row(role="owner", value="statistics", meaning="every record", learns=Learns.EXACT),
            Row(
                role="reader",
                value="centres",
                meaning="the centres at the end, and how many records each has",
                learns=Learns.NOISY,
            ),
        ),
        withstands=placement.withstands(masked_twice=False),
        breaks_if=placement.breaks_if(masked_twice=False),
    )
