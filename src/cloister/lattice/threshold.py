"""t of n key holders decrypt: each splits its secret among all by Shamir's scheme, modulo each prime of the ring.

Holder h draws, for each of its secrets, a polynomial over the residues with the secret as its value at 0 and t - 1
uniform coefficients, and sends its value at j + 1 to holder j (sealed). What a holder receives adds up to a point of
a polynomial whose value at 0 is the collective secret s; any t points give s as a sum with public Lagrange
coefficients, fewer are independent of it. Sharing is linear, so it is done in NTT form.

A decryption share is lambda_h <mask, point_h> + smudge - delta noise: the Lagrange coefficient, which may be as large
as the prime, is applied BEFORE the smudge, or it would blow the smudge up. The set of holders that answer is
announced first; a holder answers for one set only (its guard admits a mask once), because two sets would give two
equations with the same point. Shamir (1979); Mouchet, Bertrand, Hubaux, "An efficient threshold access-structure for
RLWE-based multiparty homomorphic encryption" (2023). Proof: docs/proofs/collective-keys.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Self

import numpy as np

from cloister.crypto import KEY_BYTES, Entropy
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice.decryption import DecryptionGuard, smudge_phases
from cloister.lattice.keys import SecretKeys
from cloister.lattice.lwe import LweBatch
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import Ring, check_residues
from cloister.lattice.sampling import expand_uniform


def split_keys(keys: SecretKeys, *, threshold: int, holders: int, stream: Entropy) -> Residues:
    """Split a holder's S secrets: entry j of the result, (S, L, N) in NTT form, is for holder j alone.

    Parameters
    ----------
    keys
        The holder's own secrets.
    threshold
        How many holders decrypt, 1 to ``holders``.
    holders
        How many there are.
    stream
        Where the uniform coefficients come from.
    """
    if not 1 <= threshold <= holders or holders >= min(keys.parameters.primes):
        raise ConfigError(f"a threshold must be between 1 and the number of holders; got {threshold} of {holders}.")
    key = stream.bytes(KEY_BYTES)
    uniform = [
        np.stack([expand_uniform(keys.parameters, key, "share", power, number) for number in range(keys.count)])
        for power in range(1, threshold)
    ]
    coefficients = np.stack([keys.ntt, *uniform])
    ring = keys.parameters.ring
    return np.stack([evaluate_shares(ring, coefficients, number + 1) for number in range(holders)])


def evaluate_shares(ring: Ring, coefficients: Residues, at: int) -> Residues:
    """Return sum_k coefficients[k] at^k by Horner's rule; coefficients (t, ..., L, N)."""
    point = ring.residues_of(at)
    value: Residues = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = ring.add(ring.scale(value, point), coefficient)
    return value


def find_lagrange_weights(primes: Sequence[int], members: Sequence[int], number: int) -> Residues:
    """Return lambda modulo each prime, (L,): value at 0 = sum over members of lambda value at (member + 1)."""
    others = [member + 1 for member in members if member != number]
    top = prod(others)
    bottom = prod(other - (number + 1) for other in others)
    return np.array([top * pow(bottom, -1, prime) % prime for prime in primes], dtype=np.uint32)


class ThresholdKeys:
    """One holder's points of the collective secrets; overwritten with zeros when closed.

    Parameters
    ----------
    parameters
        The ring.
    received
        What each of the holders sent, its own included, (S, L, N) in NTT form, in the order of their numbers.
    number
        This holder, from 0.
    threshold
        How many holders decrypt.

    Raises
    ------
    RemoteProtocolError
        If what a holder sent is malformed; names its number.
    """

    __slots__ = ("_closed", "_points", "holders", "number", "parameters", "threshold")

    def __init__(self, parameters: Parameters, received: Sequence[Residues], *, number: int, threshold: int) -> None:
        if not 0 <= number < len(received) or not 1 <= threshold <= len(received):
            raise LocalProtocolError(
                f"a holder and a threshold must be within the {len(received)} holders; got {number} and {threshold}."
            )
        total = np.zeros_like(received[number])
        for sender, share in enumerate(received):
            check_residues(parameters.ring, share, total.shape, f"the key share of holder {sender}")
            total = parameters.ring.add(total, share)
        self.parameters = parameters
        self.number = number
        self.threshold = threshold
        self.holders = len(received)
        self._points = total
        self._closed = False

    @property
    def points(self) -> Residues:
        """The holder's points (S, L, N), NTT form."""
        if self._closed:
            raise LocalProtocolError("threshold keys must be open to be used; these were closed. Make new ones.")
        return self._points

    def close(self) -> None:
        """Overwrite the points; any later use is refused."""
        self._points.fill(0)
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ThresholdKeys(number={self.number}, {self.threshold} of {self.holders}, closed={self._closed})"

    def __reduce__(self) -> str:
        raise TypeError("threshold keys are not to be copied or stored")


def share_threshold_decryption(
    keys: ThresholdKeys,
    batch: LweBatch,
    *,
    members: Sequence[int],
    smudge_bits: int,
    stream: Entropy,
    guard: DecryptionGuard,
    noise: Callable[[], Sequence[int]] | None = None,
) -> Residues:
    """Return a holder's share for each body, residues (B, L), for one announced set of holders.

    The shares of exactly these members go to :func:`~cloister.lattice.decryption.combine_decryptions`. Other parameters
    as in :func:`~cloister.lattice.decryption.share_decryption`.

    Raises
    ------
    RemoteProtocolError
        If the set has fewer than t members, repeats one, has one that is no holder, or lacks this holder; or if a
        mask was answered before, for whichever set.
    """
    if len(set(members)) != len(members) or not set(members) <= set(range(keys.holders)):
        raise RemoteProtocolError(f"members must be distinct holders from 0 to {keys.holders - 1}; they are not.")
    if len(members) < keys.threshold or keys.number not in members:
        raise RemoteProtocolError(
            f"a set of at least {keys.threshold} holders must decrypt, this one (number {keys.number}) among them; "
            f"got {len(members)}."
        )
    weights = find_lagrange_weights(batch.parameters.primes, members, keys.number)
    return smudge_phases(keys.parameters, keys.points, batch, weights, smudge_bits, stream, guard, noise)
