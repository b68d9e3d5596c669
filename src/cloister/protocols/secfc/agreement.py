"""What all roles of a SecFC session agree on: every public parameter, one digest, and what follows from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import msgspec

from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto.sealing import TAG_BYTES
from cloister.errors import ConfigError
from cloister.field import (
    FIELD61,
    FIELD122,
    Field,
    LagrangeCode,
    choose_field,
    largest_distance,
    most_bits,
)
from cloister.numeric import FixedPoint
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.samplers import check_draw
from cloister.privacy.units import Sensitivity
from cloister.protocol import LeakageTable, Learns
from cloister.protocols.secfc.leakage import describe_leakage
from cloister.wire.codec import DEFAULT_LIMIT_BYTES

BITS_MOST = 17
"""Coordinates of tables: [-1, 1] in steps of 2^-16."""
BITS_FEWEST = 10
"""Below this, two primes with all bits are chosen rather than one with fewer."""
_WORD_BYTES = 8
_CHUNK_BYTES = 4 * 2**20  # of shares in one message: a coordinator holds one message of each client at a time
_ROOM_BYTES = DEFAULT_LIMIT_BYTES - 4096
_PARCEL_BYTES = TAG_BYTES + 16


@dataclass(frozen=True, kw_only=True)
class SecfcAgreement:
    """The public parameters of one job; equal on every side or the session does not open.

    Parameters
    ----------
    clusters, dimensions
        k and d.
    privacy, segments
        t, how many clients may pool what they hold, and l, into how many pieces a record is cut: 2t + 2l - 1 <= n.
    records_max
        Public cap on all clients' records together; with ``union``, how many there are. Decides the field.
    rounds_max
        At most so many assignments to the nearest centre; it ends earlier when they repeat.
    coordinate_bits
        b: coordinates are rounded to 2^-(b-1). ``"auto"`` takes as many, up to 17, as fit the field 2^61 - 1; where
        that is fewer than 10, it takes two primes.
    separate_after
        After how many assignments the clusters are separated once, by the 1/3 rule of section 5, if it has not ended
        by then; 0 is before the first, as published, and None never.
    reveal_centres
        Whether the clients reveal the final centres to each other at the end.
    centre_noise
        Noise on the revealed sums, in steps of the grid; None reveals them exactly. What it promises is less than a
        differentially private protocol does: :data:`~cloister.protocols.secfc.leakage.NOISE_PROTECTS`.
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
    records_max: int
    rounds_max: int = 100
    coordinate_bits: int | Literal["auto"] = "auto"
    separate_after: int | None = 0
    reveal_centres: bool = False
    centre_noise: DiscreteGaussian | DiscreteLaplace | None = None
    union: bool = False
    directory: tuple[bytes, ...] = field(repr=False)
    context: str = ""

    def __post_init__(self) -> None:
        _require(1 <= self.parties < 2**15, "directory", "of 1 to 32767 clients", self.parties)
        _require(1 <= self.clusters < 2**16, "clusters", "from 1 to 65535", self.clusters)
        _require(self.dimensions >= 1, "dimensions", "at least 1", self.dimensions)
        _require(1 <= self.rounds_max < 2**19, "rounds_max", "from 1 to 2^19 - 1", self.rounds_max)
        _require(self.records_max >= self.clusters, "records_max", "at least the number of clusters", self.records_max)
        bits = self.coordinate_bits
        _require(bits == "auto" or 2 <= bits <= 31, "coordinate_bits", "'auto' or from 2 to 31", bits)
        after = self.separate_after
        _require(
            after is None or 0 <= after < self.rounds_max, "separate_after", "None, or from 0 to rounds_max - 1", after
        )
        _require(self.segments <= self.dimensions, "segments", "at most the number of columns", self.segments)
        self.code  # noqa: B018  raises PrecisionError or ConfigError now rather than in the session
        if self.centre_noise is not None:
            _require(self.reveal_centres, "centre_noise", "None unless centres are revealed", self.centre_noise)
            # Room: |sum| <= m 2^(b-1) <= sqrt(order), and a draw is below 90 * 2^40: together below order / 2 and 2^63.
            check_draw(self.centre_noise, self.clusters * self.dimensions)
        column_bytes = _WORD_BYTES * self.field.residues * self.records_max
        longest = max(column_bytes, self.row_bytes, self.finish_bytes)
        if longest > _ROOM_BYTES:
            raise ConfigError(
                f"one column of distances ({column_bytes} bytes), the shares of one record ({self.row_bytes}) and the "
                f"result ({self.finish_bytes}) must each fit a message of {_ROOM_BYTES} bytes; they do not. Use fewer "
                "records, columns, clusters or clients."
            )

    @property
    def noise_event(self) -> Release | None:
        """What noise on the revealed sums costs a record, given the labels; None where there is no noise.

        Privacy
        -------
        Neighbours: one record's VALUE is replaced by another that leaves the labels of all rounds as they are; NOT
        add/remove, and nothing is promised of the labels. Sensitivity: each coordinate of one cluster's sum moves by
        at most 2^b. Event: this release, against up to t clients without the coordinator. Theorem: claim 8 of
        docs/proofs/secfc.md.
        """
        if self.centre_noise is None:
            return None
        step = 1 << self.bits
        return Release(
            name="sums of the final clusters, given the labels",
            mechanism=self.centre_noise,
            sensitivity=Sensitivity(l1=self.dimensions * step, l2_squared=self.dimensions * step**2),
            entries=self.clusters * self.dimensions,
        )

    @property
    def parties(self) -> int:
        """The number of clients, n."""
        return len(self.directory)

    @cached_property
    def bits(self) -> int:
        """The coordinates' bits, b: chosen, or given."""
        if self.coordinate_bits != "auto":
            return self.coordinate_bits
        one, two = (
            most_bits(candidate, dimensions=self.dimensions, records=self.records_max)
            for candidate in (FIELD61, FIELD122)
        )
        return max(2, min(one if one >= BITS_FEWEST else two, BITS_MOST))

    @property
    def fixed_point(self) -> FixedPoint:
        """The grid of the coordinates: lambda = 2^(b-1) of appendix A, with rounding to the nearest."""
        return FixedPoint(self.bits - 1)

    @cached_property
    def field(self) -> Field:
        """The field in which no distance can overflow; refused with the numbers where there is none."""
        return choose_field(dimensions=self.dimensions, records=self.records_max, bits=self.bits)

    @cached_property
    def code(self) -> LagrangeCode:
        """The code of the shares."""
        return LagrangeCode(field=self.field, clients=self.parties, segments=self.segments, privacy=self.privacy)

    def largest_distance(self, records: int) -> int:
        """Return what no decoded distance among so many records can pass."""
        return largest_distance(dimensions=self.dimensions, records=records, bits=self.bits)

    @property
    def width(self) -> int:
        """The length of one share of a record."""
        return self.code.width(self.dimensions)

    @property
    def row_bytes(self) -> int:
        """The shares of one record for all other clients, on the wire."""
        return (self.parties - 1) * (_WORD_BYTES * self.field.residues * self.width + _PARCEL_BYTES)

    @property
    def finish_bytes(self) -> int:
        """The labels and what reveals the centres, on the wire."""
        sums = _WORD_BYTES * self.field.residues * self.clusters * self.width + _PARCEL_BYTES
        return 4 * self.records_max + (self.code.holders * sums if self.reveal_centres else 0)

    @property
    def chunk_rows(self) -> int:
        """How many records' shares go in one message."""
        return max(1, _CHUNK_BYTES // self.row_bytes)

    @property
    def columns_most(self) -> int:
        """How many clusters' distances fit one reply."""
        return _ROOM_BYTES // (_WORD_BYTES * self.field.residues * self.records_max)

    @property
    def versions(self) -> int:
        """How many labellings there can be: the start, the separated one, and one for each assignment."""
        return self.rounds_max + 1 + (self.separate_after is not None)

    @property
    def steps(self) -> int:
        """Expected steps if all rounds are needed: opening, meeting, sharing, rounds, reveal, finish."""
        chunks = -(-self.records_max // (self.chunk_rows * (1 if self.union else self.parties)))
        return SEED_STEPS + 1 + chunks + 1 + 1 + (self.versions - 1) + self.reveal_centres + 1

    @cached_property
    def leakage(self) -> LeakageTable:
        """Who learns what in this job."""
        exact_or_noisy = Learns.EXACT if self.centre_noise is None else Learns.NOISY
        return describe_leakage(union=self.union, centres=exact_or_noisy if self.reveal_centres else Learns.NOTHING)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of every field, and of the prime or primes that follow from them."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["moduli"] = [str(modulus) for modulus in self.field.moduli]
        return hashlib.sha256(msgspec.msgpack.encode(fields, order="sorted")).digest()


def _require(holds: bool, name: str, must: str, got: object) -> None:
    if not holds:
        raise ConfigError(f"{name} must be {must}; got {got}.")
