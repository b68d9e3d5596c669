"""Attacks on vertical clusterings, in the views of whoever computes and of whoever decrypts.

How many records there are is public, so neighbours are tables of n - 1 and n aligned records under the same public n:
holders of the last record have nothing at its place on one input. All other records are in the middle of the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.audit import Attack, Claim, JobUnderAudit, Neighbour
from cloister.audit.attack import (
    SESSIONS_AT_ONCE,
    KeptNoise,
    find_corner,
    find_far_outside,
    find_middle,
    make_identities,
    make_table,
)
from cloister.crypto import Identity, Stream
from cloister.job import Job
from cloister.lattice.lwe import SmallLweBatch
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.attack_views import Observed, ReadErrors, View, read_answer_errors, read_fresh_errors
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.noise import ChargedFlood
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.query import Query
from cloister.protocols.vertical.relayed import Opened, Said
from cloister.protocols.vertical.uploads import Receiver
from cloister.records import FloatArray, IntArray
from cloister.roles import Seat
from cloister.runtime import run_local

_RECORDS = 64  # made up: noise does not depend on how many there are, and one ciphertext holds them all
_RECORDS_EACH = 4  # for each cluster at least


def count_records(job: Job) -> int:
    """Return how many records an audit makes up."""
    return max(_RECORDS, _RECORDS_EACH * job.k)


def attack_vertical(job: Job, agreement: VerticalAgreement, prepaid: Sequence[Release]) -> JobUnderAudit:
    """Build the attacks on a vertical job with a budget; ``agreement`` is of `make_identities`."""
    assert job.budget is not None
    identities = make_identities(job)
    known = _scale(job, find_middle(job))
    records = {
        "at a corner of the domain": _scale(job, find_corner(job)),
        "far outside the domain": _scale(job, find_far_outside(job)),
    }
    attacks = []
    for coalition in list_coalitions(agreement):
        for place, record in records.items():
            view = View(
                agreement=agreement,
                members=coalition.members,
                known=np.repeat(known[None, :], agreement.settings.records - 1, axis=0),
                record=record,
            )
            sessions = VerticalSessions(view, identities, reads_errors=coalition.reads_errors)
            attacks.append(
                Attack(
                    name=f"one more record, {place}, as {coalition.name} sees it",
                    run=sessions.run,
                    labels=sessions.labels,
                    most_at_once=SESSIONS_AT_ONCE,
                )
            )
    spent = Accountant(job.budget).would_spend(prepaid)
    return JobUnderAudit(
        attacks=tuple(attacks), claim=Claim(epsilon=job.budget.epsilon, delta=job.budget.delta, rho=spent.rho)
    )


@dataclass(frozen=True, kw_only=True)
class Coalition:
    """Parties that share what they know; ``reads_errors``: one of them knows all keys and all ciphertexts' errors."""

    name: str
    members: tuple[int, ...]
    reads_errors: bool


def list_coalitions(agreement: VerticalAgreement) -> tuple[Coalition, Coalition]:
    """Return as many as may collude, once with the computing party and once without it."""
    most = agreement.settings.placement.colluding_max
    decryptors = agreement.key_holders[: agreement.decryptors]
    with_alice = (agreement.computing, *decryptors[: most - 1])
    without = decryptors[:most]
    alone = "the computing party"
    return (
        Coalition(
            name=alone if most == 1 else f"{alone} with {most - 1} of those who decrypt",
            members=with_alice,
            reads_errors=False,
        ),
        Coalition(
            name="the key holder" if most == 1 else f"{len(without)} of those who decrypt",
            members=without,
            reads_errors=agreement.is_seeded,
        ),
    )


class VerticalSessions:
    """Runs a job's protocol over and over on two neighbouring inputs.

    Parameters
    ----------
    view
        Whose view, of which records.
    identities
        Who takes part.
    reads_errors
        Whether the view has the errors of ciphertexts.
    """

    def __init__(self, view: View, identities: tuple[Identity, ...], *, reads_errors: bool) -> None:
        self._view = view
        self._identities = identities
        self._reads_errors = reads_errors

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of a view's entries."""
        return tuple(self._view.name_entries(errors=self._reads_errors))

    def run(self, side: Neighbour, runs: int, stream: Stream) -> IntArray:
        """Return what the coalition makes of what it reads, one row per run."""
        roles = range(self._view.agreement.parties + 1)
        samplers = [KeptNoise(stream.child("noise", role)) for role in roles]
        entropies = [stream.child("keys", role) for role in roles]
        table = self._view.known
        if side is Neighbour.WITH:
            table = np.vstack([table, self._view.record])
        return np.array([self._view.read(self._observe(table, samplers, entropies)) for _ in range(runs)])

    def _observe(self, table: FloatArray, samplers: list[KeptNoise], entropies: list[Stream]) -> Observed:
        """Run one session on these records."""
        agreement = self._view.agreement
        budget = agreement.settings.budget
        assert budget is not None
        session = entropies[0].bytes(16)
        drawn = [sampler.start() for sampler in samplers]
        parties: list[_Computing | _Holder] = []
        for number, identity in enumerate(self._identities, start=1):
            kind = _Computing if number == agreement.computing else _Holder
            parties.append(
                kind(
                    Seat(number=number, identity=identity, entropy=entropies[number], session=session),
                    agreement,
                    _pick_columns(agreement, number, table),
                    duty=NoiseDuty(charger=Accountant(budget), sampler=samplers[number]),
                )
            )
        coordinator = coordinate_vertical(agreement, session=session)
        run_local(coordinator, parties, codec=CODEC, session=session, threads=1)
        alice = parties[agreement.computing - 1]
        assert isinstance(alice, _Computing)
        key_holder = parties[agreement.key_holders[0] - 1]
        return Observed(
            codebooks=alice.codebooks,
            queries=alice.queries,
            totals=alice.released_totals,
            shares=find_shares(agreement, alice.queries, drawn),
            errors=key_holder.read if self._reads_errors and isinstance(key_holder, _Holder) else None,
        )


