"""A party's double masks: which attempts it answers, which one it opens, and how it reads a total.

::

    idle, answered ──enter: a later attempt of the same question, or a later round──▶ entered ──blind──▶ answered
    answered ──OpenTotal: the attempt answered last──▶ opened ──RestoreMasks: q members voted──▶ restored
    opened, restored ──enter: a later round──▶ entered

What an attempt adds to a vector is pads with the other members and a mask of its own, both bound to the attempt's
statement. So one statement of a round can be read at most: 2q > n + t puts an honest party into any two quorums, and it
opens one. This is the double masking of Bonawitz et al., "Practical secure aggregation for privacy-preserving machine
learning" (CCS 2017), with sums that are all or nothing, so that pads never need restoring. What is proved:
docs/proofs/secure-sum.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from numpy.typing import NDArray

from cloister.aggregation.masked_sum import pack_members, unpack_members
from cloister.aggregation.messages import (
    Answered,
    Attempt,
    Opened,
    OpenTotal,
    PartyBox,
    Restored,
    RestoreMasks,
    Total,
)
from cloister.aggregation.own_masks import ShareBoxes, derive_mask_key, draw_secret, expand_mask
from cloister.aggregation.pairwise_pads import PairwisePads
from cloister.aggregation.statements import (
    DIGEST_BYTES,
    Place,
    Reading,
    append_check_words,
    digest_body,
    read_checked,
    read_words,
    state_attempt,
    write_words,
)
from cloister.aggregation.terms import SumTerms
from cloister.crypto import is_signed
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.secret_sharing import SECRET_BYTES, SHARE_BYTES, combine_shares
from cloister.crypto.stream import Context
from cloister.errors import RemoteProtocolError
from cloister.roles import Message, Seat

_Progress = Literal["entered", "answered", "opened", "restored"]
_VOTE = "cloister opened"


@dataclass(frozen=True, kw_only=True)
class _Entered:
    """The attempt that a party is in."""

    attempt: Attempt
    members: tuple[int, ...]
    place: Place
    statement: bytes
    vector: NDArray[Any] | None = None  # of the round, before masks
    mask_secret: bytes = b""
    opened_digest: bytes = b""


class DoubleMasks:
    """One party's side of sums with double masks, in one session.

    Parameters
    ----------
    seat, terms
        Its place in the session, and what was agreed.
    seed
        Known to all parties and not to the coordinator.
    pair_secrets
        With each other party, known to the two.
    """

    def __init__(self, *, seat: Seat, terms: SumTerms, seed: bytes, pair_secrets: Mapping[int, bytes]) -> None:
        self.seed = seed
        self._seat = seat
        self._terms = terms
        self._known = frozenset((seat.number, *pair_secrets))
        self._pads = PairwisePads(number=seat.number, secrets=pair_secrets, ring=terms.ring)
        self._shares = ShareBoxes(
            number=seat.number, session=seat.session, pair_secrets=pair_secrets, threshold=terms.restorers
        )
        self._entered: _Entered | None = None
        self._progress: _Progress = "entered"

    # --- answering ------------------------------------------------------------------------------------------------

    def check(self, attempt: Attempt, place: Place) -> tuple[int, ...]:
        """Return the members of an attempt that may be answered; refuse any other, and change nothing."""
        last = self._entered
        if last is not None and last.attempt.round >= attempt.round:
            closed = self._progress in ("opened", "restored")
            if attempt.round < last.attempt.round or attempt.number <= last.attempt.number or closed:
                raise RemoteProtocolError(
                    f"an attempt must be later than attempt {last.attempt.number} of round {last.attempt.round}, and "
                    f"before one of its round was opened; got attempt {attempt.number} of round {attempt.round}."
                )
            if place != last.place:
                raise RemoteProtocolError("a later attempt of a round must ask the same question; it asks another.")
        members = self._read_members(attempt)
        if self._seat.number not in members:
            raise RemoteProtocolError("an attempt must have us among its members to ask us; it has not.")
        return members

    def enter(self, attempt: Attempt, place: Place) -> None:
        """Take part in an attempt; its vector may come later."""
        members = self.check(attempt, place)
        last = self._entered
        again = last is not None and last.attempt.round == attempt.round
        self._entered = _Entered(
            attempt=attempt,
            members=members,
            place=place,
            statement=state_attempt(self._seat.session, place, attempt),
            vector=last.vector if last is not None and again else None,
        )
        self._progress = "entered"

    def answer(self, attempt: Attempt, place: Place, make: Callable[[], NDArray[Any]]) -> Answered:
        """Answer an attempt; ``make`` makes the round's vector, which is kept for later attempts of the round."""
        self.check(attempt, place)
        last = self._entered
        kept = last.vector if last is not None and last.attempt.round == attempt.round else None
        vector = make() if kept is None else kept  # charged once, and before anything has changed
        self.enter(attempt, place)
        return self.blind(vector)

    def blind(self, vector: NDArray[Any]) -> Answered:
        """Add check words, pads and a fresh own mask to our vector in the attempt entered."""
        entered = self._require("entered")
        ring, terms = self._terms.ring, self._terms
        secret = draw_secret(self._seat.entropy)
        blinded = append_check_words(vector, self.seed, entered.statement, ring)
        blinded = blinded + self._pads.pad(entered.members, len(blinded), entered.statement)
        blinded = blinded + expand_mask(derive_mask_key(secret, entered.statement), len(blinded), ring)
        shares: tuple[PartyBox, ...] = ()
        if terms.shares_masks:
            shares = self._shares.seal(secret, entered.attempt, entered.members, self._seat.entropy)
        self._entered = replace(entered, vector=vector, mask_secret=secret)
        self._progress = "answered"
        return Answered(write_words(blinded), shares)

    # --- opening --------------------------------------------------------------------------------------------------

    def handle(self, request: Message) -> Message:
        """Open the attempt that we answered last, or help to restore what others did not open."""
        match request:
            case OpenTotal():
                return self._open(request)
            case RestoreMasks():
                return self._restore(request)
        raise RemoteProtocolError(f"a sum must be answered, opened or restored; got {type(request).__name__}.")

    def _open(self, request: OpenTotal) -> Opened:
        entered = self._require("answered", request.attempt)
        if len(request.digest) != DIGEST_BYTES:
            raise RemoteProtocolError(f"a digest must have {DIGEST_BYTES} bytes; got {len(request.digest)}.")
        key = derive_mask_key(entered.mask_secret, entered.statement)
        box = seal_keyed(key, self.seed, *self.context("opening", entered.attempt, self._seat.number, request.digest))
        vote = b""
        if self._terms.shares_masks:
            signature = self._seat.identity.sign(_VOTE, entered.statement)
            vote = seal_keyed(signature, self.seed, *self.context("vote", entered.attempt, self._seat.number))
        self._entered = replace(entered, opened_digest=request.digest)
        self._progress = "opened"
        return Opened(box, vote)

    def _restore(self, request: RestoreMasks) -> Restored:
        entered = self._require("opened", request.attempt)
        silent = unpack_members(request.silent, self._terms.parties)
        others = {*entered.members} - {self._seat.number}
        if not silent or not others.issuperset(silent) or [share.party for share in request.shares] != list(silent):
            raise RemoteProtocolError("the silent must be other members, each with its share for us; they are not.")
        self._check_votes(request.votes, entered)
        shares = b"".join(self._shares.open(share, entered.attempt) for share in request.shares)
        context = self.context("shares", entered.attempt, self._seat.number, request.silent)
        self._progress = "restored"
        return Restored(seal_keyed(shares, self.seed, *context))

    def _check_votes(self, votes: tuple[PartyBox, ...], entered: _Entered) -> None:
        """Refuse to restore unless q members say that they opened the same statement as we did."""
        voters = check_senders(votes, entered.members)
        if len(voters) < self._terms.members_min:
            raise RemoteProtocolError(
                f"masks must be restored by the votes of {self._terms.members_min} members; got {len(voters)}."
            )
        for vote in votes:
            signature = open_keyed(vote.box, self.seed, *self.context("vote", entered.attempt, vote.party))
            identity = self._terms.directory[vote.party - 1]
            if not is_signed(signature, identity, _VOTE, entered.statement):
                raise RemoteProtocolError(f"party {vote.party} must have voted for what we opened; it has not.")

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, total: Total, place: Place, length: int) -> Reading:
        """Return the sum; changes nothing.

        Raises
        ------
        RemoteProtocolError
            If anything does not fit, or the total is another than the one we opened.
        DivergedError
            If some member's statement was another.
        """
        attempt = total.attempt
        members = self._read_members(attempt)
        digest, last = digest_body(total.body), self._entered
        opened = last is not None and last.opened_digest and last.attempt.round == attempt.round
        if last is not None and opened and (attempt, digest) != (last.attempt, last.opened_digest):
            raise RemoteProtocolError("a round's sum must be the one that we opened; it is another.")
        ring = self._terms.ring
        statement = state_attempt(self._seat.session, place, attempt)
        words = length + self._terms.check_words
        elements = read_words(self.open_body(total, members), ring, words)
        for key in self._collect_keys(total, digest, members, statement):
            elements = elements - expand_mask(key, words, ring)
        return read_checked(elements, seed=self.seed, statement=statement, ring=ring, members=members)

    def open_body(self, total: Total, members: tuple[int, ...]) -> bytes:
        """Return the words of a total from the body that is carried."""
        return total.body

    def _collect_keys(self, total: Total, digest: bytes, members: tuple[int, ...], statement: bytes) -> list[bytes]:
        """The mask keys of all members: those that they gave, and those that others' shares restore."""
        opened = check_senders(total.openings, members)
        keys = [
            open_keyed(one.box, self.seed, *self.context("opening", total.attempt, one.party, digest))
            for one in total.openings
        ]
        silent = tuple(member for member in members if member not in opened)
        keys += [derive_mask_key(secret, statement) for secret in self._combine(total, members, silent)]
        if any(len(key) != SECRET_BYTES for key in keys):
            raise RemoteProtocolError(f"a mask's key must have {SECRET_BYTES} bytes; some have not.")
        return keys

    def _combine(self, total: Total, members: tuple[int, ...], silent: tuple[int, ...]) -> list[bytes]:
        """The secrets of members that did not open, from the others' shares."""
        holders = check_senders(total.restored, members)
        needed = self._terms.restorers if silent else 0
        if len(holders) != needed:
            raise RemoteProtocolError(
                f"masks of {len(silent)} members must be restored by {needed} others; got {len(holders)}."
            )
        asked = pack_members(silent, self._terms.parties)
        cuts = {}
        for one in total.restored:
            joined = open_keyed(one.box, self.seed, *self.context("shares", total.attempt, one.party, asked))
            cuts[one.party] = [joined[at : at + SHARE_BYTES] for at in range(0, len(joined), SHARE_BYTES)]
        if any(len(shares) != len(silent) for shares in cuts.values()):
            raise RemoteProtocolError(f"each must give {len(silent)} shares; some gave another number.")
        return [combine_shares({party: cut[at] for party, cut in cuts.items()}) for at in range(len(silent))]

    # --- helpers --------------------------------------------------------------------------------------------------

    def context(self, purpose: str, attempt: Attempt, sender: int, detail: Context = 0) -> tuple[Context, ...]:
        """Return the context of a box to the parties; one box for each."""
        return (self._seat.session, purpose, attempt.round, attempt.number, attempt.members, sender, detail)

    def require_entered(self, attempt: Attempt) -> tuple[int, ...]:
        """Return the members of the attempt that we have entered and not answered; refuse any other."""
        return self._require("entered", attempt).members

    def _require(self, progress: _Progress, attempt: Attempt | None = None) -> _Entered:
        entered = self._entered
        if entered is None or self._progress != progress or attempt not in (None, entered.attempt):
            raise RemoteProtocolError(
                f"the request must be about the attempt we are in, which must be {progress}; it came out of turn."
            )
        return entered

    def _read_members(self, attempt: Attempt) -> tuple[int, ...]:
        """Return who is in an attempt; refuses too few, and parties that we never met."""
        members = unpack_members(attempt.members, self._terms.parties)
        if len(members) < self._terms.members_min or not self._known.issuperset(members):
            raise RemoteProtocolError(
                f"a sum must be over at least {self._terms.members_min} parties that were introduced; got "
                f"{len(members)}, {len(self._known.intersection(members))} of them introduced."
            )
        return members


def check_senders(boxes: tuple[PartyBox, ...], members: tuple[int, ...]) -> frozenset[int]:
    """Return who sent these; each must be a member, once, by rising number."""
    numbers = [box.party for box in boxes]
    if sorted(set(numbers)) != numbers or not set(numbers) <= set(members):
        raise RemoteProtocolError("boxes must come from members, once each, by rising number; they do not.")
    return frozenset(numbers)
