"""All codebooks of a session, and how each party makes its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from cloister.crypto.stream import Stream
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.layout import join_reps
from cloister.protocols.vertical.private_codebook import exact_codebook, private_codebook, private_grid
from cloister.protocols.vertical.settings import ALICE, Settings
from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Codebooks:
    """Alice's codebook and those of the encrypted holders, in turn."""

    alice: Codebook
    holders: tuple[Codebook, ...]

    @property
    def cells(self) -> int:
        """m: how many joint cells there are."""
        return prod(own.cells for own in self.holders)

    @cached_property
    def reps(self) -> FloatArray:
        """(m, d_B): the representatives of the joint cells."""
        return join_reps([own.reps for own in self.holders])

    @property
    def residual_radius(self) -> int | None:
        """Of the only holder that may have residuals; 0: none."""
        return self.holders[0].residual_radius if len(self.holders) == 1 else 0

    def to_bytes(self) -> bytes:
        """Everything that the roles must agree on about them."""
        return b"".join(own.to_bytes() for own in (self.alice, *self.holders))


def make_alice_codebook(settings: Settings, points: FloatArray, *, duty: NoiseDuty | None, stream: Stream) -> Codebook:
    """Return Alice's codebook, of her columns (n, d_A): for the joint histogram, so one cell where there is none."""
    if ALICE not in settings.codebook_makers:
        points = points[:, :0]
    return _make_codebook(settings, ALICE, points, cells=settings.alice_cells, duty=duty, stream=stream)


def make_holder_codebook(
    settings: Settings, holder: int, points: FloatArray, *, duty: NoiseDuty | None, stream: Stream
) -> Codebook:
    """Return an encrypted holder's codebook, of its columns (n, d_h).

    ``duty``, its own books and noise, may be None where there is no budget.
    """
    return _make_codebook(settings, holder, points, cells=settings.cells_of(holder), duty=duty, stream=stream)


def _make_codebook(
    settings: Settings, party: int, points: FloatArray, *, cells: int, duty: NoiseDuty | None, stream: Stream
) -> Codebook:
    residuals = party != ALICE and settings.has_residuals
    if settings.is_grid(party) or not points.shape[1]:
        return private_grid(settings, points, party=party, cells=cells, residuals=residuals, duty=duty)
    if settings.is_exact:
        return exact_codebook(settings, points, cells=cells, residuals=residuals, stream=stream)
    return private_codebook(settings, points, party=party, cells=cells, residuals=residuals, duty=duty, stream=stream)
