"""Decryption under a collective key: each holder sends a smudged share for each answer, once.

To decrypt the scalar body of an answer, holder h sends one number for it,

    share_h = <mask, s_h> + smudge_h - delta noise_h,

and body - sum_h share_h = delta (m + sum noise) + error + smudges. The smudge, uniform on +-2^bits and larger than
the answer's error by 2^40, hides that error, which depends on secrets and on the weights of whoever computed
(docs/proofs/collective-keys.md). ``noise`` is the place for a holder's share of the privacy noise: it is in the
share before anyone can see a result.

A ciphertext is decrypted once: a holder remembers the masks it has answered for, and refuses them again
(:class:`DecryptionGuard`). Asked again about the same mask, it would draw the fresh smudge and its part of the privacy
noise anew: another release that nobody charged, and an average in which the noise fades. The mask alone decides; bodies
are not the holder's to judge. The guard holds against repetition. It cannot see that a mask is a multiple or a sum of
earlier ones; that is what the smudge of every single answer is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.crypto import Entropy
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice.encryption import round_to_plaintext
from cloister.lattice.keys import SecretKeys
from cloister.lattice.lwe import LweBatch, draw_flood
from cloister.lattice.ntt import Residues, reduce_wide
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import Ring, check_residues
from cloister.records import IntArray

SMUDGE_DISTANCE_BITS = 40
_LAZY_TERMS = 512  # products of 54 bits in a 64-bit word, with room for the word carried over
DIGEST_BYTES = 16


def choose_smudge_bits(
    *, error_bound: float, room: float, smudgers: int, distance_bits: int = SMUDGE_DISTANCE_BITS
) -> int:
    """Return b such that smudges uniform on +-2^b hide the error and fit the room.

    Parameters
    ----------
    error_bound
        Largest error of an answer before smudging.
    room
        What may be added to it (:func:`~cloister.lattice.noise.flood_reach_max`).
    smudgers
        How many shares are added up.
    distance_bits
        One honest share is within statistical distance 2^-distance_bits of one that does not depend on the error.

    Raises
    ------
    ConfigError
        If the room is too small.
    """
    bits = max(0, ceil(log2(max(error_bound, 1.0)))) + distance_bits
    if smudgers * 2.0**bits > room:
        lacking = bits + log2(smudgers) - log2(max(room, 1.0))
        raise ConfigError(
            f"{smudgers} smudges of 2^{bits} must fit beside the error; {lacking:.1f} bits are lacking. "
            "Use more primes, or smaller sums."
        )
    return bits


def share_decryption(
    keys: SecretKeys,
    batch: LweBatch,
    *,
    smudge_bits: int,
    stream: Entropy,
    guard: DecryptionGuard,
    noise: Callable[[], Sequence[int]] | None = None,
) -> Residues:
    """Return one holder's share for each body, residues (B, L).

    Parameters
    ----------
    keys
        The holder's own secrets; their first primes must be the batch's.
    batch
        What to decrypt. Only its masks are used, and each only once.
    smudge_bits
        From :func:`choose_smudge_bits`.
    stream
        Where the smudges come from.
    guard
        The holder's memory of what it answered.
    noise
        Gives integers to add to the plaintexts, one for each body: a share of the privacy noise. Called once every
        check has passed, so that nothing is charged or drawn for a request that is refused.

    Raises
    ------
    RemoteProtocolError
        If a mask was answered before, or the request is malformed. Nothing is remembered then.
    """
    return smudge_phases(keys.parameters, keys.ntt, batch, None, smudge_bits, stream, guard, noise)


def combine_decryptions(batch: LweBatch, shares: Sequence[Residues]) -> list[int]:
    """Return the plaintexts, centred modulo t, from all holders' shares.

    Raises
    ------
    RemoteProtocolError
        If a share is malformed; names its place.
    """
    parameters, ring = batch.parameters, batch.parameters.ring
    rest = batch.bodies[:, :, None]
    for number, share in enumerate(shares):
        check_residues(ring, share[..., None], rest.shape, f"the decryption share of holder {number}")
        rest = ring.subtract(rest, share[:, :, None])
    return [int(x) for x in round_to_plaintext(parameters, ring.to_integers(rest[:, :, 0]))]


def smudge_phases(
    parameters: Parameters,
    secrets: Residues,
    batch: LweBatch,
    weights: Residues | None,
    smudge_bits: int,
    stream: Entropy,
    guard: DecryptionGuard,
    noise: Callable[[], Sequence[int]] | None,
) -> Residues:
    """Return weight <mask, secret> + smudge - delta noise for each body; ``weights`` (L,) come before the smudge."""
    level, ring = batch.parameters, batch.parameters.ring
    count = len(level.primes)
    if parameters.degree != level.degree or parameters.primes[:count] != level.primes:
        raise RemoteProtocolError("ciphertexts must be over the first primes of the key; these are not.")
    pairs = np.stack([batch.mask_of, batch.secret_of], axis=1)
    if len(pairs) and (batch.secret_of.min() < 0 or batch.secret_of.max() >= len(secrets)):
        raise RemoteProtocolError(f"a ciphertext must name one of the {len(secrets)} secrets; one does not.")
    if len(np.unique(pairs, axis=0)) < len(pairs):
        raise RemoteProtocolError("one mask and secret must belong to one body; some belong to two. Re-randomise each.")
    guard.admit(batch.masks)
    drawn = [0] * len(pairs) if noise is None else noise()
    if len(drawn) != len(pairs):
        raise LocalProtocolError(f"noise must be one integer for each of {len(pairs)} bodies; got {len(drawn)}.")
    rows = reverse_secrets(ring, np.ascontiguousarray(secrets[:, :count]))
    phases = np.empty((len(pairs), count), dtype=np.uint32)
    _sum_phases(batch.masks, rows, batch.mask_of, batch.secret_of, phases, ring.prime_words, ring.constants)
    rows.fill(0)
    if weights is not None:
        phases = ring.scale(phases[:, :, None], weights)[:, :, 0]
    smudges = draw_flood(stream, smudge_bits, len(pairs))
    added = [smudge - level.delta * integer for smudge, integer in zip(smudges, drawn, strict=True)]
    residues = np.array([[value % prime for prime in level.primes] for value in added], dtype=np.uint32)
    return ring.add(phases[:, :, None], residues.reshape(-1, count, 1))[:, :, 0]


def reverse_secrets(ring: Ring, secrets: Residues) -> Residues:
    """Return rows r with (mask s)_0 = <mask, r>, from secrets in NTT form: r_0 = s_0, r_k = -s_(N-k)."""
    coefficients = ring.inverse(secrets)
    rows = ring.negate(np.roll(coefficients[..., ::-1], 1, axis=-1))
    rows[..., 0] = coefficients[..., 0]
    coefficients.fill(0)
    return rows


@compile_loop
def _sum_phases(
    masks: Residues,
    rows: Residues,
    mask_of: IntArray,
    secret_of: IntArray,
    phases: Residues,
    primes: Residues,
    constants: Residues,
) -> None:
    """Write <mask, row> modulo each prime; the same work whatever the values."""
    for b in range(mask_of.size):
        for l in range(primes.size):  # noqa: E741 (the papers' index of a prime)
            prime, unit, power, power_quotient = primes[l], constants[l, 0], constants[l, 1], constants[l, 2]
            mask, row = masks[mask_of[b], l], rows[secret_of[b], l]
            total = np.uint64(0)
            for first in range(0, mask.size, _LAZY_TERMS):
                for i in range(first, min(first + _LAZY_TERMS, mask.size)):
                    total += np.uint64(mask[i]) * np.uint64(row[i])
                total = np.uint64(reduce_wide(total, prime, unit, power, power_quotient))
            phases[b, l] = np.uint32(total)


class DecryptionGuard:
    """Admits each mask once.

    Parameters
    ----------
    masks_max
        How many masks a session may ask for; at 16 bytes each this bounds the memory. When they are spent, further
        requests are refused: forgetting old ones would open the door to repeating them.
    """

    def __init__(self, masks_max: int = 1 << 20) -> None:
        if masks_max < 1:
            raise ConfigError(f"a guard must admit at least one mask; got masks_max={masks_max}. Raise it.")
        self.masks_max = masks_max
        self._digests: set[bytes] = set()

    @property
    def masks_spent(self) -> int:
        """How many masks were admitted."""
        return len(self._digests)

    def admit(self, masks: NDArray[np.uint32]) -> None:
        """Remember these masks, or refuse all of them and remember none.

        Parameters
        ----------
        masks
            Shape (A, L, N): one polynomial after the other.

        Raises
        ------
        RemoteProtocolError
            If one of them was answered before or appears twice, or the session's number of masks is spent.
        """
        fresh = {digest_mask(mask) for mask in masks}
        repeated = len(masks) - len(fresh - self._digests)
        if repeated:
            raise RemoteProtocolError(
                f"a ciphertext is decrypted once; {repeated} of {len(masks)} requested masks were answered before "
                f"or stand twice in the request. Re-randomise each answer and ask once."
            )
        if len(self._digests) + len(fresh) > self.masks_max:
            raise RemoteProtocolError(
                f"a session decrypts at most {self.masks_max} masks; {len(self._digests)} are spent and "
                f"{len(fresh)} more were asked for. Start a new session."
            )
        self._digests |= fresh


def digest_mask(mask: NDArray[np.uint32]) -> bytes:
    """Return 16 bytes of BLAKE2b; two masks with one digest would only make the second be refused."""
    words = np.ascontiguousarray(mask, dtype="<u4")
    return blake2b(words.data, digest_size=DIGEST_BYTES, person=b"cloister mask").digest()
