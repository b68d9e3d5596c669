"""A rehearsal: the same algorithm, noise and charges in one place, without encryption or messages.

It needs every record, so it protects nobody; what it finds is what a session with the same noise finds,
bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import Charger, NoiseDuty
from cloister.privacy.samplers import Sampler
from cloister.protocols.vertical.algorithm import VerticalFinding, run_vertical
from cloister.protocols.vertical.codebook import Codebooks
from cloister.protocols.vertical.codebook_makers import make_alice_codebook, make_holder_codebook
from cloister.protocols.vertical.noise import draw_share
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.statistics import align_records, exact_total
from cloister.records import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """What a session would have ended with."""

    finding: VerticalFinding
    codebooks: Codebooks
    releases: tuple[Release, ...]
    """What the records would have been charged for."""
    totals: tuple[IntArray, ...]
    """The released numbers of each pass."""


class _Notes:
    """Charges the books, if there are any, and remembers the charges."""

    def __init__(self, charger: Charger | None) -> None:
        self._charger = charger
        self.releases: list[Release] = []

    def charge(self, release: Release) -> None:
        """Charge, then remember."""
        if self._charger is not None:
            self._charger.charge(release)
        self.releases.append(release)


def rehearse_vertical(
    settings: Settings,
    table: FloatArray,
    *,
    samplers: Sequence[Sampler],
    stream: Stream,
    codebooks: Codebooks | None = None,
    charger: Charger | None = None,
) -> Rehearsal:
    """Run the algorithm on all columns at once.

    Parameters
    ----------
    settings
        Public values.
    table
        (n, d), in the job's column order, on the grid of the records.
    samplers
        One for each holder of noise, in turn: asked part by part for what that holder adds. The first also draws the
        noise of codebooks. Not used in an exact rehearsal.
    stream
        The roles' common stream.
    codebooks
        Those of a session that is to be rehearsed; None: they are made here.
    charger
        Books to charge; None: releases are noted and nothing is refused.
    """
    if len(table) != settings.records:
        raise LocalProtocolError(f"a rehearsal must get all {settings.records} records; got {len(table)}.")
    if not settings.is_exact and len(samplers) != settings.placement.parties:
        raise LocalProtocolError(
            f"a rehearsal needs one sampler for each of {settings.placement.parties} holders of noise; "
            f"got {len(samplers)}."
        )
    books = _Notes(charger)
    if codebooks is None:
        codebooks = _make_codebooks(settings, table, books, samplers, stream)
    records = align_records(table, settings.layout, codebooks)
    asking = run_vertical(settings, codebooks, stream)
    query = next(asking)
    totals: list[IntArray] = []
    while True:
        if not settings.is_exact:
            for part in query.parts:
                books.charge(part.release(settings))
        total = exact_total(query, records, codebooks)
        if not settings.is_exact:
            for sampler in samplers:
                total += draw_share(settings, query.parts, sampler)
        totals.append(total)
        try:
            query = asking.send(total)
        except StopIteration as stop:
            return Rehearsal(
                finding=stop.value, codebooks=codebooks, releases=tuple(books.releases), totals=tuple(totals)
            )


def _make_codebooks(
    settings: Settings, table: FloatArray, books: _Notes, samplers: Sequence[Sampler], stream: Stream
) -> Codebooks:
    layout = settings.layout
    duty = None if settings.is_exact else NoiseDuty(charger=books, sampler=samplers[0])
    return Codebooks(
        alice=make_alice_codebook(
            settings, layout.alice_part(table), duty=duty, stream=stream.child("codebook", "alice")
        ),
        holders=tuple(
            make_holder_codebook(
                settings, number, layout.holder_part(table, number), duty=duty, stream=stream.child("codebook", number)
            )
            for number in range(len(settings.columns_encrypted))
        ),
    )
