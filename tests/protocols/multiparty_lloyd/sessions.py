"""Sessions of multiparty Lloyd for tests: agreed on from arrays, without a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloister.aggregation import Follower
from cloister.kmeans.assignment import Assignment, Unconstrained
from cloister.privacy.release import NoiseDuty
from cloister.protocols.multiparty_lloyd.agreement import Agreement, LloydSession
from cloister.protocols.multiparty_lloyd.protocol import LloydClustering
from cloister.records import ArrayRecords
from tests.sessions import SESSION, Session, make_directory


class Rounds(Session):
    """A session whose public parameters are at hand; records are put on its grid."""

    def __init__(
        self,
        agreement: Agreement,
        records: Sequence[np.ndarray],
        *,
        assignment: Assignment | None = None,
        seed: int = 7,
        duties: Sequence[NoiseDuty] = (),
        coordinator_duty: NoiseDuty | None = None,
    ) -> None:
        self.agreement = agreement
        self.records = [agreement.fixed_point.quantise(part) for part in records]
        super().__init__(
            LloydClustering(),
            LloydSession(agreement=agreement, assignment=assignment or Unconstrained()),
            self.records,
            seed=seed,
            duties=dict(enumerate(duties, start=1)),
            coordinator_duty=coordinator_duty,
        )

    @property
    def record_tables(self) -> list[ArrayRecords]:
        return [ArrayRecords(part) for part in self.records]

    def read_totals(self, run: Any, party: Any, number: int) -> list[np.ndarray]:
        """What one party can read: the total of each round, from the messages that it received."""
        masks, agreement = party._introduction.masks, self.agreement
        state = self.party(number).state
        state.begin(masks.seed, SESSION)
        follower = Follower(seat=self.seat(number), terms=agreement.sums, contributor=state, length=agreement.length)
        found = []
        for entry in run.views[number]:
            for total in getattr(entry.message, "news", ()):
                if total.attempt.round > follower.taken:
                    reading = masks.read(total, follower.place, agreement.length)
                    found.append(agreement.ring.decode(reading.elements).reshape(agreement.clusters, -1))
                    follower.take((total,), upto=total.attempt.round, masks=masks)
        return found


def make_session(
    variant: str = "masked-sum-count",
    *,
    records: Sequence[np.ndarray],
    clusters: int = 3,
    iterations: int = 4,
    seed: int = 7,
    assignment: Assignment | None = None,
    **options: Any,
) -> Rounds:
    """Agree on everything that is not said; an exact variant."""
    if variant == "naive":
        options.setdefault("start_by", "coordinator")
    agreement = Agreement(
        variant=variant,
        parties=len(records),
        clusters=clusters,
        dimensions=records[0].shape[1],
        iterations=iterations,
        directory=make_directory(seed, len(records)),
        **{"max_records": 10_000, **options},
    )
    return Rounds(agreement, records, assignment=assignment, seed=seed)


def split(points: np.ndarray, parties: int, seed: int = 0) -> list[np.ndarray]:
    """Deal the records out at random, unevenly."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(parties, size=len(points))
    owner[:parties] = range(parties)
    return [points[owner == party] for party in range(parties)]
