"""What a coalition makes of a vertical session: totals less its own noise and all known records, codebooks, and errors.

It runs the same algorithm on the same totals, so it knows every question, and with it what the record in question would
add: v to the numbers of a pass, u to their errors. In Gaussian noise the likelihood ratio is the most powerful
statistic: sum over passes and parts of (<x, v> - |v|^2 / 2) / sigma^2 (Neyman and Pearson).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cloister.audit.vertical_errors import weigh_errors
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.codebooks import Codebooks
from cloister.protocols.vertical.flood import ChargedFlood
from cloister.protocols.vertical.query import Query
from cloister.protocols.vertical.statistics import align_records, exact_total
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
        The parties that tell each other what they know.
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
