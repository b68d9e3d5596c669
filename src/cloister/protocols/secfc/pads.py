"""Pads that cancel over the responders: what the coordinator can read of their replies is the sum.

The responders R of one attempt stand on a circle, by number. Neighbours share a keystream; whoever is before adds it,
whoever is behind subtracts it:

    pad_j = F(j, next j) - F(previous j, j),        sum over j in R of pad_j = 0.

A circle is connected and stays so when one of R is taken out: to the coordinator, even with the secrets of one client
of R, the others' replies are uniform but for their sum. More pads would protect against more helpers of the
coordinator; but one client's records already fix the isometry (:mod:`.leakage`), so that two keystreams, whatever
the number of clients, are what there is to gain.

F is uniform over the field, from the two clients' Diffie-Hellman secret and a context that never comes twice with
different values: the labels, the attempt, R and the columns. Clients that were told different ones do not cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cloister.crypto import Stream, derive_key
from cloister.crypto.stream import Context
from cloister.errors import LocalProtocolError
from cloister.field import Field, Words


class CirclePads:
    """One client's pads of one session.

    Parameters
    ----------
    number
        This client.
    secrets
        The Diffie-Hellman secret with each other client.
    session, field
        Which session, and where the replies live.
    """

    __slots__ = ("_field", "_number", "_secrets", "_session")

    def __init__(self, *, number: int, secrets: Mapping[int, bytes], session: bytes, field: Field) -> None:
        self._number = number
        self._secrets = dict(secrets)
        self._session = session
        self._field = field

    def pad(self, responders: Sequence[int], shape: tuple[int, ...], *context: Context) -> Words:
        """Return pad_j, (residues, *shape); ``responders`` are rising, at least three, and this client among them."""
        if len(responders) < 3 or self._number not in responders or list(responders) != sorted(set(responders)):
            raise LocalProtocolError(
                f"pads must be among at least 3 responders by rising number, us among them; got {len(responders)}."
            )
        at = responders.index(self._number)
        behind, before = responders[(at + 1) % len(responders)], responders[at - 1]
        name = (*context, np.array(responders, dtype="<u2").tobytes())
        pad = self._keystream(self._number, behind, shape, name)
        self._field.deduct(pad, self._keystream(before, self._number, shape, name))
        return pad

    def _keystream(self, first: int, second: int, shape: tuple[int, ...], context: tuple[Context, ...]) -> Words:
        """F: the same at both ends of an edge of the circle."""
        secret = self._secrets[second if first == self._number else first]
        key = derive_key(secret, "circle pad", self._session, first, second, *context)
        return self._field.uniform(Stream(key), *shape)
