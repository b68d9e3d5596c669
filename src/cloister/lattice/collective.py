"""Collective keys: secrets that are sums of the holders' secrets, and the public material made of everyone's shares.

*The common random polynomial* comes from a joint coin toss: 32 bytes that no party chose. Each party draws 32 bytes,
sends a hash of them, waits for everyone's hash, and only then opens. The seed is a hash of everything opened, so one
honest party makes it unpredictable when the others committed. The hash binds the session and the party's number: a
copied commitment cannot be opened by the one who copied it. A party that refuses to open can make the toss fail, and
so choose among as many outcomes as the others are willing to restart for: c attempts multiply the advantage of an
attack by at most c.

*The public key.* Holder h publishes mask s_h + e_h; the sum is a public key for s = sum_h s_h, which nobody has.

*The relinearisation key* is made in two rounds without anyone learning the secret: Mouchet, Troncoso-Pastoriza,
Bossuat, Hubaux, "Multiparty homomorphic encryption from ring learning with errors" (PoPETs 2021), protocol RelinKeyGen,
with errors in multiples of t. Common masks a_i come from the coin toss; g_i as in
:mod:`~cloister.lattice.relinearisation`; holder h draws a temporary ternary secret u_h.

    round 1   first_h = -u_h a_i + s_h g_i + t e0        second_h = s_h a_i + t e1            F, G = their sums
    round 2   first_h' = s_h F + t e2                    second_h' = (u_h - s_h) G + t e3
    key       mask_i = -G,   body_i = sum first' + sum second'

    with u = sum u_h, s = sum s_h:
    body - mask s = s F + (u - s) G + s G + t (e2 + e3) = s^2 g_i + t (s e0 + u e1 + e2 + e3)

The errors are larger than one holder's by about sqrt(2 N); the bounds in :mod:`~cloister.lattice.product_plan` count
it. Proofs: docs/proofs/collective-keys.md.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from cloister.crypto import Entropy, encode_context
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.lattice.keys import PublicKeys, SecretKeys, make_public_keys
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.relinearisation import RelinearisationKey, add_gadget, draw_scaled_errors, expand_key_masks
from cloister.lattice.ring import check_residues

TOSS_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Toss:
    """One party's toss: what it sends first, and what it opens when it has everyone's commitment."""

    commitment: bytes
    opening: bytes = field(repr=False)


def draw_toss(session: bytes, number: int, entropy: Entropy) -> Toss:
    """Draw a party's 32 bytes and commit to them under its number in the session."""
    opening = entropy.bytes(TOSS_BYTES)
    return Toss(commitment=_commit(session, number, opening), opening=opening)


def combine_tosses(session: bytes, commitments: Sequence[bytes], openings: Sequence[bytes]) -> bytes:
    """Check every opening against its commitment and return the joint seed, 32 bytes.

    Parameters
    ----------
    session
        The session's identifier, the same that every party committed under.
    commitments, openings
        In the order of the parties' numbers, from 0.

    Raises
    ------
    RemoteProtocolError
        If an opening is not what its party committed to; names the party's number.
    """
    if not commitments or len(commitments) != len(openings):
        raise LocalProtocolError(
            f"a coin toss needs one opening for each commitment, and at least one; "
            f"got {len(openings)} openings for {len(commitments)} commitments. Wait for every party."
        )
    for number, (commitment, opening) in enumerate(zip(commitments, openings, strict=True)):
        if len(opening) != TOSS_BYTES or not hmac.compare_digest(commitment, _commit(session, number, opening)):
            raise RemoteProtocolError(
                f"the opening of a coin toss must be the {TOSS_BYTES} bytes committed to; that of party {number} "
                f"is not. End the session."
            )
    return sha256(encode_context("coin toss", session, len(openings), *openings)).digest()


def _commit(session: bytes, number: int, opening: bytes) -> bytes:
    return sha256(encode_context("coin toss commitment", session, number, opening)).digest()


def make_public_share(keys: SecretKeys, *, seed: bytes, stream: Entropy) -> Residues:
    """Return mask s_h + e_h for each of a holder's S secrets, (S, L, N) in NTT form."""
    return make_public_keys(keys, seed=seed, stream=stream).bodies


