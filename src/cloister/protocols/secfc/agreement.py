"""What all roles of a SecFC session agree on, before it and in it.

A `SecfcAgreement` follows from the job alone. The number of records is agreed on in the session's first exchange, in
which every client says how many it has. A `Coding` follows from the total: the grid, a field in which no distance
among that many records can overflow, and what fits a message. Every role derives it itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import msgspec

from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto import TAG_BYTES
from cloister.errors import ConfigError
from cloister.field import FIELD61, FIELD122, Field, LagrangeCode, choose_field, most_bits
from cloister.numeric import FixedPoint
from cloister.privacy.calibration import calibrate_gaussian
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.samplers import check_draw
from cloister.privacy.units import Budget, Sensitivity
from cloister.wire.codec import DEFAULT_LIMIT_BYTES

BITS_MOST = 17
"""Coordinates of tables: [-1, 1] in steps of 2^-16."""
BITS_FEWEST = 10
"""Below this, two primes with all bits are used rather than one with fewer."""
_WORD_BYTES = 8
_CHUNK_BYTES = 4 * 2**20  # of shares in one message: a coordinator holds one message of each client at a time
_ROOM_BYTES = DEFAULT_LIMIT_BYTES - 4096
_BOX_BYTES = TAG_BYTES + 16  # of a sealed box: its tag, and MessagePack around it


@dataclass(frozen=True, kw_only=True)
class SecfcAgreement:
    """The public parameters of one job; equal on every side or the session does not open.

    Parameters
    ----------
    clusters, dimensions
        k and d.
    privacy, segments
        t, how many clients may collude, and l, how many segments a record is cut into: 2t + 2l - 1 <= n.
    records_max
        With ``union``, how many records there are. Otherwise a public cap on all clients' records together, if one
        is declared: the field then follows from the cap, otherwise from the total.
    rounds_max
        The most assignments to the nearest centre; the session ends earlier if they repeat.
    coordinate_bits
        b: coordinates are rounded to 2^-(b-1). ``"auto"`` takes as many bits, up to 17, as fit the field 2^61 - 1; if
        that is fewer than 10, it takes two primes.
    separate_after
        After how many assignments the clusters are separated once, by the 1/3 rule of section 5, if the session has not
        ended by then. 0: before the first, as published; None: never.
    reveal_centres
        Whether the clients reveal the final centres to each other at the end.
    budget
        What noise on the revealed sums may cost; None reveals them exactly. What it promises is less than a
        differentially private protocol does: :func:`~cloister.protocols.secfc.leakage.describe_scope`.
    union
        Membership privacy (section 6, appendix B): every client shares a row for each record of the union, zeros where
        it does not hold it. No record may be held by two.
    directory
        The clients' public identities, in order.
    context
        Whatever else must be agreed (columns and bounds, digest of the alignment), as text.
    """

    clusters: int
    dimensions: int
    privacy: int
    segments: int = 1
    records_max: int | None = None
    rounds_max: int = 100
    coordinate_bits: int | Literal["auto"] = "auto"
    separate_after: int | None = 0
    reveal_centres: bool = False
    budget: Budget | None = None
    union: bool = False
    directory: tuple[bytes, ...] = field(repr=False)
    context: str = ""

    def __post_init__(self) -> None:
        _require(1 <= self.parties < 2**15, "directory", "of 1 to 32767 clients", self.parties)
        _require(1 <= self.clusters < 2**16, "clusters", "from 1 to 65535", self.clusters)
        _require(self.dimensions >= 1, "dimensions", "at least 1", self.dimensions)
        _require(1 <= self.rounds_max < 2**19, "rounds_max", "from 1 to 2^19 - 1", self.rounds_max)
        most = self.records_max
        _require(most is not None or not self.union, "records_max", "the number of records with union", most)
        bits = self.coordinate_bits
        _require(bits == "auto" or 2 <= bits <= 31, "coordinate_bits", "'auto' or from 2 to 31", bits)
        after = self.separate_after
        _require(
            after is None or 0 <= after < self.rounds_max, "separate_after", "None, or from 0 to rounds_max - 1", after
        )
        _require(self.segments <= self.dimensions, "segments", "at most the number of columns", self.segments)
        _require(self.budget is None or self.reveal_centres, "budget", "None unless centres are revealed", self.budget)
        # What no total would allow is refused here rather than in the session.
        self.choose_coding(self.clusters if most is None else most)
        if self.budget is not None:
            # Room: |sum| <= m 2^(b-1) <= sqrt(order), and a draw is below 90 * 2^40: together below order / 2 and 2^63.
            event = self.price_noise(self.budget, BITS_MOST if bits == "auto" else bits)
            check_draw(event.mechanism, event.entries)

    def count_rows(self, records: int) -> int:
        """Return how many rows a client with this many records shares: with ``union``, one for each of its records."""
        return self.records_max if self.union and self.records_max is not None else records

    def choose_coding(self, records: int) -> Coding:
        """Return how records are coded if all clients together have this many.

        Raises
        ------
        ConfigError
            If there are fewer than clusters or more than were declared, or messages would be too long.
        PrecisionError
            If no field is large enough.
        """
        if records < self.clusters:
            raise ConfigError(
                f"all parties together must hold at least clusters.k = {self.clusters} records; they hold fewer."
            )
        check_declared(records, self.records_max)
        return Coding(agreement=self, records_max=self.records_max or records)

    def price_noise(self, budget: Budget, bits: int) -> Release:
        """Return what noise on the revealed sums costs a record, given the labels; coordinates have this many bits.

        Privacy
        -------
        Neighbours: one record's VALUE is replaced by another that leaves the labels of all rounds as they are; NOT
        add/remove, and nothing is promised of the labels. Sensitivity: each coordinate of one cluster's sum moves by
        at most 2^b. Event: this release, against up to t clients without the coordinator. Theorem: claim 8 of
        docs/proofs/secfc.md.
        """
        step = 1 << bits
        sensitivity = Sensitivity(l1=self.dimensions * step, l2_squared=self.dimensions * step**2)
        return Release(
            name="sums of the final clusters, given the labels",
            mechanism=DiscreteGaussian(sigma=calibrate_gaussian(budget, sensitivity.l2_squared, 1)),
            sensitivity=sensitivity,
            entries=self.clusters * self.dimensions,
        )

    @property
    def parties(self) -> int:
        """The number of clients, n."""
        return len(self.directory)

    @cached_property
    def replies(self) -> int:
        """How many clients' distances are decoded together: 2l + 2t - 1."""
        return self.make_code(FIELD61).replies

    @cached_property
    def holders(self) -> int:
        """How many clients reveal a sum together: l + t."""
        return self.make_code(FIELD61).holders

    def make_code(self, chosen: Field) -> LagrangeCode:
        """Return the code of the shares over a field."""
        return LagrangeCode(field=chosen, clients=self.parties, segments=self.segments, privacy=self.privacy)

    @property
    def versions(self) -> int:
        """How many labellings there can be: the start, the separated one, and one for each assignment."""
        return self.rounds_max + 1 + (self.separate_after is not None)

    def count_steps(self, chunks: int = 1) -> int:
        """Expected steps if all rounds are needed: opening, meeting, sharing, rounds, reveal, finish."""
        return SEED_STEPS + 1 + chunks + 1 + 1 + (self.versions - 1) + self.reveal_centres + 1

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of every field."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return hashlib.sha256(msgspec.msgpack.encode(fields, order="sorted")).digest()


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How the records of one session are coded.

    Parameters
    ----------
    agreement
        What was agreed before.
    records_max
        How many records there are, or the declared cap on that.
    """

    agreement: SecfcAgreement
    records_max: int

    def __post_init__(self) -> None:
        column_bytes = _WORD_BYTES * self.field.residues * self.records_max
        longest = max(column_bytes, self.row_bytes, self.finish_bytes)
        if longest > _ROOM_BYTES:
            raise ConfigError(
                f"one column of distances ({column_bytes} bytes), the shares of one record ({self.row_bytes}) and the "
                f"result ({self.finish_bytes}) must each fit a message of {_ROOM_BYTES} bytes; they do not. Use fewer "
                "records, columns, clusters or clients."
            )

    @cached_property
    def bits(self) -> int:
        """The coordinates' bits, b: chosen, or given."""
        agreement = self.agreement
        if agreement.coordinate_bits != "auto":
            return agreement.coordinate_bits
        one, two = (
            most_bits(candidate, dimensions=agreement.dimensions, records=self.records_max)
            for candidate in (FIELD61, FIELD122)
        )
        return max(2, min(one if one >= BITS_FEWEST else two, BITS_MOST))

    @property
    def fixed_point(self) -> FixedPoint:
        """The grid of the coordinates: lambda = 2^(b-1) of appendix A, with rounding to the nearest."""
        return FixedPoint(self.bits - 1)

    @cached_property
    def field(self) -> Field:
        """The field in which no distance can overflow; if there is none, the error says which numbers are too large."""
        return choose_field(dimensions=self.agreement.dimensions, records=self.records_max, bits=self.bits)

    @cached_property
    def code(self) -> LagrangeCode:
        """The code of the shares."""
        return self.agreement.make_code(self.field)

    @cached_property
    def noise_event(self) -> Release | None:
        """What noise on the revealed sums costs; None if there is none."""
        budget = self.agreement.budget
        return None if budget is None else self.agreement.price_noise(budget, self.bits)

    @property
    def width(self) -> int:
        """The length of one share of a record."""
        return self.code.width(self.agreement.dimensions)

    @property
    def word_bytes(self) -> int:
        """One element of the field, on the wire."""
        return _WORD_BYTES * self.field.residues

    @property
    def row_bytes(self) -> int:
        """The shares of one record for all other clients, on the wire."""
        return (self.agreement.parties - 1) * (self.word_bytes * self.width + _BOX_BYTES)

    @property
    def sum_box_bytes(self) -> int:
        """A box with one client's share of the sums."""
        return self.word_bytes * self.agreement.clusters * self.width + TAG_BYTES

    @property
    def finish_bytes(self) -> int:
        """The labels and what reveals the centres, on the wire."""
        sums = self.sum_box_bytes - TAG_BYTES + _BOX_BYTES
        return 4 * self.records_max + (self.code.holders * sums if self.agreement.reveal_centres else 0)

    @property
    def chunk_rows(self) -> int:
        """How many records' shares go in one message."""
        return max(1, _CHUNK_BYTES // self.row_bytes)

    @property
    def columns_most(self) -> int:
        """How many clusters' distances fit one reply."""
        return _ROOM_BYTES // (self.word_bytes * self.records_max)


def check_declared(records: int, declared: int | None) -> None:
    """Refuse more records than a job declares."""
    if declared is not None and records > declared:
        raise ConfigError(
            f"data.records = {declared} must be at least the number of records, which SecFC makes public; there are "
            "more. Leave it out."
        )


def _require(holds: bool, name: str, must: str, got: object) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {must}; got {got}.")
