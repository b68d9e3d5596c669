"""What a coalition gets out of a session: totals minus its own noise and all known records, codebooks, and errors.

It runs the same algorithm on the same totals, so it knows every query, and hence what the record in question would
add: v to the numbers of a pass, u to their errors. In Gaussian noise the likelihood ratio is the most powerful
statistic: sum over passes and parts of (<x, v> - |v|^2 / 2) / sigma^2 (Neyman and Pearson).

Errors are what a key holder can read off the low bits of an answer. It knows its keys and every error e that it drew,
and finds <w, e> there, an equation about the computing party's weights w, under that party's flood, its
re-randomisation and the rounding to a small modulus (:mod:`cloister.protocols.vertical.noise`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.lattice.encryption import round_to_plaintext
from cloister.lattice.keys import SecretKeys
from cloister.lattice.lwe import SmallLweBatch
from cloister.lattice.weighted_sums import mirror_weights
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.codebook import Codebooks
from cloister.protocols.vertical.evaluation import Block
from cloister.protocols.vertical.noise import ChargedFlood
from cloister.protocols.vertical.query import HistogramQuery, Query
from cloister.protocols.vertical.statistics import align_records, exact_total, measure_weights
from cloister.records import FloatArray, IntArray

_RAW_ENTRIES = 32  # of each pass and codebook, as they were read
_FRACTION = 2.0**20  # scores are handed on as integers


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadErrors:
    """What a key holder reads of errors.

    Parameters
    ----------
    fresh
        (C, n): of its ciphertexts, at the records' places.
    answers
        One array for each pass: what was left beside the plaintexts.
    """

    fresh: IntArray
    answers: Sequence[FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """One session, as far as some coalition sees it.

    Parameters
    ----------
    codebooks
        All parties'.
    queries, totals
        What each pass asked, and what was released.
    shares
        The noise that each of its holders added in each pass, by party.
    errors
        What the key holder reads besides, where it knows the errors of the ciphertexts.
    """

    codebooks: Codebooks
    queries: Sequence[Query]
    totals: Sequence[IntArray]
    shares: Mapping[int, Sequence[IntArray]]
    errors: ReadErrors | None


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What one coalition looks at.

    Parameters
    ----------
    agreement
        The public parameters.
    members
        The parties that share what they know.
    known, record
        (n - 1, d) and (d,), in [-1, 1]: all records but one, and that one, which is there or not.
    """

    agreement: VerticalAgreement
    members: tuple[int, ...]
    known: FloatArray
    record: FloatArray

    def read(self, seen: Observed) -> IntArray:
        """Return one run's view: likelihood ratios, then the first numbers of passes and of others' codebooks."""
        layout = self.agreement.settings.layout
        others = align_records(self.known, layout, seen.codebooks)
        own = align_records(self.record[None, :], layout, seen.codebooks)
        scores, raw = [], []
        for number, (query, total) in enumerate(zip(seen.queries, seen.totals, strict=True)):
            rest = total - exact_total(query, others, seen.codebooks)
            for member in self.members:
                if member in seen.shares:
                    rest = rest - seen.shares[member][number]
            v = exact_total(query, own, seen.codebooks)
            scores.append(_score(query, rest.astype(np.float64), v.astype(np.float64)))
            raw.append(_cut(rest))
        errors = [] if seen.errors is None else self._score_errors(seen, seen.errors)
        raw += [_cut(np.rint(reps * self.agreement.settings.units)) for reps in self._find_codebooks(seen.codebooks)]
        ratios = [sum(scores) + sum(likelihood for likelihood, _ in errors), *scores]
        fits = [fit for _, fit in errors]
        return np.concatenate([np.rint(np.array([*ratios, *fits]) * _FRACTION).astype(np.int64), *raw])

    def name_entries(self, *, errors: bool) -> Iterator[str]:
        """Yield the names of a view's entries, in order."""
        queries = self.agreement.queries
        yield "likelihood ratio of all passes"
        yield from (f"likelihood ratio of {name!r}" for name in queries)
        if errors:
            yield from (f"errors of {name!r}" for name in queries)
        for name in (*queries, *(f"codebook of party {party}" for party in self._codebook_makers)):
            yield from (f"{name!r}, number {entry}" for entry in range(1, _RAW_ENTRIES + 1))

    def _score_errors(self, seen: Observed, errors: ReadErrors) -> list[tuple[float, float]]:
        """For each pass the likelihood ratio, and <x, u> / |u|^2: 0 or 1 and what hides it."""
        flood = self.agreement.flood
        assert isinstance(flood, ChargedFlood)  # wherever there is a budget and one party knows keys and errors
        layout, codebooks = self.agreement.settings.layout, seen.codebooks
        sides = []
        for table, fresh in (
            (self.known, errors.fresh[:, : len(self.known)]),
            (self.record[None, :], errors.fresh[:, len(self.known) :]),
        ):
            alice = layout.alice_part(table)
            sides.append((fresh, alice, codebooks.alice.assign(alice)))
        found = []
        for query, answer in zip(seen.queries, errors.answers, strict=True):
            others, u = (
                weigh_errors(query, fresh, alice=alice, alice_cells=cells, reps=codebooks.reps)
                for fresh, alice, cells in sides
            )
            fit = float((answer - others) @ u)
            length = max(float(u @ u), 1.0)
            found.append(((fit - length / 2) / flood.std**2, fit / length))
        return found

    @property
    def _codebook_makers(self) -> tuple[int, ...]:
        """Who makes a codebook that the coalition did not make itself."""
        makers = (self.agreement.computing, *self.agreement.encrypted)
        return tuple(party for party in makers if party not in self.members)

    def _find_codebooks(self, codebooks: Codebooks) -> list[FloatArray]:
        makers = (self.agreement.computing, *self.agreement.encrypted)
        made = dict(zip(makers, (codebooks.alice, *codebooks.holders), strict=True))
        return [made[party].reps for party in self._codebook_makers]


