"""Builds SecFC sessions for tests, and Lloyd's algorithm in the clear that they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.crypto import SeededEntropy, Stream
from cloister.privacy.accounting import Accountant
from cloister.privacy.release import NoiseDuty
from cloister.protocol import OwnInput
from cloister.protocols.secfc.agreement import Coding, SecfcAgreement
from cloister.protocols.secfc.labels import LabelBook, draw_labels
from cloister.protocols.secfc.messages import Finish, Measure, RevealSums
from cloister.protocols.secfc.party import SecfcParty
from cloister.protocols.secfc.protocol import Secfc
from cloister.records import ArrayRecords
from cloister.roles import Coordinator
from cloister.runtime import LocalRun
from tests.sessions import RecordingSampler, Session, make_directory

OPENING = 4
"""Steps before shares are exchanged: three for the seed, one to meet."""


class SecfcSession(Session):
    """One job's roles, ready to run; ``options`` are the agreement's. ``silent`` draws zeros for noise."""

    def __init__(
        self,
        records: list[np.ndarray],
        clusters: int = 3,
        privacy: int = 1,
        segments: int = 1,
        seed: int = 7,
        positions: list[np.ndarray] | None = None,
        options: dict[str, Any] | None = None,
        silent: bool = False,
    ) -> None:
        self.records, self.clusters, self.positions, self.silent = records, clusters, positions, silent
        self.total = sum(map(len, records))
        defaults = {
            "dimensions": records[0].shape[1],
            "records_max": None if positions is None else self.total,
            "union": positions is not None,
            "reveal_centres": True,
        }
        agreed = SecfcAgreement(
            clusters=clusters,
            privacy=privacy,
            segments=segments,
            directory=make_directory(seed, len(records)),
            **{**defaults, **(options or {})},
        )
        places = [None] * len(records) if positions is None else positions
        inputs = [OwnInput(records=ArrayRecords(own), places=at) for own, at in zip(records, places, strict=True)]
        super().__init__(Secfc(), agreed, inputs, seed=seed)

    @property
    def agreement(self) -> SecfcAgreement:
        return self.agreed

    @property
    def coding(self) -> Coding:
        """How the records of all clients are coded."""
        return self.agreed.choose_coding(self.total)

    def coordinator(self) -> Coordinator[Any]:
        budget = self.agreed.budget
        if budget is not None:  # books are anew in each session
            sampler = RecordingSampler("noise", seed=self.seed, silent=self.silent)
            self.coordinator_duty = NoiseDuty(charger=Accountant(budget), sampler=sampler)
        return super().coordinator()

    def run(
        self, wrap: Callable[[int, SecfcParty], Any] = lambda number, party: party, **options: Any
    ) -> tuple[LocalRun[Any], list[SecfcParty]]:
        return super().run([wrap(number, self.party(number)) for number in self.numbers], **options)

    def start(self, records: int) -> np.ndarray:
        """The random assignment that the coordinator draws."""
        return draw_labels(records, self.clusters, Stream(SeededEntropy(self.seed, "coordinator").bytes(32)))

    def in_the_clear(self, kept: tuple[int, ...] | None = None) -> ClearRun:
        """Lloyd's algorithm on the rounded records of all clients, or of some."""
        chosen = self.records if kept is None else [self.records[number - 1] for number in kept]
        points = np.concatenate([self.coding.fixed_point.encode(part) for part in chosen])
        if self.positions is not None:
            points = points[np.argsort(np.concatenate(self.positions))]
        return run_in_the_clear(
            points,
            self.start(len(points)),
            self.clusters,
            rounds_max=self.agreement.rounds_max,
            separate_after=self.agreement.separate_after,
        )


@dataclass
class ClearRun:
    """Labels after every step, and the final sums."""

    path: list[list[int]]
    converged: bool
    rounds: int
    sums: np.ndarray
    counts: np.ndarray


