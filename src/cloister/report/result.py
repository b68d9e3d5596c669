"""What a run returns: centres in original units, what it cost, and who learned what.

Every party may see all of this: it contains no record, no label and no party's own statistic. One struct is
both the result in memory and, with a schema number, result.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from cloister.columns import Column, Coordinate, Scale, column_highs, column_lows, list_coordinates
from cloister.errors import ConfigError
from cloister.late import load_late
from cloister.numeric import FixedPoint
from cloister.privacy.card import PrivacyCard
from cloister.report.sizes import Sizes

_frame, _page = load_late("cloister.report.frame"), load_late("cloister.report.page.build")
_labels, _picture = load_late("cloister.report.labels"), load_late("cloister.report.picture")

__all__ = [
    "Between",
    "CellBook",
    "Evaluation",
    "KChoice",
    "Learned",
    "NetworkTime",
    "PartyTraffic",
    "Result",
    "Spread",
    "TakingPart",
]

SCHEMA = 2
_SCHEMA_SIMULATED = 1  # did not say how a result was made: all were simulated; some sizes were in another unit
_OLD_SIZES = ("cluster_records", "cluster_records_noise", "released_records")
_MOSTLY_NOISE = 0.1  # of a column's range
_CELLS_MOST = 1024

Count = Annotated[int, msgspec.Meta(ge=0)]


class PartyTraffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one party sent and received, in bytes and messages, and the number of rounds it did not answer."""

    name: str
    bytes_sent: Count
    bytes_received: Count
    messages_sent: Count
    messages_received: Count
    rounds_missed: Count = 0


class Learned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of "who learned what".

    Attributes
    ----------
    role
        ``"coordinator"``, ``"every party"`` or a party's name.
    what
        The value, in plain words: "the sum and the count of every cluster over all parties".
    how
        To which degree: ``"exactly"``, ``"only its own"``, ``"not"``.
    note
        Why, or under which condition; may be empty.
    """

    role: str
    what: str
    how: str
    note: str = ""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mean squared distance of a record to its nearest centre, in unit scaling [-1, 1]^d.

    Computed by the simulator, which holds every record; no party could.

    Attributes
    ----------
    loss
        Of the run's centres.
    empty_clusters
        How many of the run's centres are nearest to no record.
    gaps
        How many records have missing cells, and are in neither loss.
    reference_loss
        Of k-means over all records in one table, without any privacy: the best of ten k-means++ starts, then Lloyd.
    """

    loss: float
    reference_loss: float
    empty_clusters: Count = 0
    gaps: Count = 0

    @property
    def ratio(self) -> float | None:
        """Return loss / reference_loss, or None if the reference is zero."""
        return self.loss / self.reference_loss if self.reference_loss > 0 else None


class KChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of clusters that was tried.

    Attributes
    ----------
    k
        The number of clusters.
    loss
        Mean squared distance to the nearest centre over the noisy cells, in unit scaling.
    score
        The criterion of the choice; the largest wins.
    """

    k: Annotated[int, msgspec.Meta(ge=1)]
    loss: float
    score: float


class CellBook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cells into which a party sorted its records where columns are split; labelling new records needs them.

    All parties know them. If records were read to make them, the card's budget includes that.

    Attributes
    ----------
    columns
        The names of its columns, in the order of the cells' coordinates.
    cells
        One representative per cell, in unit scaling [-1, 1]; a record is in the cell whose representative is nearest.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[float, ...], ...]


class Spread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What scaled the columns: a centre and a spread that were released, in original units, one for each coordinate.

    A spread of 0 marks a column that did not count.
    """

    centre: tuple[float, ...]
    spread: tuple[float, ...]


class NetworkTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time that the messages would have taken, by a network model."""

    model: str
    simulated_s: float


class TakingPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One party of a run between organisations, and its version of Cloister, as it said at the start."""

    name: str
    cloister_version: str