def combine_public_shares(parameters: Parameters, seed: bytes, shares: Sequence[Residues]) -> PublicKeys:
    """Add the holders' shares to the public keys of the sums of their secrets.

    Raises
    ------
    RemoteProtocolError
        If a share has another shape than the first or a residue that its prime does not allow; names its place.
    """
    if not shares:
        raise LocalProtocolError("a collective key must have at least one share; got none.")
    total = np.zeros_like(shares[0])
    for number, share in enumerate(shares):
        check_residues(parameters.ring, share, shares[0].shape, f"the public share of holder {number}")
        total = parameters.ring.add(total, share)
    return PublicKeys(parameters=parameters, seed=seed, bodies=total)


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundShare:
    """What a holder sends in a round, or the sum of all: two arrays (L, L, N), NTT form."""

    first: Residues
    second: Residues


class RelinearisationHolder:
    """One holder's part in the protocol: each round once, in order; the temporary secret is gone after the second.

    Parameters
    ----------
    keys
        The holder's single secret; stays open and is not changed.
    seed
        The joint coin toss.
    stream
        Where the temporary secret and the errors come from.
    """

    def __init__(self, keys: SecretKeys, *, seed: bytes, stream: Entropy) -> None:
        if keys.count != 1:
            raise LocalProtocolError(f"products are taken under one secret; got {keys.count}.")
        self._keys = keys
        self._seed = seed
        self._stream = stream
        self._temporary: SecretKeys | None = None
        self._finished = False

    def __repr__(self) -> str:
        return f"RelinearisationHolder(finished={self._finished})"

    def share_first(self) -> RoundShare:
        """Return the holder's part of the first round."""
        if self._temporary is not None or self._finished:
            raise LocalProtocolError("a holder takes part in the first round once; this one has. Start a new session.")
        parameters, ring = self._keys.parameters, self._keys.parameters.ring
        self._temporary = SecretKeys.generate(parameters, 1, self._stream)
        masks = expand_key_masks(parameters, self._seed)
        secret = self._keys.ntt[0]
        first = ring.subtract(self._draw_errors(), ring.multiply(masks, self._temporary.ntt[0]))
        second = ring.add(self._draw_errors(), ring.multiply(masks, secret))
        return RoundShare(first=add_gadget(first, secret, parameters), second=second)

    def share_second(self, total: RoundShare) -> RoundShare:
        """Return the holder's part of the second round, from the sum of the first, and forget the temporary secret."""
        if self._temporary is None:
            raise LocalProtocolError("the second round follows the first, once; this holder is not there.")
        ring = self._keys.parameters.ring
        _check_share(self._keys.parameters, total, "the sum of the first round")
        secret = self._keys.ntt[0]
        difference = ring.subtract(self._temporary.ntt[0], secret)
        self._temporary.close()
        self._temporary, self._finished = None, True
        first = ring.add(self._draw_errors(), ring.multiply(total.first, secret))
        second = ring.add(self._draw_errors(), ring.multiply(total.second, difference))
        difference.fill(0)
        return RoundShare(first=first, second=second)

    def _draw_errors(self) -> Residues:
        parameters = self._keys.parameters
        return draw_scaled_errors(parameters, len(parameters.primes), self._stream)


def add_round_shares(parameters: Parameters, shares: Sequence[RoundShare]) -> RoundShare:
    """Add what the holders sent in one round.

    Raises
    ------
    RemoteProtocolError
        If a share is malformed; names the holder's number.
    """
    if not shares:
        raise LocalProtocolError("a round must have at least one share; got none.")
    ring = parameters.ring
    for number, share in enumerate(shares):
        _check_share(parameters, share, f"the relinearisation share of holder {number}")
    first, second = np.zeros_like(shares[0].first), np.zeros_like(shares[0].second)
    for share in shares:
        first, second = ring.add(first, share.first), ring.add(second, share.second)
    return RoundShare(first=first, second=second)


def combine_relinearisation_key(
    parameters: Parameters, first_total: RoundShare, second_total: RoundShare
) -> RelinearisationKey:
    """Return the collective key from the sums of both rounds."""
    ring = parameters.ring
    return RelinearisationKey(
        parameters=parameters,
        masks=ring.negate(first_total.second),
        bodies=ring.add(second_total.first, second_total.second),
    )


def _check_share(parameters: Parameters, share: RoundShare, name: str) -> None:
    count = len(parameters.primes)
    for part in (share.first, share.second):
        check_residues(parameters.ring, part, (count, count, parameters.degree), name)
