"""How a party's vector is blinded, and how the total of a round is opened: by masks that follow from a common seed.

This is all that party, leader and coordinator know of it. Another way to blind, such as pads between pairs with masks
of one's own, takes the place of `CommonMasks` and of `sum_answers`, which may then take more than one step a round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from cloister.aggregation import Aggregate, MaskSchedule, sum_masked
from cloister.numeric import Ring
from cloister.protocols.guided_sums.messages import MaskedUpdate
from cloister.roles import Ask, Check, Coordinator, Message
from cloister.wire import Array


@dataclass(frozen=True, kw_only=True)
class CommonMasks:
    """One party's side: everyone's masks follow from one seed, so whoever holds it can open a total."""

    number: int
    masks: MaskSchedule

    def blind(self, words: NDArray[Any], round_: int) -> MaskedUpdate:
        """Return the vector as it leaves the party; once for each round."""
        return MaskedUpdate(Array.of(self.masks.mask(words, round_, self.number)))

    def open(self, total: Aggregate, *, length: int, members_min: int) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the sum of a round in the ring and who is in it; refuses what is malformed or over too few."""
        return self.masks.unmask(total, length=length, members_min=members_min)


def sum_answers(
    requests: Mapping[int, Message],
    *,
    round_: int,
    label: str,
    steps: int,
    check: Check,
    ring: Ring,
    length: int,
    parties: int,
    plain_addition: Callable[[NDArray[Any]], NDArray[Any]] | None,
    require: Callable[[int], None],
) -> Coordinator[tuple[Aggregate, tuple[int, ...]]]:
    """The coordinator's side: ask, add up what comes, and return the total with those who are in it.

    ``require`` is told how many answered, and raises where that is not enough; ``plain_addition`` adds noise.
    """
    answers = yield Ask(label=label, requests=requests, check=check, steps=steps)
    updates = {party: reply for party, reply in sorted(answers.items()) if isinstance(reply, MaskedUpdate)}
    require(len(updates))
    total = sum_masked(
        {party: update.masked.to_numpy(ring.dtype, length) for party, update in updates.items()},
        ring,
        round_=round_,
        parties=parties,
        plain_addition=plain_addition,
    )
    return total, tuple(updates)
