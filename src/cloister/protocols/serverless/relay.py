"""The relay: carries boxes from party to party, deals correlated randomness, and never holds a value it can read.

One round::

    BeginRound   → all present    take the sums missed, make this round's vector, in parallel
    attempt:     DrawNoise, TakeOpenings, ...  → all members      with joint noise only; ``steps`` openings
                 AddVector       → one member after the other     once around the ring
                 a member is silent: begin again without it, with a higher attempt number
    Reveal       → all members    the attempt stands from now on
    Recover      → who revealed   only if a member is silent in Reveal; its vector stays in the sum

A party that is silent once is in no later sum; at the end, it is sent the sums that it missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from cloister.aggregation import pack_members
from cloister.aggregation.pairwise_pads import MASK_KEY_BYTES
from cloister.aggregation.seed_agreement import Ready, agree_on_seed_and_keys
from cloister.crypto import SHARE_BYTES, TAG_BYTES, Entropy
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.joint_noise import deal
from cloister.protocols.serverless import messages
from cloister.protocols.serverless.terms import Terms
from cloister.roles import Ask, Check, Coordinator, Message, Replies, expect, require_members

_Boxed = messages.Opening | messages.Passed | messages.Revealed | messages.Recovered
_Reply = TypeVar("_Reply", bound=Message)


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
        self._restorers = 0
        self._totals: list[messages.Total] = []
        self._history: list[tuple[int, ...]] = []

    def run(self) -> Coordinator[RelayOutcome]:
        introduced = yield from self._introduce()
        seen = dict.fromkeys(introduced, 0)  # how many rounds' sums each party is known to have
        for round_ in range(1, self._terms.rounds + 1):
            answers = yield self._ask(
                f"round {round_} of {self._terms.rounds}",
                {party: messages.BeginRound(round_, tuple(self._totals[seen[party] :])) for party in self._present},
                expect(Ready),
            )
            self._stay(_of_kind(answers, Ready))
            seen.update(dict.fromkeys(self._present, round_ - 1))
            yield from self._sum_round(round_)
        yield self._ask(
            "distributing the result",
            {
                party: messages.Finish(tuple(self._totals[seen[party] :]))
                for party in introduced
                if len(self._totals) - seen[party] <= self._terms.backlog_max
            },
            expect(Ready),
        )
        return RelayOutcome(
            rounds=len(self._totals),
            members=tuple(self._history),
            attempts=tuple(total.attempt.number for total in self._totals),
        )

    def _introduce(self) -> Coordinator[tuple[int, ...]]:
        terms = self._terms
        keys = yield from agree_on_seed_and_keys(
            agreement=terms.digest,
            directory=terms.directory,
            session=self._session,
            members_min=terms.members_min,
            steps=terms.steps,
        )
        owners = {key.owner for key in keys}
        self._restorers = terms.count_restorers(len(owners))
        answers = yield self._ask(
            "introducing the parties to each other",
            dict.fromkeys(sorted(owners), messages.MeetPeers(keys)),
            _shares_for(owners),
        )
        dealt = _of_kind(answers, messages.DealtShares)
        self._stay(dealt)
        answers = yield self._ask(
            "distributing shares of the masks",
            {
                party: messages.KeepShares(
                    tuple(
                        messages.PartyBox(sender, share.box)
                        for sender, reply in dealt.items()
                        for share in reply.shares
                        if share.party == party
                    )
                )
                for party in self._present
            },
            expect(Ready),
        )
        self._stay(_of_kind(answers, Ready))
        return self._present

    # --- one round ------------------------------------------------------------------------------------------------

    def _sum_round(self, round_: int) -> Coordinator[None]:
        number, box = 0, None
        while box is None:  # every failed attempt loses a party, so this ends
            number += 1
            attempt = messages.Attempt(round_, number, pack_members(self._present, self._terms.parties))
            box = yield from self._try(attempt)
        members = self._present
        answers = yield self._ask(
            f"opening the sum of round {round_}",
            dict.fromkeys(members, messages.Reveal(attempt)),
            _box_of(messages.Revealed, MASK_KEY_BYTES + TAG_BYTES),
        )
        reveals = _of_kind(answers, messages.Revealed)
        self._stay(reveals)
        recoveries: Mapping[int, messages.Recovered] = {}
        missing = tuple(member for member in members if member not in reveals)
        if missing:
            self._require_restorers(len(reveals))
            answers = yield self._ask(
                f"restoring the masks of {len(missing)} parties that left",
                dict.fromkeys(reveals, messages.Recover(attempt, pack_members(missing, self._terms.parties))),
                _box_of(messages.Recovered, len(missing) * SHARE_BYTES + TAG_BYTES),
            )
            recoveries = _of_kind(answers, messages.Recovered)
            self._stay(recoveries)
            self._require_restorers(len(recoveries))
        self._history.append(members)
        self._totals.append(
            messages.Total(attempt, box, _collect_boxes(reveals), _collect_boxes(recoveries)[: self._restorers])
        )

    def _try(self, attempt: messages.Attempt) -> Coordinator[bytes | None]:
        """Go once around the ring; return what the last member passed on, or None if a member was silent."""
        members = self._present
        openings: Mapping[int, messages.Opening] = {}
        if self._terms.joint is not None:
            openings = yield from self._draw_noise(attempt)
            if len(openings) < len(members):
                return None
        partial: bytes | None = None
        for member in members:
            answers = yield self._ask(
                f"round {attempt.round} of {self._terms.rounds}: once around the ring",
                {member: messages.AddVector(attempt, partial, _collect_boxes(openings, but=member))},
                _box_of(messages.Passed, self._terms.vector_box_bytes),
            )
            passed = _of_kind(answers, messages.Passed)
            if member not in passed:
                self._stay(set(members) - {member})
                return None
            partial = passed[member].box
        return partial

    def _draw_noise(self, attempt: messages.Attempt) -> Coordinator[Mapping[int, messages.Opening]]:
        """Deal, and relay openings; return the last, which go around the ring, or too few if a member is silent."""
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
                _box_of(messages.Opening, opening_bytes + TAG_BYTES),
            )
            openings = _of_kind(answers, messages.Opening)
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

    def _require_restorers(self, left: int) -> None:
        """Abort if too few are left to restore a mask: the sum then stays closed."""
        if left < self._restorers:
            raise TooFewPartiesError(
                f"at least {self._restorers} parties must stay to open a sum that another has left; {left} did. "
                "Nothing of this round was released, but it remains paid for. Run the job again when all are reachable."
            )

    def _stay(self, answered: Mapping[int, Message] | set[int]) -> None:
        """Continue with these parties, if they are enough."""
        self._present = tuple(sorted(answered))
        require_members(len(self._present), self._terms.members_min, self._terms.parties)


def _of_kind(answers: Replies, kind: type[_Reply]) -> dict[int, _Reply]:
    """Return the replies by party number, without silent parties."""
    return {party: reply for party, reply in sorted(answers.items()) if isinstance(reply, kind)}


def _collect_boxes(replies: Mapping[int, _Boxed], but: int | None = None) -> tuple[messages.PartyBox, ...]:
    return tuple(messages.PartyBox(party, reply.box) for party, reply in sorted(replies.items()) if party != but)


def _box_of(kind: type[_Boxed], box_bytes: int) -> Check:
    right_kind = expect(kind)

    def check(party: int, reply: Message) -> None:
        right_kind(party, reply)
        assert isinstance(reply, kind)
        if len(reply.box) != box_bytes:
            raise RemoteProtocolError(f"party {party} must send a box of {box_bytes} bytes; got {len(reply.box)}.")

    return check


def _shares_for(owners: set[int]) -> Callable[[int, Message], None]:
    def check(party: int, reply: Message) -> None:
        if (
            not isinstance(reply, messages.DealtShares)
            or [share.party for share in reply.shares] != sorted(owners - {party})
            or any(len(share.box) != SHARE_BYTES + TAG_BYTES for share in reply.shares)
        ):
            raise RemoteProtocolError(
                f"party {party} must deal one share to each of {len(owners) - 1} others; it did not."
            )

    return check
