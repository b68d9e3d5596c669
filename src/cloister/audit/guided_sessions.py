"""Attacks on a protocol of guided sums: a synopsis, or FedDP-KMeans.

Two made-up inputs differ by one unit of the first party: a record at the corner of the domain, or all that the party
holds. All else is harmless records in the middle of the domain, as many as make the algorithm ask its questions rather
than skip them. The adversary is :mod:`~cloister.audit.matched_filter`.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import ceil
from typing import Any

import numpy as np

from cloister.audit.adversary import (
    ADVERSARY,
    KeptNoise,
    find_corner,
    find_far_outside,
    find_middle,
    make_table,
)
from cloister.audit.claims import Neighbour
from cloister.audit.matched_filter import HiddenUnit, Watch
from cloister.crypto import Identity, Stream
from cloister.job import Job
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import NoiseDuty
from cloister.protocols.guided_sums import (
    PURSE,
    Agreement,
    GuidedParty,
    GuidedSettings,
    NoBooks,
    SharedThinking,
    coordinate,
)
from cloister.protocols.guided_sums.thinking import Pipeline
from cloister.records import ArrayRecords, FloatArray, IntArray, Records
from cloister.runtime import run_local
from cloister.wire import Codec

_CLEAR = 40.0  # records over noise, for each column: from about half of this all questions are asked
_MOST_HARMLESS = 10_000
_CLIENT_RECORDS = 20


def choose_units(job: Job, settings: GuidedSettings) -> dict[str, FloatArray]:
    """The rows of the unit that is there or not, by what they are."""
    corner, outside = find_corner(job)[None, :], find_far_outside(job)[None, :]
    if not settings.client_level:
        return {
            "one more record, at a corner of the domain": corner,
            "one more record, far outside the domain": outside,
        }
    opposite = 2 * find_middle(job)[None, :] - corner
    return {
        "one more party, all its records at a corner of the domain": np.repeat(corner, _CLIENT_RECORDS, axis=0),
        "one more party, its records at two opposite corners": np.repeat(
            np.vstack([corner, opposite]), _CLIENT_RECORDS // 2, axis=0
        ),
    }


def count_harmless(settings: GuidedSettings) -> int:
    """How many records each party holds besides."""
    needed = _CLEAR * max(settings.dimensions, 5) / settings.signal(PURSE)
    return ceil(min(needed, _MOST_HARMLESS) / settings.parties)


class GuidedSessions:
    """Runs a job's protocol over and over on two neighbouring inputs.

    Parameters
    ----------
    job, agreement, identities
        What was agreed, and who takes part.
    rows
        The unit, in the job's units: records that the first party holds on one input only.
    pipeline, codec
        The algorithm, and its wire.
    plan
        All releases, where they are fixed in advance.
    """

    def __init__(
        self,
        job: Job,
        agreement: Agreement[Any],
        identities: tuple[Identity, ...],
        rows: FloatArray,
        *,
        pipeline: Pipeline[Any],
        codec: Codec,
        plan: tuple[Release, ...] | None = None,
    ) -> None:
        self._pipeline, self._codec, self._plan = pipeline, codec, plan
        self._agreement = agreement
        self._identities = identities
        harmless = np.repeat(find_middle(job)[None, :], count_harmless(agreement.settings), axis=0)
        self._others: list[Records] = [make_table(job, harmless) for _ in job.parties[1:]]
        if agreement.settings.client_level:  # a party without records is one that is not there
            without: Records = ArrayRecords(np.zeros((0, len(job.columns))))
            present = make_table(job, rows)
        else:
            without = make_table(job, harmless)
            present = make_table(job, np.vstack([harmless, rows]))
        self._first = {Neighbour.WITHOUT: without, Neighbour.WITH: present}
        self._unit = HiddenUnit(
            settings=agreement.settings, others=tuple(self._others), without=without, present=present
        )

    def run(self, side: Neighbour, runs: int, stream: Stream) -> IntArray:
        """Return what the second party makes of what it reads, one row a run."""
        roles = range(self._agreement.settings.parties + 1)
        samplers = [KeptNoise(stream.child("noise", role)) for role in roles]
        entropies = [stream.child("keys", role) for role in roles]
        tables = [self._first[side], *self._others]
        return np.array([self._run_once(tables, samplers, entropies) for _ in range(runs)])

    def _run_once(self, tables: list[Records], samplers: list[KeptNoise], entropies: list[Stream]) -> IntArray:
        agreement = self._agreement
        session = entropies[0].bytes(16)
        own = [sampler.start() for sampler in samplers][ADVERSARY]
        budget = agreement.settings.budget
        watch = Watch(self._pipeline)
        thinking = SharedThinking(guard=nullcontext(), pipeline=watch)
        parties = [
            GuidedParty(
                number=number,
                agreement=agreement,
                records=table,
                identity=self._identities[number - 1],
                entropy=entropies[number],
                session=session,
                duty=NoiseDuty(charger=Accountant(budget, plan=self._plan), sampler=samplers[number]),
                thinking=thinking,
            )
            for number, table in enumerate(tables, start=1)
        ]
        duty = NoiseDuty(charger=NoBooks(), sampler=samplers[0]) if agreement.by_coordinator else None
        run_local(
            coordinate(agreement, session=session, duty=duty), parties, codec=self._codec, session=session, threads=1
        )
        totals = parties[ADVERSARY - 1].released_totals
        if own:
            totals = tuple(total - noise for total, noise in zip(totals, own, strict=True))
        return self._unit.read(watch.queries, totals)
