"""The relay: carries boxes from party to party, deals correlated randomness, and never holds a value it can read.

One round::

    BeginRound   → all present    take the sums missed, make this round's vector, in parallel
    attempt:     DrawNoise, TakeOpenings, ...  → all members      with joint noise only; ``steps`` openings
                 AddVector       → one member after the other     once around the ring
                 a member is silent: begin again without it, with a higher attempt number
    OpenTotal    → all members    the attempt stands from now on
    RestoreMasks → who opened     only if a member did not; its vector stays in the sum

A party that is silent once is in no later sum; at the end it is sent the sums that it missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloister.aggregation import pack_members
from cloister.aggregation.coordination import check_shares, introduce, open_round, pick, settle
from cloister.aggregation.messages import Attempt, PartyBox, Total
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy
from cloister.crypto.sealing import TAG_BYTES
from cloister.errors import RemoteProtocolError
from cloister.joint_noise import deal
from cloister.protocols.serverless import messages
from cloister.protocols.serverless.terms import Terms
from cloister.roles import Ask, Check, Coordinator, Message, expect, require_members


@dataclass(frozen=True, kw_only=True)
class RelayOutcome:
    """What the relay knows at the end."""

    rounds: int
    members: tuple[tuple[int, ...], ...]
    """Who is in the sum of each round."""
    attempts: tuple[int, ...]
    """How many attempts each round took."""


def relay(terms: Terms, *, entropy: Entropy, session: bytes) -> Coordinator[RelayOutcome]:
    """Run a whole session; ``entropy`` is for the randomness that it deals if the noise is joint."""
    return _Relay(terms, entropy, session).run()


class _Relay:
    """One session: who is present, and the sums so far, in boxes."""

    def __init__(self, terms: Terms, entropy: Entropy, session: bytes) -> None:
        self._terms = terms
        self._entropy = entropy
        self._session = session
        self._present: tuple[int, ...] = ()
        self._totals: list[Total] = []
        self._history: list[tuple[int, ...]] = []

    def run(self) -> Coordinator[RelayOutcome]:
        terms = self._terms
        introduced = yield from introduce(terms.sums, session=self._session, steps=terms.steps)
        self._present = introduced
        seen = dict.fromkeys(introduced, 0)  # how many rounds' sums each party is known to have
        for round_ in range(1, terms.rounds + 1):
            answers = yield self._ask(
                f"round {round_} of {terms.rounds}",
                {party: messages.BeginRound(round_, tuple(self._totals[seen[party] :])) for party in self._present},
                expect(Ready),
            )
            self._stay(pick(answers, Ready))
            seen.update(dict.fromkeys(self._present, round_ - 1))
            yield from self._sum_round(round_)
        reachable = tuple(party for party in introduced if terms.rounds - seen[party] <= terms.backlog_max)
        yield from settle(terms.sums, lambda party: tuple(self._totals[seen[party] :]), reachable, steps=terms.steps)
        return RelayOutcome(
            rounds=len(self._totals),
            members=tuple(self._history),
            attempts=tuple(total.attempt.number for total in self._totals),
        )

    # --- one round ------------------------------------------------------------------------------------------------

    def _sum_round(self, round_: int) -> Coordinator[None]:
        number, passed = 0, None
        while passed is None:  # every failed attempt has lost a party, so this ends
            number += 1
            attempt = Attempt(round_, number, pack_members(self._present, self._terms.parties))
            passed = yield from self._try(attempt)
        members = self._present
        shares = {member: reply.shares for member, reply in passed.items()}
        body = passed[members[-1]].box
        summed = yield from open_round(self._terms.sums, attempt, body, members, shares, steps=self._terms.steps)
        self._stay(dict.fromkeys(summed.present))
        self._history.append(members)
        self._totals.append(summed.total)

    def _try(self, attempt: Attempt) -> Coordinator[Mapping[int, messages.Passed] | None]:
        """Once around the ring; returns what all members passed on, or None after a member was silent."""
        members = self._present
        openings: Mapping[int, messages.Opening] = {}
        if self._terms.joint is not None:
            openings = yield from self._draw_noise(attempt)
            if len(openings) < len(members):
                return None
        passed: dict[int, messages.Passed] = {}
        partial: bytes | None = None
        for member in members:
            answers = yield self._ask(
                f"round {attempt.round} of {self._terms.rounds}: once around the ring",
                {member: messages.AddVector(attempt, partial, _collect_boxes(openings, but=member))},
                self._check_passed(members),
            )
            passed.update(pick(answers, messages.Passed))
            if member not in passed:
                self._stay(dict.fromkeys(other for other in members if other != member))
                return None
            partial = passed[member].box
        return passed

    def _draw_noise(self, attempt: Attempt) -> Coordinator[Mapping[int, messages.Opening]]:
        """Deal, and carry openings; returns the last, which go around the ring, or too few if a member is silent."""
        members = self._present
        plan = self._terms.plan_noise(len(members))
        dealt = deal(plan, self._entropy)
        requests: dict[int, Message] = {
            member: messages.DrawNoise(attempt, part) for member, part in zip(members, dealt, strict=True)
        }
        for step, opening_bytes in enumerate(plan.opening_bytes, start=1):
            answers = yield self._ask(
                f"round {attempt.round} of {self._terms.rounds}: drawing noise, {step} of {plan.steps}",
                requests,
                _check_opening(opening_bytes + TAG_BYTES),
            )
            openings = pick(answers, messages.Opening)
            self._stay(openings)
            if len(openings) < len(members):
                break
            requests = {
                member: messages.TakeOpenings(attempt, _collect_boxes(openings, but=member)) for member in members
            }
        return openings

    # --- helpers --------------------------------------------------------------------------------------------------

    def _ask(self, label: str, requests: Mapping[int, Message], check: Check) -> Ask:
        return Ask(label=label, requests=requests, check=check, steps=self._terms.steps)

    def _stay(self, answered: Mapping[int, object]) -> None:
        """Go on with these, if they are enough."""
        self._present = tuple(sorted(answered))
        require_members(len(self._present), self._terms.members_min, self._terms.parties)

    def _check_passed(self, members: tuple[int, ...]) -> Check:
        kind = expect(messages.Passed)

        def check(party: int, reply: Message) -> None:
            kind(party, reply)
            assert isinstance(reply, messages.Passed)
            _check_box(party, reply.box, self._terms.vector_box_bytes)
            check_shares(self._terms.sums, party, reply.shares, members)

        return check


def _collect_boxes(openings: Mapping[int, messages.Opening], but: int) -> tuple[PartyBox, ...]:
    return tuple(PartyBox(party, opening.box) for party, opening in openings.items() if party != but)


def _check_opening(box_bytes: int) -> Check:
    kind = expect(messages.Opening)

    def check(party: int, reply: Message) -> None:
        kind(party, reply)
        assert isinstance(reply, messages.Opening)
        _check_box(party, reply.box, box_bytes)

    return check


def _check_box(party: int, box: bytes, box_bytes: int) -> None:
    if len(box) != box_bytes:
        raise RemoteProtocolError(f"party {party} must send a box of {box_bytes} bytes; got {len(box)}.")