def find_shares(
    agreement: VerticalAgreement, queries: list[Query], drawn: list[list[IntArray]]
) -> dict[int, list[IntArray]]:
    """Return what each holder of noise added in each pass, out of all it drew; codebooks come first, floods last."""
    floods = isinstance(agreement.flood, ChargedFlood)
    shares = {}
    for party in (agreement.computing, *agreement.key_holders[: agreement.decryptors]):
        extra = 1 if floods and party == agreement.computing else 0
        rest = drawn[party][len(drawn[party]) - sum(len(query.parts) + extra for query in queries) :]
        own = []
        for query in queries:
            own.append(np.concatenate(rest[: len(query.parts)]))
            rest = rest[len(query.parts) + extra :]
        shares[party] = own
    return shares


class _Watched(VerticalParty):
    """A party whose last record may be missing.

    ``columns`` are of the records that are there, one less than the public number or all of them. A missing one is a
    place of which nothing is known, encrypted as zeros and never weighted.
    """

    def __init__(
        self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray, *, duty: NoiseDuty | None = None
    ) -> None:
        places = np.zeros((agreement.settings.records, columns.shape[1]))
        super().__init__(seat, agreement, places, duty=duty)
        self._columns = columns


class _Computing(_Watched, ComputingParty):
    """Alice, watched: her questions are kept."""

    def __init__(
        self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray, *, duty: NoiseDuty | None = None
    ) -> None:
        super().__init__(seat, agreement, columns, duty=duty)
        self.queries: list[Query] = []

    def _compute(self) -> bytes:
        self.queries.append(self.inquiry.query)
        return super()._compute()


class _Holder(_Watched, HolderParty):
    """A holder, watched; where it has all keys and ciphertexts, it reads errors too."""

    def __init__(
        self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray, *, duty: NoiseDuty | None = None
    ) -> None:
        super().__init__(seat, agreement, columns, duty=duty)
        self._sent: Receiver | None = None  # reads what we sent, as Alice does
        self._fresh: list[IntArray] = []
        self._answers: list[FloatArray] = []

    @property
    def read(self) -> ReadErrors:
        """All errors that were read."""
        return ReadErrors(fresh=np.concatenate(self._fresh, axis=1), answers=self._answers)

    def _upload(self, opened: Opened) -> Said:
        said = super()._upload(opened)
        agreement = self._agreement
        if agreement.is_seeded:
            assert self._keys is not None
            assert self._public is not None
            self._sent = self._sent or Receiver(agreement, self._public, None)
            self._sent.take([said.letters[agreement.computing]], opened.stage.index)
            for number, block in zip(agreement.blocks_of(opened.stage.index), self._sent.release(), strict=True):
                rows = agreement.records_of(number)
                self._fresh.append(read_fresh_errors(self._keys, block, rows.stop - rows.start))
        return said

    def _decrypt(self, opened: Opened) -> Said:
        _, batch = self._read_asked(opened)
        said = super()._decrypt(opened)
        if self._agreement.is_seeded:
            assert isinstance(batch, SmallLweBatch)
            assert self._keys is not None
            self._answers.append(read_answer_errors(self._keys, batch))
        return said


def _pick_columns(agreement: VerticalAgreement, number: int, table: FloatArray) -> FloatArray:
    """One party's columns of whole records."""
    layout = agreement.settings.layout
    if number == agreement.computing:
        return layout.alice_part(table)
    if number in agreement.encrypted:
        return layout.holder_part(table, agreement.encrypted.index(number))
    return np.ascontiguousarray(table[:, :0])


def _scale(job: Job, row: FloatArray) -> FloatArray:
    """Return one record as a table yields it: scaled, clipped to the domain, on the grid."""
    (scaled,) = np.concatenate(list(make_table(job, row[None, :]).batches()))
    point: FloatArray = scaled
    return point
