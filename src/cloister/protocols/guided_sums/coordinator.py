"""The coordinator: carries questions, adds masked vectors up, and adds noise where that is its duty. It reads nothing.

It does not even know what a round is for: slots, their lengths and those of sealed questions are public, noise has one
scale, and rounds that are not needed look like all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from cloister.aggregation import pack_members
from cloister.aggregation.coordination import AddPlainly, introduce, pick, sum_round
from cloister.aggregation.messages import Attempt
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto.identity import SIGNATURE_BYTES
from cloister.errors import ConfigError, DivergedError, RemoteProtocolError
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.guided_sums.agreement import Agreement, slot_event
from cloister.protocols.guided_sums.algorithm import GuidedSession
from cloister.protocols.guided_sums.messages import Answer, Declined, Finish, Lead, Past, Sign, Signed
from cloister.protocols.guided_sums.statements import Stated, check_stated, first_link, next_link
from cloister.roles import Ask, Check, Coordinator, Message, expect, require_members


@dataclass(frozen=True, kw_only=True)
class GuidedOutcome:
    """What the coordinator knows when it is done."""

    rounds: int
    """How many slots were filled; it does not know which of them were needed."""
    members: tuple[tuple[int, ...], ...]
    """Who was in the sum of each round, and last who signed the result."""


class NoBooks:
    """A charger that takes every charge: the coordinator's.

    It adds noise of one scale in every round and cannot know what a unit contributes to a sum that it cannot read, so
    it has nothing to add up. The books that keep the budget are the parties', each charged for its own records.
    """

    def charge(self, release: Release) -> None:
        """Accept the charge."""


def coordinate(
    agreed: GuidedSession[Any], *, session: bytes, duty: NoiseDuty | None = None
) -> Coordinator[GuidedOutcome]:
    """Run one session.

    Parameters
    ----------
    agreed, session
        What was agreed, and which session this is.
    duty
        The coordinator's source of noise, with `NoBooks`, where it adds the noise; None where the parties do.

    Raises
    ------
    TooFewPartiesError
        If fewer than a quorum are left.
    DivergedError
        If nobody who is left can lead.
    """
    if agreed.agreement.settings.alone:
        raise ConfigError("a job must have two parties or more to be coordinated; got one. Run: cloister run JOB.TOML")
    if (duty is not None) != agreed.agreement.by_coordinator:
        raise ConfigError(
            "a coordinator must have a noise duty if and only if the agreed placement gives it one; "
            f"it has {'one' if duty is not None else 'none'}."
        )
    return _coordinate(agreed, session, duty)


def _coordinate(agreed: GuidedSession[Any], session: bytes, duty: NoiseDuty | None) -> Coordinator[GuidedOutcome]:
    agreement = agreed.agreement
    terms, rounds = agreement.sums, len(agreement.slots)
    present = yield from introduce(terms, session=session, steps=agreement.steps)
    line, history = _Line(agreed, session, present), list[tuple[int, ...]]()
    link = first_link(agreement.digest, session)
    for number in range(1, rounds + 1):
        stated = yield from line.ask_leader(number)
        asked = agreement.list_asked(number, session=session)
        summed = yield from sum_round(
            terms,
            round_=number,
            asked=tuple(party for party in present if party in asked),
            length=agreement.slots[number - 1].length,
            request=_ask(link, stated),
            label=f"{agreement.slots[number - 1].name} (round {number} of {rounds})",
            steps=agreement.steps,
            add_plainly=_noise_of(agreement, duty, number),
        )
        line.log.append(Past(stated, summed.total))
        history.append(summed.members)
        link = next_link(link, number, stated)
    stated = yield from line.ask_leader(rounds + 1)
    sign = Sign(link, stated)
    answers = yield Ask(
        label="signing the result",
        requests=dict.fromkeys(present, sign),
        check=_check_signature,
        steps=agreement.steps,
    )
    signed = {party: reply.signature for party, reply in pick(answers, Signed).items()}
    require_members(len(signed), agreement.quorum_of(rounds + 1), terms.parties)
    yield Ask(
        label="handing out the result",
        requests=dict.fromkeys(signed, Finish(pack_members(signed, terms.parties), b"".join(signed.values()))),
        check=expect(Ready),
        steps=agreement.steps,
    )
    return GuidedOutcome(rounds=rounds, members=(*history, tuple(signed)))


class _Line:
    """Who may lead, in order: the leader first, who was silent or cannot follow last."""

    def __init__(self, agreed: GuidedSession[Any], session: bytes, present: tuple[int, ...]) -> None:
        self._agreement, self._session = agreed.agreement, session
        self._lengths = agreed.forms.lengths
        self._parties = list(present)
        self._told = dict.fromkeys(present, 0)  # the rounds that each party is known to have read
        self.log: list[Past] = []

    def ask_leader(self, round_: int) -> Coordinator[Stated]:
        """Ask the first in line for a round's question or the result; pass on as long as there is none."""
        declined = 0
        for leader in tuple(self._parties):
            answers = yield Ask(
                label=f"party {leader} works out what comes next",
                requests={leader: Lead(round_, tuple(self.log[self._told[leader] :]))},
                check=self._check(round_),
                steps=self._agreement.steps,
            )
            reply = answers[leader]
            if isinstance(reply, Stated):
                self._told[leader] = len(self.log)
                return reply
            declined += isinstance(reply, Declined)
            self._parties.append(self._parties.pop(0))
        if not declined:
            require_members(0, self._agreement.quorum_of(round_), self._agreement.settings.parties)
        raise DivergedError(
            f"some party must be able to go on from what was asked before round {round_}; those that answer compute "
            "other questions from the same totals. What was released is paid for, and there is no result. Run the same "
            "version of Cloister and of its numeric libraries where the leader may drop out."
        )

    def _check(self, round_: int) -> Check:
        def check(party: int, reply: Message) -> None:
            if isinstance(reply, Declined):
                return
            expect(Stated)(party, reply)
            assert isinstance(reply, Stated)
            if reply.leader != party:
                raise RemoteProtocolError(f"party {party} must state questions in its own name; it did not.")
            length = self._lengths[round_ - 1]
            check_stated(round_, reply, length=length, directory=self._agreement.directory, session=self._session)

        return check


def _check_signature(party: int, reply: Message) -> None:
    expect(Signed)(party, reply)
    assert isinstance(reply, Signed)
    if len(reply.signature) != SIGNATURE_BYTES:
        raise RemoteProtocolError(f"party {party} must sign with {SIGNATURE_BYTES} bytes; got {len(reply.signature)}.")


def _ask(link: bytes, stated: Stated) -> Callable[[int, Attempt], Answer]:
    """Return what asks any party for its answer in an attempt."""
    return lambda party, attempt: Answer(attempt, link, stated)


def _noise_of(agreement: Agreement[Any], duty: NoiseDuty | None, round_: int) -> AddPlainly | None:
    """Noise on the masked sum of a whole slot, once, needed or not."""
    if duty is None:
        return None
    event = slot_event(agreement.slots[round_ - 1], agreement.settings)
    return partial(release, event=event, duty=duty, ring=agreement.ring)
