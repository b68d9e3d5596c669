"""The one door to a noisy value: charge first, then draw, then add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from cloister.errors import LocalProtocolError
from cloister.numeric import Ring
from cloister.privacy.mechanisms import Noise, Release
from cloister.privacy.samplers import OnProgress, Sampler


class Charger(Protocol):
    """Whatever keeps the books: an accountant, a ledger, or both."""

    def charge(self, release: Release) -> None:
        """Record a release, or raise :class:`~cloister.errors.BudgetError` and record nothing."""


@dataclass(frozen=True, kw_only=True)
class NoiseDuty:
    """What a role needs in order to release: its own books, and a source of noise."""

    charger: Charger
    sampler: Sampler
    on_progress: OnProgress | None = None
    """Told while a long vector of noise is drawn: 10^5 exact samples take a second or two."""


def release(
    exact: NDArray[Any], event: Release, *, duty: NoiseDuty, ring: Ring | None = None, share: Noise | None = None
) -> NDArray[Any]:
    """Return ``exact`` plus noise, after the charge for ``event`` has been taken.

    Parameters
    ----------
    exact
        Integers: a vector whose sensitivity is ``event.sensitivity``; or, with ``ring``, ring elements, maybe masked.
    event
        What is released, and the noise that protects it against its receiver.
    duty
        Its charger is charged before a number is drawn; if it refuses, nothing is drawn and nothing returned.
    ring
        Add in this ring instead of over the integers. Reduction modulo 2^w is post-processing: it costs no privacy.
    share
        What this holder adds, where several add noise that only together is ``event.mechanism`` (privacy.placement).

    Privacy
    -------
    Neighbours: add/remove one unit. Sensitivity: ``event.sensitivity``, proved by the encoder. Event: ``event``.
    Theorem: that of its mechanism (docs/proofs/discrete-gaussian.md, discrete-laplace.md, placement-*.md). The charge
    is taken before the value exists, so a crash in between counts as spent.
    """
    flat = exact.reshape(-1)
    if len(flat) != event.entries:
        raise LocalProtocolError(f"a release of {event.entries} entries must get that many; got {len(flat)}.")
    duty.charger.charge(event)
    drawn = duty.sampler.draw(event.mechanism if share is None else share, event.entries, duty.on_progress)
    added: NDArray[Any] = flat + (drawn if ring is None else ring.encode(drawn))
    return added.reshape(exact.shape)
