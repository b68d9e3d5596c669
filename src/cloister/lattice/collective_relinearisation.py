"""The relinearisation key of a collective secret, made in two rounds without anyone learning the secret.

Mouchet, Troncoso-Pastoriza, Bossuat, Hubaux, "Multiparty homomorphic encryption from ring learning with errors"
(PoPETs 2021), protocol RelinKeyGen, with errors in multiples of t. Common masks a_i come from a joint coin toss; g_i
as in :mod:`~cloister.lattice.relinearisation`; holder h draws a temporary ternary secret u_h.

    round 1   first_h = -u_h a_i + s_h g_i + t e0        second_h = s_h a_i + t e1            F, G = their sums
    round 2   first_h' = s_h F + t e2                    second_h' = (u_h - s_h) G + t e3
    key       mask_i = -G,   body_i = sum first' + sum second'

    with u = sum u_h, s = sum s_h:
    body - mask s = s F + (u - s) G + s G + t (e2 + e3) = s^2 g_i + t (s e0 + u e1 + e2 + e3)

The errors are larger than one holder's by about sqrt(2 N); the bounds in :mod:`~cloister.lattice.product_noise` count
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Entropy
from cloister.errors import LocalProtocolError
from cloister.lattice.collective import check_residues
from cloister.lattice.keys import SecretKeys
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.relinearisation import RelinearisationKey, add_gadget, draw_scaled_errors, expand_key_masks


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
