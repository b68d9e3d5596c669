"""The coordinator: asks for masked vectors, adds them up, and adds noise if that is its duty. It can read nothing.

It does not even know the purpose of a round: slots and their lengths are public, noise has one scale, and rounds that
are not needed look like all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Aggregate, agree_on_seed, sum_masked
from cloister.aggregation.seed_agreement import Ready
from cloister.errors import ConfigError
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.guided_sums.agreement import Agreement, slot_event
from cloister.protocols.guided_sums.messages import Confirm, Finish, MaskedUpdate, Round
from cloister.roles import Ask, Check, Coordinator, Message, expect, require_members


@dataclass(frozen=True, kw_only=True)
class GuidedOutcome:
    """What the coordinator knows when it is done."""

    rounds: int
    """How many slots were filled; it does not know which of them were needed."""
    members: tuple[tuple[int, ...], ...]
    """Who was in the sum of each round; the last entry is the round that compares findings."""


class NoBooks:
    """A charger that takes every charge: the coordinator's.

    It adds noise of one scale in every round and cannot know what a unit contributes to a sum that it cannot read, so
    it has nothing to add up. The books that keep the budget are the parties', each charged for its own records.
    """

    def charge(self, release: Release) -> None:
        """Accept the charge."""


def coordinate(
    agreement: Agreement[Any], *, session: bytes, duty: NoiseDuty | None = None
) -> Coordinator[GuidedOutcome]:
    """Run one session.

    Parameters
    ----------
    agreement, session
        What was agreed, and which session this is.
    duty
        The coordinator's source of noise, with `NoBooks`, where it adds the noise; None where the parties do.

    Raises
    ------
    TooFewPartiesError
        If fewer than the agreed minimum are left.
    """
    if (duty is not None) != agreement.by_coordinator:
        raise ConfigError(
            "a coordinator must have a noise duty if and only if the agreed placement gives it one; "
            f"it has {'one' if duty is not None else 'none'}."
        )
    return _coordinate(agreement, session, duty)


def _coordinate(agreement: Agreement[Any], session: bytes, duty: NoiseDuty | None) -> Coordinator[GuidedOutcome]:
    parties = agreement.settings.parties
    present = yield from agree_on_seed(
        agreement=agreement.digest,
        directory=agreement.directory,
        session=session,
        members_min=agreement.members_min,
        steps=agreement.steps,
    )
    may_return = agreement.settings.may_return
    opened, log = present, list[Aggregate]()
    told = dict.fromkeys(opened, 0)  # the last round whose total each party is known to have
    history: list[tuple[int, ...]] = []
    rounds = len(agreement.slots)
    for number in range(1, rounds + 2):
        length = agreement.length_of(number)
        asked = agreement.list_asked(number, session=session)
        confirming = number > rounds
        answers = yield Ask(
            label="comparing results"
            if confirming
            else f"{agreement.slots[number - 1].name} (round {number} of {rounds})",
            requests=_make_requests(
                log, {party: told[party] for party in present if party in asked}, None if confirming else number
            ),
            check=_check_update(agreement, length),
            steps=agreement.steps,
        )
        updates = {party: reply for party, reply in sorted(answers.items()) if isinstance(reply, MaskedUpdate)}
        told |= dict.fromkeys(updates, number - 1)
        if not may_return:  # a party that missed a round cannot know the next query, so it is left out from then on
            present = tuple(updates)
        require_members(len(updates), agreement.members_min, parties)
        log.append(
            sum_masked(
                {p: update.masked.to_numpy(agreement.ring.dtype, length) for p, update in updates.items()},
                agreement.ring,
                round_=number,
                parties=parties,
                plain_addition=_noise_of(agreement, duty, number),
            )
        )
        history.append(tuple(updates))
    yield Ask(
        label="distributing the result",
        requests=_make_requests(log, {party: told[party] for party in present}, Finish),
        check=expect(Ready),
        steps=agreement.steps,
    )
    return GuidedOutcome(rounds=rounds, members=tuple(history))


def _make_requests(log: list[Aggregate], told: dict[int, int], what: int | type[Finish] | None) -> dict[int, Message]:
    """Make each party's request: the last total and those that it missed. Equal requests are one object."""
    made: dict[int, Message] = {}
    for known in sorted(set(told.values())):
        missed = tuple(log[known:-1])
        if isinstance(what, int):
            made[known] = Round(what, log[-1] if log else None, missed)
        else:
            made[known] = (Confirm if what is None else what)(log[-1], missed)
    return {party: made[known] for party, known in told.items()}


def _noise_of(
    agreement: Agreement[Any], duty: NoiseDuty | None, round_: int
) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """Return what adds noise once to the masked sum of a whole slot, needed or not, but not to its check words."""
    if duty is None or round_ > len(agreement.slots):
        return None
    slot = agreement.slots[round_ - 1]
    add_noise = partial(release, event=slot_event(slot, agreement.settings), duty=duty, ring=agreement.ring)

    def add(total: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([add_noise(total[: slot.length]), total[slot.length :]])

    return add


def _check_update(agreement: Agreement[Any], length: int) -> Check:
    kind = expect(MaskedUpdate)

    def check(party: int, reply: Message) -> None:
        kind(party, reply)
        assert isinstance(reply, MaskedUpdate)
        reply.masked.to_numpy(agreement.ring.dtype, length)

    return check