def run_in_the_clear(
    points: np.ndarray, start: np.ndarray, clusters: int, *, rounds_max: int, separate_after: int | None
) -> ClearRun:
    """An independent, slow SecFC without secrets: rational centres, Python's integers and fractions."""
    rows = [[int(x) for x in row] for row in points]
    labels = [int(label) for label in start]
    path = [labels]
    rounds, moved = 0, True
    while moved and rounds < rounds_max:
        away = _squared_distances(rows, labels, clusters)
        if rounds == separate_after:
            separate_after = None
            groups = _separate(away, labels, clusters)
            if groups != labels:
                labels = groups
                path.append(labels)
                continue
        fresh = [min(range(clusters), key=lambda h, row=row: (row[h], h)) for row in away]
        for h in range(clusters):
            if h not in fresh:
                several = [i for i, label in enumerate(fresh) if fresh.count(label) > 1]
                # a record that was moved already is alone in its cluster
                farthest = max(several, key=lambda i: (away[i][fresh[i]], -i))
                fresh[farthest] = h
        moved = fresh != labels
        labels = fresh
        path.append(labels)
        rounds += 1
    final = np.array(labels)
    sums = np.array([points[final == h].sum(axis=0) for h in range(clusters)])
    return ClearRun(path, not moved, rounds, sums, np.bincount(final, minlength=clusters))


def _squared_distances(rows: list[list[int]], labels: list[int], clusters: int) -> list[list[Fraction]]:
    centres = []
    for h in range(clusters):
        members = [row for row, label in zip(rows, labels, strict=True) if label == h]
        centres.append([Fraction(sum(column), len(members)) for column in zip(*members, strict=True)])
    return [[sum(((x - c) ** 2 for x, c in zip(row, mu, strict=True)), Fraction(0)) for mu in centres] for row in rows]


def _separate(away: list[list[Fraction]], labels: list[int], clusters: int) -> list[int]:
    groups = [-1] * len(labels)
    for i, row in enumerate(away):
        for h in range(clusters):
            if all(9 * row[h] <= row[s] for s in range(clusters) if s != h) and groups[i] == -1:
                groups[i] = h
    filled = [
        label if group == -1 and label != -1 and label not in groups else group
        for group, label in zip(groups, labels, strict=True)
    ]
    return filled if set(range(clusters)) <= set(filled) else labels


def read_path(run: LocalRun[Any], agreement: SecfcAgreement) -> dict[int, np.ndarray]:
    """Every version of the labels, as the clients received them; all must have been told the same."""
    versions: dict[int, np.ndarray] = {}
    for number in range(1, agreement.parties + 1):
        book = LabelBook(records=len(run.result.labels), clusters=agreement.clusters)
        for entry in run.views[number]:
            if isinstance(entry.message, Measure | RevealSums | Finish):
                labels = book.read(entry.message.news)
                book.keep(entry.message.news.version, labels)
                known = versions.setdefault(entry.message.news.version, labels)
                assert np.array_equal(known, labels)
    return versions


def check_against_clear(session: SecfcSession, run: LocalRun[Any], parties: list[SecfcParty]) -> None:
    """The same labels after every step, and the same centres, as Lloyd's algorithm in the clear."""
    outcome = run.result
    clear = session.in_the_clear(tuple(owner.party for owner in outcome.owners))
    assert outcome.labels.tolist() == clear.path[-1]
    assert (outcome.converged, outcome.rounds) == (clear.converged, clear.rounds)
    assert outcome.counts.tolist() == clear.counts.tolist()
    if run.views[1]:
        told = read_path(run, session.agreement)
        assert [told[version].tolist() for version in sorted(told)] == clear.path
    centres = session.coding.fixed_point.decode(clear.sums) / clear.counts[:, None]
    for party in parties:
        if party.finished:
            assert party.finding.labels.tolist() == clear.path[-1]
            if not outcome.revealed:  # too few were left for it
                assert party.finding.centres is None
                continue
            assert party.finding.centres is not None
            assert np.array_equal(party.finding.centres, centres)


def drive(session: SecfcSession, until: type[Any]) -> tuple[dict[int, SecfcParty], Any, Any]:
    """Run a session by hand until clients would be sent a request of this kind."""
    roles = {number: session.party(number) for number in session.numbers}
    generator = session.coordinator()
    ask = next(generator)
    while not any(isinstance(request, until) for request in ask.requests.values()):
        ask = generator.send({number: roles[number].handle(request) for number, request in ask.requests.items()})
    return roles, ask, generator


def spread(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Records without clear clusters, so that Lloyd's algorithm takes a while."""
    return np.random.default_rng(seed).uniform(-1, 1, (count, dimensions))
