"""The forecast of SecFC: how records are coded, and the traffic, counted with hollow sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from cloister.aggregation import SeedHolder, unpack_members
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import TAG_BYTES, Identity, Stream
from cloister.forecast.model import Forecast, PartyBytes, TrafficForecast
from cloister.forecast.traffic import HOLLOW_SESSION, HollowSession, NoNoise, extend, measure, sum_up
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocols.secfc import messages
from cloister.protocols.secfc.agreement import Coding, SecfcAgreement
from cloister.protocols.secfc.coordinator import coordinate_secfc
from cloister.protocols.secfc.layout import Layout
from cloister.protocols.secfc.leakage import describe_leakage, describe_scope, describe_who_adds_noise, name_colluding
from cloister.roles import Message
from cloister.wire import Array

_RECORDS_MEASURED = 1000  # at least: bytes of more are in proportion


def forecast_secfc(agreement: SecfcAgreement, records: int, *, guessed: bool) -> Forecast:
    """Forecast how this many records are coded, and what is sent."""
    coding = agreement.choose_coding(records)
    field = "one prime, 2^61 - 1" if coding.field.residues == 1 else "two primes below 2^61"
    advice = (
        f"secfc has no noise: its centres are those of Lloyd's algorithm on one joint table, rounded to {coding.bits} "
        "bits per coordinate, and nothing here is differentially private."
    )
    if agreement.budget is not None:
        advice = describe_scope(agreement)
    return Forecast(
        leakage=describe_leakage(agreement),
        who_adds_noise=None if agreement.budget is None else describe_who_adds_noise(agreement),
        warnings=() if agreement.budget is None else Aggregator.warnings,
        rounds_max=agreement.rounds_max,
        traffic=measure_secfc(agreement, records),
        notes=(
            f"With {records:,} records: coordinates of {coding.bits} bits, {field}. {describe_code(agreement)}",
            "Bytes are for all rounds and equally many records per party; a run usually ends earlier, when assignments "
            "repeat. Messages that align IDs are not counted."
            + (" The number of records is assumed: set it with --records N." if guessed else ""),
        ),
        advice=advice,
    )


def describe_code(agreement: SecfcAgreement) -> str:
    """Say how many clients may collude, and how many may be silent."""
    spare = agreement.parties - agreement.replies
    return (
        f"Shares tell {name_colluding(agreement)} nothing of the others' records; "
        f"{spare or 'no client'} may be silent in a round."
    )


def measure_secfc(agreement: SecfcAgreement, records: int) -> TrafficForecast:
    """Return the maximum traffic of a session, without alignment, if all clients have equally many records.

    All rounds are needed, every record changes its cluster in each, and nobody drops out.
    """
    clients, coding = agreement.parties, agreement.choose_coding(records)
    rows = [agreement.count_rows(records // clients + (place < records % clients)) for place in range(clients)]
    chunks = -(-rows[0] // coding.chunk_rows)
    least = max(_RECORDS_MEASURED, agreement.clusters)
    chunk_rows = -(-least // (chunks * (1 if agreement.union else clients)))
    if rows[0] <= 2 * chunks * chunk_rows:
        links = _measure_rounds(agreement, coding, rows, coding.chunk_rows)
    else:  # as many chunks, of fewer rows
        few, twice = (
            _measure_rounds(agreement, coding, [chunks * short] * clients, short)
            for short in (chunk_rows, 2 * chunk_rows)
        )
        links = extend(few, twice, rows[0] / (chunks * chunk_rows))
    return sum_up(links, steps=agreement.count_steps(chunks), at_most=True)


def _measure_rounds(
    agreement: SecfcAgreement, coding: Coding, rows: Sequence[int], chunk_rows: int
) -> tuple[PartyBytes, ...]:
    one, two = (measure(_hollow_session(agreement, coding, rows, chunk_rows, rounds)) for rounds in (1, 2))
    return extend(one, two, agreement.versions - 1)


@dataclass(frozen=True, kw_only=True)
class _HollowAgreement(SecfcAgreement):
    """An agreement on a session with fewer rows and shorter chunks than its field and its columns are for."""

    chunk_rows: int

    def count_rows(self, records: int) -> int:
        return records

    def choose_coding(self, records: int) -> Coding:
        return _HollowCoding(agreement=self, records_max=self.records_max or records, rows=self.chunk_rows)


@dataclass(frozen=True, kw_only=True)
class _HollowCoding(Coding):
    rows: int

    @property
    def chunk_rows(self) -> int:
        return self.rows


def _hollow_session(
    agreement: SecfcAgreement, coding: Coding, rows: Sequence[int], chunk_rows: int, rounds: int
) -> HollowSession:
    stream = Stream.from_seed(0, "traffic of secfc")
    identities = [Identity(stream.child("identity", number)) for number in range(1, agreement.parties + 1)]
    changed = {
        "records_max": coding.records_max,
        "rounds_max": rounds,
        "separate_after": None,
        "directory": tuple(identity.public_bytes for identity in identities),
    }
    kept = {field.name: getattr(agreement, field.name) for field in fields(agreement)}
    hollow = _HollowAgreement(**{**kept, **changed}, chunk_rows=chunk_rows)
    duty = None
    if agreement.budget is not None:
        duty = NoiseDuty(charger=Accountant(agreement.budget), sampler=NoNoise())
    return HollowSession(
        coordinator=coordinate_secfc(hollow, entropy=stream.child("coordinator"), session=HOLLOW_SESSION, duty=duty),
        parties=[
            _HollowClient(number, hollow, identity, stream.child("party", number), count)
            for number, (identity, count) in enumerate(zip(identities, rows, strict=True), start=1)
        ],
        codec=messages.CODEC,
    )


class _HollowClient:
    """Agrees on a seed, and answers all else with zeros; distances are such that every record moves in every round."""

    def __init__(self, number: int, agreement: SecfcAgreement, identity: Identity, entropy: Stream, rows: int) -> None:
        self._number, self._agreement, self._rows = number, agreement, rows
        self._layout: Layout | None = None
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=HOLLOW_SESSION,
            entropy=entropy,
        )

    def handle(self, request: Message) -> Message:
        """Answer."""
        match request:
            case messages.MeetPeers():
                return messages.HeldRecords(self._rows)
            case messages.ExchangeShares():
                return self._share(request)
            case messages.Measure():
                return self._measure(request)
            case messages.RevealSums() if self._layout is not None:
                return messages.SumShares(bytes(self._layout.coding.sum_box_bytes))
            case messages.BeginRounds() | messages.Finish():
                return Ready()
            case _:
                return self._seed_holder.handle(request)

    def _share(self, request: messages.ExchangeShares) -> messages.SealedShares:
        layout = self._layout = self._layout or Layout.settle(request.owners, self._agreement)
        rows = layout.count_in(self._number, request.chunk)
        box = bytes(rows * layout.coding.word_bytes * layout.coding.width + TAG_BYTES)
        others = [owner.party for owner in layout.owners if owner.party != self._number]
        return messages.SealedShares(tuple(messages.AddressedBox(other, box) for other in others) if rows else ())

    def _measure(self, request: messages.Measure) -> messages.Measured:
        """The first responder says that record i is nearest to centre i + v in version v; the others say 0."""
        assert self._layout is not None
        records, residues = self._layout.records, self._layout.coding.field.residues
        values = np.zeros((residues, records, len(request.columns)), dtype=np.uint64)
        if self._number == unpack_members(request.responders, self._agreement.parties)[0]:
            nearest = (np.arange(records) + request.news.version) % self._agreement.clusters
            values[:] = nearest[:, None] != np.array(request.columns)
        return messages.Measured(Array.of(values))