class Between(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the run of a job between organisations was.

    Attributes
    ----------
    run
        Its ID, drawn by the coordinator.
    transport
        What carried the messages.
    parties
        All that took part.
    left
        Who had left when the clustering ended, as the coordinator said.
    """

    run: str
    transport: str
    parties: tuple[TakingPart, ...]
    left: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True, kw_only=True, eq=False, forbid_unknown_fields=True):
    """The result of one run.

    Attributes
    ----------
    name, protocol, variant
        From the job; ``variant`` says how the run differs from the protocol's default.
    ran
        How it was made: ``"simulated"`` by one process that held every party's records, ``"between organisations"``
        by processes of which each held its own, or, of one table, ``"by its owner"``.
    between
        The run between organisations; None of a simulation.
    columns
        What the tables have, with public bounds or levels.
    centres
        (k, d), in original units.
    centre_noise
        (k, d), in original units: the standard deviations of what noise does to the centres, to first order; None where
        they are not known. Neither the sampling of the records nor the algorithm's own error is in them
        (docs/proofs/uncertainty.md).
    rounds
        Rounds of Lloyd's algorithm that were run.
    sizes
        About how many records each cluster has, and all of them; None if that was not released.
    curve
        Each k that was tried, if k was to be chosen.
    parties
        Traffic, one entry per party; between organisations the own party's only.
    leakage
        Who learned what.
    withstands, breaks_if
        Who may collude and learns no more, where there is no card to say it; which coalition breaks it.
    transcript_sha256
        Of all messages in order, for a seeded simulation only. Otherwise None: anyone who holds the common seed could
        compute it with and without a record and compare, whatever the noise.
    created
        ISO 8601 with the UTC offset.
    cloister_version
        The version that ran.
    fractional_bits, ring_bits
        The fixed-point grid, and the ring of the masked sums (None: nothing was masked).
    seeded
        Whether a seed was given, so that the masks are not secret.
    evaluation, network
        ``evaluation`` only in simulations that were asked for it, ``network`` only with a network model.
    notes
        What else the reader must know.
    card
        What is promised and what it cost, if the protocol is differentially private.
    scale
        What scaled the columns, if a spread was released; None: their bounds did.
    codebooks
        The cells of each party whose columns were encrypted, if columns are split.

    Raises
    ------
    ConfigError
        If shapes, numbers or times are invalid.
    """

    name: str
    protocol: str
    ran: Literal["simulated", "between organisations", "by its owner"]
    columns: tuple[Column, ...]
    centres: np.ndarray[Any, np.dtype[np.float64]]
    rounds: int
    parties: tuple[PartyTraffic, ...]
    leakage: tuple[Learned, ...]
    withstands: str = ""
    breaks_if: str
    transcript_sha256: str | None = None
    created: str
    cloister_version: str
    fractional_bits: int
    ring_bits: int | None
    seeded: bool
    evaluation: Evaluation | None = None
    network: NetworkTime | None = None
    between: Between | None = None
    notes: tuple[str, ...] = ()
    card: PrivacyCard | None = None
    sizes: Sizes | None = None
    centre_noise: np.ndarray[Any, np.dtype[np.float64]] | None = None
    curve: tuple[KChoice, ...] = ()
    variant: str = ""
    scale: Spread | None = None
    codebooks: tuple[CellBook, ...] = ()

    def __post_init__(self) -> None:
        centres = np.array(self.centres, dtype=np.float64, order="C")  # a copy: a result does not change
        centres.setflags(write=False)
        msgspec.structs.force_setattr(self, "centres", centres)
        if centres.ndim != 2 or centres.shape[0] < 1 or centres.shape[1] != len(self.coordinates):
            raise ConfigError(
                f"centres must have k rows and one column for each of the {len(self.coordinates)} coordinates; "
                f"got shape {centres.shape}."
            )
        if not np.isfinite(centres).all():
            raise ConfigError(f"centres must be finite; got {np.sum(~np.isfinite(centres))} numbers that are not.")
        _check_noise(self)
        if (self.between is None) is (self.ran == "between organisations"):
            raise ConfigError("a result between organisations, and no other, must say between whom; this one does not.")
        _check_numbers(self)
        _check_time(self.created)
        _check_codebooks(self)
        if self.transcript_sha256 is not None:
            if not self.seeded:
                raise ConfigError("transcript_sha256 must be left out of a result without a seed; got one.")
            if len(self.transcript_sha256) != 64 or set(self.transcript_sha256) - set("0123456789abcdef"):
                raise ConfigError("transcript_sha256 must be 64 lower-case hexadecimal digits; got something else.")

    def __repr__(self) -> str:
        """Say what it is in one line; `print_report` says all."""
        found = f"k = {self.k}, columns: {len(self.columns)}, {self.protocol}, {self.ran}"
        return f"<Result {self.name!r}: {found}{'' if self.card is None else f', epsilon {self.card.epsilon:.4g}'}>"

    def _repr_html_(self) -> str:
        """Return the report, for notebooks."""
        return str(_page.make_fragment(self))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What was clustered, in the order of the centres: numbers, dates, and the levels of categories."""
        plain = list_coordinates(self.columns)
        return plain if self.scale is None else find_scale(plain, self.scale, self.fractional_bits).coordinates

    @property
    def k(self) -> int:
        """The number of clusters."""
        return int(self.centres.shape[0])

    def predict(self, table: object) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the cluster of each record: the row of the nearest centre. Nothing is sent, and nothing is released.

        Parameters
        ----------
        table
            A path, an array, a data frame or an Arrow table, as for `cloister.open_table`; columns are found by name.

        Raises
        ------
        DataError
            If it does not hold the result's columns as numbers.
        """
        found: np.ndarray[Any, np.dtype[np.int32]] = _labels.predict(self, table).all_labels()
        return found

    def to_frame(self) -> Any:
        """Return sizes and centres as a pandas DataFrame, a row for each cluster; ± is what noise does to them.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        return _frame.make_frame(self)

    def plot(self) -> Any:
        """Return the picture of the centres as a matplotlib Figure.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return _picture.make_figure(self)

    @property
    def mostly_noise(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which coordinates of the centres have noise of a tenth of their column's range or more, (k, d)."""
        if self.centre_noise is None:
            return np.zeros(self.centres.shape, dtype=bool)
        ranges = column_highs(self.coordinates) - column_lows(self.coordinates)
        if self.scale is not None:  # of twelve spreads, five are usually all that there is
            levels = np.array([axis.is_level for axis in self.coordinates])
            ranges = np.where(levels, ranges, ranges * 5 / 12)
        found: np.ndarray[Any, np.dtype[np.bool_]] = self.centre_noise >= _MOSTLY_NOISE * ranges
        return found

    @property
    def party_names(self) -> tuple[str, ...]:
        """All parties that took part."""
        return tuple(party.name for party in (self.between.parties if self.between else self.parties))

    @property
    def bytes_total(self) -> int:
        """All bytes on the wire: every message passes between a party and the coordinator or relay."""
        return sum(party.bytes_sent + party.bytes_received for party in self.parties)

    @property
    def messages_total(self) -> int:
        """All messages, in both directions."""
        return sum(party.messages_sent + party.messages_received for party in self.parties)


def find_scale(axes: tuple[Coordinate, ...], spread: Spread, fractional_bits: int) -> Scale:
    """Return the map that a spread stands for."""
    if not len(spread.centre) == len(spread.spread) == len(axes):
        raise ConfigError(f"scale must have a centre and a spread for each of the {len(axes)} coordinates; it has not.")
    if not (np.isfinite(spread.centre).all() and np.isfinite(spread.spread).all() and min(spread.spread) >= 0):
        raise ConfigError("scale must be finite, and spreads at least 0; some numbers are not.")
    return Scale(axes=axes, centre=spread.centre, spread=spread.spread, grid=FixedPoint(fractional_bits))


def _check_noise(result: Result) -> None:
    """Refuse noise of other centres, and noise that is negative or not finite; keep a copy that does not change."""
    if result.centre_noise is None:
        return
    noise = np.array(result.centre_noise, dtype=np.float64, order="C")
    noise.setflags(write=False)
    msgspec.structs.force_setattr(result, "centre_noise", noise)
    if noise.shape != result.centres.shape:
        raise ConfigError(f"centre_noise must have the centres' shape {result.centres.shape}; got {noise.shape}.")
    if not (np.isfinite(noise) & (noise >= 0)).all():
        raise ConfigError("centre_noise must be finite and at least 0; some numbers are not.")


def _check_numbers(result: Result) -> None:
    """Refuse negative rounds, sizes of other clusters, and numbers that are not finite, which JSON could not hold."""
    if result.rounds < 0:
        raise ConfigError(f"rounds must be at least 0; got {result.rounds}.")
    if result.sizes is not None and len(result.sizes.clusters) != result.k:
        raise ConfigError(f"sizes must be of {result.k} clusters; got {len(result.sizes.clusters)}.")
    if result.curve and result.k not in {tried.k for tried in result.curve}:
        raise ConfigError(f"curve must hold the chosen k, {result.k}; it holds only {len(result.curve)} others.")
    for name, number in _name_numbers(result):
        if number is not None and not (np.isfinite(number) and number >= 0):
            raise ConfigError(f"{name} must be finite and at least 0; got {number}.")
    if not all(np.isfinite(tried.score) for tried in result.curve):
        raise ConfigError("the scores of curve must be finite; some are not.")


def _name_numbers(result: Result) -> Iterator[tuple[str, float | None]]:
    """Yield the numbers that must be finite and not negative, as messages call them."""
    yield from ((f"curve: the loss of k = {tried.k}", tried.loss) for tried in result.curve)
    if result.evaluation is not None:
        yield "evaluation.loss", result.evaluation.loss
        yield "evaluation.reference_loss", result.evaluation.reference_loss
    if result.network is not None:
        yield "network.simulated_s", result.network.simulated_s


def _check_codebooks(result: Result) -> None:
    """Refuse cells of columns that are not the result's or occur twice, and numbers outside [-1, 1]."""
    held = [name for book in result.codebooks for name in book.columns]
    if len(set(held)) != len(held) or not set(held) <= {axis.name for axis in result.coordinates}:
        raise ConfigError("codebooks must cover columns of the result, each at most once; they do not.")
    if prod(len(book.cells) for book in result.codebooks) > _CELLS_MOST:
        raise ConfigError(f"codebooks must have at most {_CELLS_MOST} joint cells; they have more.")
    for book in result.codebooks:
        if not book.cells or not book.columns or any(len(cell) != len(book.columns) for cell in book.cells):
            raise ConfigError("a codebook must have cells with one coordinate for each of its columns; it does not.")
        if not all(-1.0 <= x <= 1.0 for cell in book.cells for x in cell):
            raise ConfigError("the cells of codebooks must be in [-1, 1]; some are not.")


def _check_time(created: str) -> None:
    """Refuse a time that is not ISO 8601 with an offset."""
    try:
        offset = datetime.fromisoformat(created).utcoffset()
    except ValueError:
        offset = None
    if offset is None:
        raise ConfigError("created must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00+00:00.")


class _Head(msgspec.Struct):
    """The part of every schema that never changes."""

    schema: int


def encode_result(result: Result) -> bytes:
    """Return result.json."""
    # A loss is an exact statistic of all records: to publish it would break a promise of differential privacy.
    told = result if result.card is None else msgspec.structs.replace(result, evaluation=None)
    fields = msgspec.to_builtins(told, enc_hook=lambda rows: rows.tolist())
    fields["columns"] = [column.list_agreed() for column in result.columns]
    if result.scale is None:
        del fields["scale"]  # as results have always been
    if told.evaluation is not None and not told.evaluation.gaps:
        del fields["evaluation"]["gaps"]
    head = {"schema": SCHEMA, "name": result.name, "protocol": result.protocol, "k": result.k}
    return msgspec.json.format(msgspec.json.encode(head | fields), indent=2) + b"\n"


def decode_result(raw: bytes, path: Path) -> Result:
    """Read result.json back.

    Parameters
    ----------
    raw
        The bytes of the file.
    path
        What messages call it.

    Raises
    ------
    ConfigError
        If it is damaged, incomplete, or of another schema.
    """
    try:
        schema = msgspec.json.decode(raw, type=_Head).schema
        if schema not in (_SCHEMA_SIMULATED, SCHEMA):
            what_to_do = "Update Cloister." if schema > SCHEMA else "It was not written by Cloister."
            raise ConfigError(f"{path} must have schema {SCHEMA}; got {schema}. {what_to_do}")
        fields = msgspec.json.decode(raw)
        k = fields.pop("k", None)
        del fields["schema"]
        if schema == _SCHEMA_SIMULATED:
            fields["ran"] = "simulated"
            for name in _OLD_SIZES:
                fields.pop(name, None)
        result = msgspec.convert(fields, Result, dec_hook=_read_rows)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _describe_damage(path, str(error)) from None
    if k != result.k:
        raise _describe_damage(path, f"k = {k} with {result.k} centres")
    return result


def _read_rows(kind: type, rows: object) -> Any:
    """Convert rows of numbers, or raise an error to which msgspec adds the place."""
    numbers = msgspec.convert(rows, tuple[tuple[float, ...], ...])
    if len({len(row) for row in numbers}) != 1:
        raise ValueError("rows that are not of equal length")
    return np.array(numbers)


def _describe_damage(path: Path, got: str) -> ConfigError:
    return ConfigError(f"{path} must be a complete Cloister result; got: {got.rstrip('.')}. Use an unchanged copy.")
