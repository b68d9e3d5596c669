"""What is agreed without being sent: statements of what must be equal, and how parties notice that it is not.

Whoever answers in a round binds its masks to a *statement*, a hash of everything that all who answer must have in
common:

    statement = H(session, link, round, attempt, members, subject)        link of round r: H(statement r, total r)

The link covers all rounds before, with every total as it was read; the subject is what the protocol adds, such as the
centres. Statements never leave a party in the clear: pads of parties whose statements differ do not cancel.

Behind each vector stand 128 bits of *check words*, a keyed hash of the statement. In the sum of M equal ones each is M
times its own; if one differs, the sum is not, but for a chance below 2^-72 (docs/proofs/secure-sum.md).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation.messages import Attempt
from cloister.crypto import Stream, derive_key
from cloister.crypto.stream import encode_context
from cloister.errors import DivergedError, RemoteProtocolError
from cloister.numeric import Ring

DIGEST_BYTES = 32
CHECK_BITS = 128


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a party stands before a round: all that must be equal among those who answer in it.

    Attributes
    ----------
    link
        What happened in the rounds before.
    subject
        What else must be equal, as bytes.
    """

    link: bytes
    subject: bytes


def start_link(session: bytes, agreement: bytes) -> bytes:
    """Return the link before the first round."""
    return _digest("cloister link", session, agreement)


def extend_link(statement: bytes, total: NDArray[Any]) -> bytes:
    """Return the link after a round, from what was asked and what was read, check words included."""
    return _digest("cloister link", statement, write_words(total))


def state_attempt(session: bytes, place: Place, attempt: Attempt) -> bytes:
    """Return the statement of an attempt."""
    return _digest(
        "cloister statement",
        session,
        place.link,
        attempt.round,
        attempt.number,
        attempt.members,
        place.subject,
    )


def digest_body(body: bytes) -> bytes:
    """Return what an opening is bound to."""
    return hashlib.sha256(body).digest()


# --- words and check words --------------------------------------------------------------------------------------------


def count_check_words(ring: Ring) -> int:
    """How many words stand behind a vector."""
    return CHECK_BITS // ring.bits


def append_check_words(vector: NDArray[Any], seed: bytes, statement: bytes, ring: Ring) -> NDArray[Any]:
    """Return the vector with the check words of a statement behind it."""
    return np.concatenate([vector, _draw_check_words(seed, statement, ring)])


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A total as a party has read it: its ring elements, who is in it, and the link to the next round."""

    elements: NDArray[Any]
    members: tuple[int, ...]
    link: bytes


def read_checked(
    total: NDArray[Any], *, seed: bytes, statement: bytes, ring: Ring, members: tuple[int, ...]
) -> Reading:
    """Take the check words off a total without masks.

    Raises
    ------
    DivergedError
        If some member answered another question, or saw other totals before, than this party.
    """
    words = count_check_words(ring)
    expected = _draw_check_words(seed, statement, ring) * np.array(len(members), dtype=ring.dtype)
    if not np.array_equal(total[-words:], expected):
        raise DivergedError(
            "all parties in a sum must have seen the same sums before and computed the same from them; they have not. "
            "Nothing of this round was read; it stays paid. Compare the versions of the parties, and whether the "
            "coordinator told everyone the same."
        )
    return Reading(elements=total[:-words], members=members, link=extend_link(statement, total))


def _draw_check_words(seed: bytes, statement: bytes, ring: Ring) -> NDArray[Any]:
    return Stream(derive_key(seed, "check words", statement)).words(count_check_words(ring), ring.dtype)


def read_words(plaintext: bytes, ring: Ring, length: int) -> NDArray[Any]:
    """Return ring elements from their little-endian bytes."""
    words = np.dtype(ring.dtype).newbyteorder("<")
    if len(plaintext) != length * words.itemsize:
        raise RemoteProtocolError(f"a vector must have {length * words.itemsize} bytes; got {len(plaintext)}.")
    return np.frombuffer(plaintext, dtype=words).astype(ring.dtype, copy=False)


def write_words(vector: NDArray[Any]) -> bytes:
    """Undo :func:`read_words`."""
    return vector.astype(vector.dtype.newbyteorder("<"), copy=False).tobytes()


def _digest(*context: str | int | bytes) -> bytes:
    return hashlib.sha256(encode_context(*context)).digest()
