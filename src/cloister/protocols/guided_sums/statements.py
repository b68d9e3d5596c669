"""What a leader states: a question or the result, sealed to the parties and signed.

Coordinator and wire see a box of its slot's public length, whatever is asked. Its key follows from the common seed, the
session, the round, the leader and 16 fresh bytes: who takes over, or comes back, may seal another question for the same
round. Signatures and the chain cover the sealed bytes, never what is in them: from a hash of the plaintext a
coordinator that knows the noise could tell whether it is the question with some record, or the one without it.

The chain is what all parties of a session must have in common: link r is a hash of link r - 1 and of the sealed
question of round r.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import msgspec
from msgspec import Struct

from cloister.aggregation import unpack_members
from cloister.aggregation.statements import Place
from cloister.crypto import Identity, derive_key, is_signed
from cloister.crypto.identity import SIGNATURE_BYTES
from cloister.crypto.sealing import TAG_BYTES, open_keyed, seal_keyed
from cloister.crypto.stream import Context, encode_context
from cloister.errors import CloisterError, LocalProtocolError, RemoteProtocolError
from cloister.protocol import RESULT_VOTE, Votes
from cloister.protocols.guided_sums.query import Idle, PublicValues, Query, Question, pose
from cloister.roles import PartyNumber, Seat

SALT_BYTES, LINK_BYTES, _LENGTH_BYTES = 16, 32, 4


class Stated(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """A leader's question of one round, or its result after the last, padded, sealed and signed."""

    leader: PartyNumber
    salt: bytes
    box: bytes
    signature: bytes


class Forms:
    """What may be asked in each round: how it is written, and what follows from it.

    Parameters
    ----------
    public
        Public values.
    slots
        The name and the kind of question of each round, the result's last.
    """

    def __init__(self, public: PublicValues, slots: Sequence[tuple[str, type[Question]]]) -> None:
        self.public = public
        self._slots = tuple(slots)
        self._decoders = [msgspec.msgpack.Decoder(Idle | kind) for _, kind in slots]
        self.read = lru_cache(maxsize=2)(self._read)  # once for all parties of a process

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Bytes of each round's question: of the longest that its kind knows."""
        encode = msgspec.msgpack.encode
        return tuple(_LENGTH_BYTES + len(encode(kind.largest(self.public))) for _, kind in self._slots)

    def write(self, round_: int, question: Question) -> bytes:
        """Return a question in as many bytes as every question of its round has."""
        encoded = msgspec.msgpack.encode(question)
        room = self.lengths[round_ - 1]
        written = len(encoded).to_bytes(_LENGTH_BYTES, "little") + encoded
        if len(written) > room or not isinstance(question, Idle | self._slots[round_ - 1][1]):
            raise LocalProtocolError(
                f"round {round_} must ask for {self._slots[round_ - 1][0]!r} in at most {room} bytes; it asks "
                f"{type(question).__name__} in {len(written)}: this is a bug."
            )
        return written.ljust(room, b"\0")

    def _read(self, round_: int, written: bytes) -> Query:
        """Decode a question, check its range, and return what follows from it."""
        length = int.from_bytes(written[:_LENGTH_BYTES], "little")
        encoded, padding = written[_LENGTH_BYTES : _LENGTH_BYTES + length], written[_LENGTH_BYTES + length :]
        if len(encoded) != length or any(padding):
            raise RemoteProtocolError("a question must be padded with zeros; it is not.")
        name, kind = self._slots[round_ - 1]
        try:
            question = self._decoders[round_ - 1].decode(encoded)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            raise RemoteProtocolError(
                f"a question must be {kind.__name__} or none; it is not ({type(error).__name__})."
            ) from None
        return pose(self.public, name, question)


