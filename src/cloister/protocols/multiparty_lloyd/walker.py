"""What a party computes, whoever adds the sums up: its contribution to a round, and the step that the sum asks for."""

from __future__ import annotations

from copy import copy

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans.assignment import Assignment, Unconstrained
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.rules import Last
from cloister.records import FloatArray, IntArray, Records


class Walker:
    """One party's records and centres.

    Parameters
    ----------
    agreement
        The public parameters.
    records
        This party's records in [-1, 1]^d; they never leave this object.
    assignment
        How records join clusters (thesis 4.1).
    duty
        Where sums are released with noise: this party's own books, charged for a round before the round's vector
        leaves, and its source of noise where the parties add it.
    """

    def __init__(
        self,
        *,
        agreement: Agreement,
        records: Records,
        assignment: Assignment | None = None,
        duty: NoiseDuty | None = None,
    ) -> None:
        self._agreement = agreement
        self._records = records
        self._assignment = assignment or Unconstrained()
        self._duty = duty
        if agreement.noise is not None:
            if duty is None:
                raise ConfigError(f"a party of {agreement.variant} must keep books; it has no duty.")
            if agreement.noise.rule.nearest_only and not isinstance(self._assignment, Unconstrained):
                raise ConfigError(
                    f"a party of {agreement.variant} must assign each record to its nearest centre: with size "
                    "constraints one record can move others, and the sensitivity would not hold; got "
                    f"{self._assignment.name}."
                )
        self.centres: FloatArray | None = None
        self.taken = 0
        """How many rounds' sums are in the centres."""
        self.released_totals: tuple[IntArray, ...] = ()
        """The noisy sums of the rounds taken; empty where no noise was added."""

    def begin(self, seed: bytes, session: bytes) -> None:
        """Draw the first centres from the common seed (thesis 5.1.1), or take the given ones."""
        self.centres = self._agreement.draw_start(Stream.from_seed(seed, "start", session))

    def branch(self) -> Walker:
        """A walker that goes on from here on its own: for steps that may turn out to be invalid."""
        return copy(self)

    def contribute(self, round_: int) -> IntArray:
        """The vector of one round: exact integers, plus our noise where the parties add it.

        Our books are charged before the vector leaves. A round must be asked for once.
        """
        assert self.centres is not None
        agreement = self._agreement
        exact = agreement.rule.contribute(self._records, self.centres, round_, self._assignment, self._last).ravel()
        plan = agreement.noise
        if plan is None or self._duty is None:
            return exact
        event = plan.release_of(round_)
        if not plan.placement.each_party_draws:
            self._duty.charger.charge(event)
            return exact
        share = plan.placement.mechanism_for_share(plan.target_of(round_))
        return release(exact, event, duty=self._duty, share=share)

    def take(self, round_: int, total: IntArray, members: int) -> None:
        """Move the centres by the sum of a round over so many parties; raises before anything has changed."""
        assert self.centres is not None
        shaped = total.reshape(self._agreement.clusters, -1)
        self.centres = self._agreement.rule.move(self.centres, shaped, round_=round_, members=members, last=self._last)
        self.taken = round_
        if self._agreement.noise is not None:
            self.released_totals = (*self.released_totals, shaped)

    @property
    def _last(self) -> Last:
        return self.released_totals[-1] if self.released_totals else None

    @property
    def released_counts(self) -> FloatArray | None:
        """Each cluster's number of records as the last noisy sums have it; None where it was not released."""
        if self._agreement.noise is None or not self.released_totals:
            return None
        return self._agreement.noise.rule.read_counts(self.released_totals[-1])
