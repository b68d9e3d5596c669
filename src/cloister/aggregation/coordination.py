"""The coordinator's side of secure sums: it asks, adds up what it cannot read, and carries what opens it.

One round, with double masks::

    Answer    → members    the protocol's own request, with the attempt   ← Answered(masked vector, shares)
              a member is silent: another attempt without it, on the same vectors with other masks
    OpenTotal → members    the attempt stands from now on                 ← Opened(key of the own mask)
    RestoreMasks → who opened, only if a member did not; its vector stays in the sum

With common masks it is one step: whoever is silent is not in the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from numpy.typing import NDArray

from cloister.aggregation.masked_sum import pack_members
from cloister.aggregation.messages import (
    Answered,
    Attempt,
    Conclude,
    MeetPeers,
    Opened,
    OpenTotal,
    PartyBox,
    Restored,
    RestoreMasks,
    Settle,
    Total,
    Voted,
)
from cloister.aggregation.seed_agreement import Ready, agree_on_seed_and_keys
from cloister.aggregation.statements import digest_body, read_words, write_words
from cloister.aggregation.terms import OPENING_BYTES, VOTE_BYTES, SumTerms
from cloister.crypto.sealing import TAG_BYTES
from cloister.crypto.secret_sharing import SHARE_BYTES
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.roles import Ask, Check, Coordinator, Message, Replies, expect, require_members

_Reply = TypeVar("_Reply", bound=Message)
_Shares = Mapping[int, tuple[PartyBox, ...]]
AddPlainly = Callable[[NDArray[Any]], NDArray[Any]]
"""What the coordinator adds to a sum that it cannot read, such as noise."""


@dataclass(frozen=True, kw_only=True)
class Summed:
    """The total of a round, who is in it, and who did what was asked to the end."""

    total: Total
    members: tuple[int, ...]
    present: tuple[int, ...]


def introduce(terms: SumTerms, *, session: bytes, steps: int) -> Coordinator[tuple[int, ...]]:
    """Give the parties their masks; returns who has some."""
    keys = yield from agree_on_seed_and_keys(
        agreement=terms.digest,
        directory=terms.directory,
        session=session,
        members_min=terms.members_min,
        steps=steps,
    )
    owners = tuple(key.owner for key in keys)
    if not terms.double:
        return owners
    answers = yield Ask(
        label="introducing the parties to each other",
        requests=dict.fromkeys(owners, MeetPeers(keys)),
        check=expect(Ready),
        steps=steps,
    )
    present = tuple(pick(answers, Ready))
    require_members(len(present), terms.members_min, terms.parties)
    return present


def sum_round(
    terms: SumTerms,
    *,
    round_: int,
    asked: tuple[int, ...],
    length: int,
    request: Callable[[int, Attempt], Message],
    label: str,
    steps: int,
    add_plainly: AddPlainly | None = None,
) -> Coordinator[Summed]:
    """Run one round around the coordinator.

    Parameters
    ----------
    asked
        Who is asked at first.
    length
        The integers in a vector, without check words.
    request
        Makes the protocol's request to a party, from the attempt.
    add_plainly
        Noise on the sum, without its check words.
    """
    number, members = 0, asked
    while True:
        number += 1
        require_members(len(members), terms.members_min, terms.parties)
        attempt = Attempt(round_, number, pack_members(members, terms.parties) if terms.double else b"")
        answers = yield Ask(
            label=label,
            requests={member: request(member, attempt) for member in members},
            check=_check_answer(terms, length, members),
            steps=steps,
        )
        answered = pick(answers, Answered)
        if not terms.double or len(answered) == len(members):
            break
        members = tuple(answered)  # every attempt that fails has lost a member, so this ends
    require_members(len(answered), terms.members_min, terms.parties)
    words = length + terms.check_words
    total = terms.ring.sum([read_words(reply.vector, terms.ring, words) for reply in answered.values()])
    if add_plainly is not None:
        total[:length] = add_plainly(total[:length])
    if not terms.double:
        attempt = Attempt(round_, 1, pack_members(answered, terms.parties))
        return Summed(total=Total(attempt, write_words(total)), members=tuple(answered), present=tuple(answered))
    shares = {member: reply.shares for member, reply in answered.items()}
    return (yield from open_round(terms, attempt, write_words(total), members, shares, steps=steps))


def open_round(
    terms: SumTerms, attempt: Attempt, body: bytes, members: tuple[int, ...], shares: _Shares, *, steps: int
) -> Coordinator[Summed]:
    """Have the members of an attempt open its total, and restore the masks of those that have vanished."""
    answers = yield Ask(
        label=f"opening the sum of round {attempt.round}",
        requests=dict.fromkeys(members, OpenTotal(attempt, digest_body(body))),
        check=_check_opened(terms),
        steps=steps,
    )
    opened = pick(answers, Opened)
    restored: Mapping[int, Restored] = {}
    silent = tuple(member for member in members if member not in opened)
    if silent:
        needed = terms.members_min if terms.shares_masks else len(members)
        if len(opened) < needed:
            _give_up(needed, len(opened))
        votes = tuple(PartyBox(party, reply.vote) for party, reply in opened.items())
        answers = yield Ask(
            label=f"restoring the masks of {len(silent)} parties that left",
            requests={
                party: RestoreMasks(
                    attempt, pack_members(silent, terms.parties), votes, _shares_for(party, silent, shares)
                )
                for party in opened
            },
            check=_check_restored(len(silent)),
            steps=steps,
        )
        restored = pick(answers, Restored)
        if len(restored) < terms.restorers:
            _give_up(terms.restorers, len(restored))
    total = Total(
        attempt,
        body,
        tuple(PartyBox(party, reply.box) for party, reply in opened.items()),
        tuple(PartyBox(party, reply.box) for party, reply in restored.items())[: terms.restorers],
    )
    return Summed(total=total, members=members, present=tuple(restored or opened))


def settle(
    terms: SumTerms, news: Callable[[int], tuple[Total, ...]], reachable: tuple[int, ...], *, steps: int
) -> Coordinator[None]:
    """Collect the parties' votes on what they found, and hand them out; ``news`` are a party's missing totals."""
    answers = yield Ask(
        label="comparing the result",
        requests={party: Settle(news(party)) for party in reachable},
        check=_check_voted,
        steps=steps,
    )
    voted = pick(answers, Voted)
    require_members(len(voted), terms.members_min, terms.parties)
    votes = tuple(PartyBox(party, reply.box) for party, reply in voted.items())
    yield Ask(
        label="handing out the result",
        requests={party: Conclude(() if party in voted else news(party), votes) for party in reachable},
        check=expect(Ready),
        steps=steps,
    )


def pick(answers: Replies, kind: type[_Reply]) -> dict[int, _Reply]:
    """Return the replies by rising party number; who was silent is not in it."""
    return {party: reply for party, reply in sorted(answers.items()) if isinstance(reply, kind)}


# --- checks -----------------------------------------------------------------------------------------------------------


def check_shares(terms: SumTerms, party: int, shares: tuple[PartyBox, ...], members: tuple[int, ...]) -> None:
    """Refuse shares that are not one for each other member, or there where none are needed."""
    others = [member for member in members if member != party] if terms.shares_masks else []
    if [share.party for share in shares] != others or {len(s.box) for s in shares} - {SHARE_BYTES + TAG_BYTES}:
        raise RemoteProtocolError(f"party {party} must give one share to each of {len(others)} others; it did not.")


def _check_answer(terms: SumTerms, length: int, members: tuple[int, ...]) -> Check:
    kind = expect(Answered)

    def check(party: int, reply: Message) -> None:
        kind(party, reply)
        assert isinstance(reply, Answered)
        read_words(reply.vector, terms.ring, length + terms.check_words)
        check_shares(terms, party, reply.shares, members)

    return check


def _check_opened(terms: SumTerms) -> Check:
    kind = expect(Opened)

    def check(party: int, reply: Message) -> None:
        kind(party, reply)
        assert isinstance(reply, Opened)
        vote_bytes = VOTE_BYTES if terms.shares_masks else 0
        if (len(reply.box), len(reply.vote)) != (OPENING_BYTES, vote_bytes):
            raise RemoteProtocolError(f"party {party} must open with boxes of the agreed lengths; it does not.")

    return check


def _check_restored(silent: int) -> Check:
    kind = expect(Restored)

    def check(party: int, reply: Message) -> None:
        kind(party, reply)
        assert isinstance(reply, Restored)
        if len(reply.box) != silent * SHARE_BYTES + TAG_BYTES:
            raise RemoteProtocolError(f"party {party} must give {silent} shares; its box has another length.")

    return check


def _check_voted(party: int, reply: Message) -> None:
    if not isinstance(reply, Voted) or len(reply.box) != VOTE_BYTES:
        raise RemoteProtocolError(f"party {party} must vote with a box of {VOTE_BYTES} bytes; it does not.")


def _shares_for(party: int, silent: tuple[int, ...], shares: _Shares) -> tuple[PartyBox, ...]:
    """The shares that silent members gave for this one, each with its sender's number."""
    return tuple(PartyBox(owner, box.box) for owner in silent for box in shares[owner] if box.party == party)


def _give_up(needed: int, left: int) -> NoReturn:
    raise TooFewPartiesError(
        f"at least {needed} parties must stay to open a sum that another has left; {left} did. Nothing of this round "
        "was released; it stays paid. Run the job again when all are reachable."
    )