@dataclass(frozen=True, kw_only=True)
class Statements:
    """States questions, and opens what others state; for those who hold the common seed.

    Parameters
    ----------
    forms
        What may be asked.
    directory
        The parties' identities.
    seed, session
        The common seed; which session this is.
    """

    forms: Forms
    directory: tuple[bytes, ...]
    seed: bytes
    session: bytes

    def state(self, round_: int, question: Question, *, seat: Seat) -> Stated:
        """Pad, seal and sign a question, as the party that leads."""
        salt, leader = seat.entropy.bytes(SALT_BYTES), seat.number
        context = ("question", self.session, round_, leader, salt)
        box = seal_keyed(self.forms.write(round_, question), self.seed, *context)
        return Stated(leader, salt, box, seat.identity.sign(*_signed(self.session, round_, leader, salt, box)))

    def open(self, round_: int, stated: Stated) -> Query:
        """Check who stated it, open it, and check that it may be asked; whoever states something else is named."""
        check_stated(
            round_, stated, length=self.forms.lengths[round_ - 1], directory=self.directory, session=self.session
        )
        try:
            written = open_keyed(stated.box, self.seed, "question", self.session, round_, stated.leader, stated.salt)
            return self.forms.read(round_, written)
        except CloisterError as error:
            raise RemoteProtocolError(
                f"what party {stated.leader} states in round {round_} must be something that may be asked; {error}"
            ) from None

    # --- signatures on the result -------------------------------------------------------------------------------------

    def sign_result(self, link: bytes, identity: Identity) -> bytes:
        """Sign the chain's last link: all questions and the result, as they were sealed, and the seed that opens them.

        One box can be made to open to two results under two keys, and whoever draws the common seed could give out two.
        """
        return identity.sign(RESULT_VOTE, self.session, self.name_result(link))

    def read_votes(self, signatures: bytes, members: bytes, link: bytes) -> tuple[Votes, int]:
        """Return the votes, and how many of them are for this very link; signatures stand one behind the other."""
        return _read_votes(signatures, members, self.session, self.name_result(link), self.directory)

    def name_result(self, link: bytes) -> bytes:
        """Return what is signed: it says nothing to those who do not hold the seed."""
        return derive_key(self.seed, RESULT_VOTE, link)


@lru_cache(maxsize=4)  # all of it is public: once for all parties of a process
def check_stated(round_: int, stated: Stated, *, length: int, directory: tuple[bytes, ...], session: bytes) -> None:
    """Check what can be seen without the seed: lengths and signature."""
    leader = stated.leader
    if leader > len(directory):
        raise RemoteProtocolError(f"a leader must be a party from 1 to {len(directory)}; got {leader}.")
    sizes = (len(stated.salt), len(stated.box), len(stated.signature))
    if sizes != (SALT_BYTES, length + TAG_BYTES, SIGNATURE_BYTES):
        raise RemoteProtocolError(
            f"what party {leader} states in round {round_} must be {SALT_BYTES}, {length + TAG_BYTES} and "
            f"{SIGNATURE_BYTES} bytes long; got {', '.join(map(str, sizes))}."
        )
    signed = _signed(session, round_, leader, stated.salt, stated.box)
    if not is_signed(stated.signature, directory[leader - 1], *signed):
        raise RemoteProtocolError(
            f"what party {leader} states in round {round_} must be signed by its identity, for this session and round; "
            "it is not."
        )


def _signed(session: bytes, round_: int, leader: int, salt: bytes, box: bytes) -> tuple[Context, ...]:
    return ("guided sums question", session, round_, leader, salt, box)


def first_link(agreement: bytes, session: bytes) -> bytes:
    """Return the chain's link before the first round."""
    return _hash(agreement, session)


def next_link(link: bytes, round_: int, stated: Stated) -> bytes:
    """Return the chain's link of a round."""
    return _hash(link, round_, stated.leader, stated.salt, stated.box)


def place_of(link: bytes) -> Place:
    """Return where a round's answers stand: the chain up to its question is all that they must have in common.

    Totals are not in it: only who leads reads them.
    """
    return Place(link=link, subject=b"")


def _hash(*context: Context) -> bytes:
    return hashlib.blake2b(encode_context(*context), digest_size=LINK_BYTES).digest()


@lru_cache(maxsize=4)  # once for all parties of a process, which hold the same votes
def _read_votes(
    signatures: bytes, members: bytes, session: bytes, name: bytes, directory: tuple[bytes, ...]
) -> tuple[Votes, int]:
    numbers = unpack_members(members, len(directory))
    if len(signatures) != SIGNATURE_BYTES * len(numbers):
        raise RemoteProtocolError(
            f"there must be a signature of {SIGNATURE_BYTES} bytes for each of {len(numbers)} members; "
            f"got {len(signatures)} bytes."
        )
    places = range(0, len(signatures), SIGNATURE_BYTES)
    each = tuple(signatures[place : place + SIGNATURE_BYTES] for place in places)
    votes = Votes(session=session, statement=name, members=numbers, signatures=each)
    return votes, votes.count(directory)