def _score(query: Query, rest: FloatArray, v: FloatArray) -> float:
    """The log-likelihood ratio of a pass, part by part."""
    score, first = 0.0, 0
    for part in query.parts:
        assert part.sigma is not None
        own, wanted = rest[first : first + part.length], v[first : first + part.length]
        score += float(own @ wanted - wanted @ wanted / 2) / part.sigma**2
        first += part.length
    return score


def _cut(numbers: FloatArray | IntArray) -> IntArray:
    """The first numbers, filled up with zeros."""
    kept = np.zeros(_RAW_ENTRIES, dtype=np.int64)
    flat = numbers.ravel()[:_RAW_ENTRIES]
    kept[: len(flat)] = flat
    return kept


# --- errors -----------------------------------------------------------------------------------------------------------


def read_fresh_errors(keys: SecretKeys, block: Block, records: int) -> IntArray:
    """Return the errors (C, records) of the first records of a block: body - mask * s - delta * message."""
    parameters, ring = keys.parameters, keys.parameters.ring
    noisy = ring.subtract(block.bodies, ring.inverse(ring.multiply(block.masks, keys.ntt)))
    scaled = ring.to_integers(np.moveaxis(noisy[..., :records], -2, -1))
    return np.asarray(scaled - parameters.delta * round_to_plaintext(parameters, scaled), dtype=np.int64)


def read_answer_errors(keys: SecretKeys, batch: SmallLweBatch) -> FloatArray:
    """Return what is left of each number of an answer beside delta times its plaintext, in units of q."""
    parameters = batch.parameters
    signed = mirror_weights(keys.ternary)[0].astype(np.int64).view(np.uint64)
    up = np.uint64(64 - batch.bits)
    rest = ((batch.bodies - batch.masks @ signed) << up).view(np.int64) >> np.int64(up)
    scaled = rest.astype(object) * parameters.modulus
    plain = round_to_plaintext(parameters, (2 * scaled + (1 << batch.bits)) // (2 << batch.bits))
    # scaled / 2^bits - delta * plain, exactly, before it becomes a double.
    left = (scaled - (plain * parameters.delta << batch.bits)) / (1 << batch.bits)
    return np.asarray(left, dtype=np.float64)


def weigh_errors(
    query: Query, errors: IntArray, *, alice: FloatArray, alice_cells: NDArray[np.int32], reps: FloatArray
) -> FloatArray:
    """Return <w, e> for each number of a query, over some records.

    Parameters
    ----------
    query
        What was asked.
    errors
        (C, n): of each cell's ciphertext at each record's place; then, where there are residuals, of each cell's and
        column's.
    alice, alice_cells, reps
        The records' columns in the clear, (n, d_A), their cells, (n,), and the encrypted cells' representatives.
    """
    m = len(reps)
    out = np.zeros(query.length)
    if isinstance(query, HistogramQuery):
        places = alice_cells.astype(np.int64) * query.groups + query.group_of[:, None]
        np.add.at(out, places, errors[:m])
        return out
    weights = measure_weights(query, alice, reps)
    k, d, columns, encrypted = query.clusters, query.dimensions, query.alice_count, query.encrypted_count
    labels = weights.labels.astype(np.int64)
    cells, records = np.indices(labels.shape)
    np.add.at(out, k * d + labels, errors[:m])
    for j in range(columns):
        np.add.at(out, labels * d + j, weights.offsets[labels, j, records] * errors[:m])
    for j in range(encrypted):
        part = query.constants[labels, cells, j] * errors[:m]
        if len(errors) > m:
            part = part + errors[m + np.arange(m) * encrypted + j]
        np.add.at(out, labels * d + columns + j, part)
    return out
