"""What the computing party states of each pass, and what a key holder derives from it: norm, noise and price.

A statement holds radii and scales of noise, and nothing that the session has agreed on already: which query it is, and
how many numbers it asks for, follow from the schedule. A key holder derives norms in integers and compares the noise
with what its own settings ask for, exactly; it needs no algorithm. Where centres and cells are it cannot check, since
it sees only ciphertexts: weights that are not those of the protocol are outside of what is promised.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import NoReturn

from msgspec import Struct

from cloister.errors import RemoteProtocolError
from cloister.protocols.vertical.codebook import Codebooks
from cloister.protocols.vertical.query import (
    HISTOGRAM,
    HistogramQuery,
    Part,
    Query,
    list_histogram_parts,
    list_round_parts,
)
from cloister.protocols.vertical.settings import Settings

NOISE_MOST = 2
"""No more times the noise that the settings ask for may be stated: sums must still fit the plaintexts."""


class StatedHistogram(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """The joint histogram; None: exact."""

    sigma: float | None


class StatedRound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """A round of Lloyd's algorithm; None: not clipped, exact. Radii are integers: every float is as long as any."""

    radius_alice: float | None
    radius_encrypted: float | None
    sigma_sum: float | None
    sigma_count: float | None


Stated = StatedHistogram | StatedRound


def state_query(query: Query) -> Stated:
    """Return what the key holders are told of a query."""
    if isinstance(query, HistogramQuery):
        return StatedHistogram(query.sigma)
    alice, encrypted = query.radius_alice, query.radius_encrypted
    return StatedRound(
        None if alice is None else float(alice),
        None if encrypted is None else float(encrypted),
        query.sigma_sum,
        query.sigma_count,
    )


def derive_parts(stated: Stated, settings: Settings, codebooks: Codebooks, name: str) -> tuple[Part, ...]:
    """Return what is to be paid for in one pass, and the noise on it.

    Parameters
    ----------
    stated
        What the computing party stated.
    settings, codebooks
        Public.
    name
        Of the query that the schedule has in this pass.

    Raises
    ------
    RemoteProtocolError
        If it is not the kind of query that the schedule has there, a radius is out of range or shorter than the
        residuals that holders encrypt, or noise is less than our own settings ask for or far more.

    Privacy
    -------
    Neighbours: one aligned record added or removed. Sensitivity: with these radii one record's part is no longer than
    the parts say, whatever centres and cells are (docs/proofs/vertical.md, claim 4). Noise is at least sqrt(l2_squared
    / 2 rho) with our own rho of the pass, compared as fractions: so what is accepted in all passes costs at most what
    was set aside for them.
    """
    if isinstance(stated, StatedHistogram):
        if name != HISTOGRAM:
            _refuse(f"be {name}", "the joint histogram")
        parts = list_histogram_parts(settings.histogram_length, stated.sigma)
        prices = [None if settings.is_exact else settings.start_rho]
    else:
        if name == HISTOGRAM:
            _refuse("be the joint histogram", "a round of Lloyd's algorithm")
        residual = codebooks.residual_radius or 0
        parts = list_round_parts(
            name,
            clusters=settings.clusters,
            dimensions=settings.dimensions,
            radius_alice=_read_radius(settings, stated.radius_alice, least=0, most=settings.weight_max),
            radius_encrypted=_read_radius(
                settings,
                stated.radius_encrypted,
                least=max(residual, 1),
                most=settings.weight_max + settings.residual_most,
            ),
            sigma_sum=stated.sigma_sum,
            sigma_count=stated.sigma_count,
        )
        prices = [None, None] if settings.is_exact else [settings.sum_rho, settings.count_rho]
    for part, rho in zip(parts, prices, strict=True):
        if not _is_enough(part, rho):
            wanted = "none where there is no budget" if rho is None else "at least what our settings ask for"
            _refuse(f"have noise on {part.name}, {wanted} and at most {NOISE_MOST} times that", "other noise")
    return parts


def _read_radius(settings: Settings, radius: float | None, *, least: int, most: int) -> int | None:
    """Return a radius in units; None exactly where there is no budget."""
    if radius is None or settings.is_exact:
        if radius is not None or not settings.is_exact:
            _refuse("have radii exactly where there is a budget", "another one")
        return None
    if not radius.is_integer() or not least <= radius <= most:
        _refuse(f"have radii from {least} to {most} units", "another one")
    return int(radius)


def _is_enough(part: Part, rho: float | None) -> bool:
    """Whether 2 rho sigma^2 >= l2_squared, exactly, and not far more."""
    if part.sigma is None or rho is None:
        return part.sigma is None and rho is None
    if not isfinite(part.sigma) or part.sigma <= 0:
        return False
    bought = 2 * Fraction(rho) * Fraction(part.sigma) ** 2
    return part.l2_squared <= bought <= NOISE_MOST**2 * part.l2_squared


def _refuse(wanted: str, got: str) -> NoReturn:
    raise RemoteProtocolError(f"the query that the computing party states must {wanted}; it states {got}.")
