"""The coordinator P_S: asks, adds up, sends back. In the masked protocols, it never holds a readable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from cloister.aggregation.coordination import AddPlainly, introduce, settle, sum_round
from cloister.aggregation.messages import Attempt, Total
from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.crypto import Entropy, Stream
from cloister.errors import ConfigError
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.multiparty_lloyd import messages
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.rules import ExactSums
from cloister.records import FloatArray, IntArray
from cloister.roles import Ask, Check, Coordinator, Message, expect, require_members
from cloister.wire import Array


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the coordinator knows when it is done."""

    rounds: int
    members: tuple[tuple[int, ...], ...]
    """Who was in the sum of each round."""
    centres: FloatArray | None
    """The centres in [-1, 1]^d: ``naive`` only; a masked coordinator does not know them."""


def coordinate(
    agreement: Agreement, *, entropy: Entropy, session: bytes, duty: NoiseDuty | None = None
) -> Coordinator[Outcome]:
    """Run the agreed protocol in one session; ``duty`` comes with noise by the coordinator."""
    agreement.require_star()
    if (duty is not None) != (agreement.noise is not None and agreement.noise.by_coordinator):
        raise ConfigError(
            "a coordinator must have a noise duty if and only if the agreed plan gives it one; it differs."
        )
    start = None
    if agreement.initialisation == "given" or agreement.start_by == "coordinator":
        start = agreement.draw_start(Stream(entropy.bytes(32)))
    if agreement.masked:
        return _coordinate_masked(agreement, start, session, duty)
    assert start is not None
    return _coordinate_naive(agreement, start)


def _coordinate_naive(agreement: Agreement, centres: FloatArray) -> Coordinator[Outcome]:
    """Thesis 5.2.1."""
    answers = yield Ask(
        label="opening the session",
        requests={party: OpenSession(agreement.digest) for party in range(1, agreement.parties + 1)},
        check=expect(Ready),
        steps=agreement.steps,
    )
    present = [party for party, reply in answers.items() if isinstance(reply, Ready)]
    require_members(len(present), agreement.members_min, agreement.parties)
    history: list[tuple[int, ...]] = []
    for round_ in range(1, agreement.iterations + 1):
        answers = yield Ask(
            label=f"round {round_} of {agreement.iterations}",
            requests={party: messages.NaiveRound(round_, Array.of(centres)) for party in present},
            check=_check_local_update(agreement),
            steps=agreement.steps,
        )
        updates = {p: _local_update(r, agreement) for p, r in answers.items() if isinstance(r, messages.LocalUpdate)}
        require_members(len(updates), agreement.members_min, agreement.parties)
        history.append(tuple(sorted(updates)))
        total = np.sum(list(updates.values()), axis=0)
        before, centres = centres, agreement.rule.move(centres, total, round_=round_, members=len(updates))
        if agreement.tolerance and np.linalg.norm(centres - before, axis=1).max() <= agreement.tolerance:
            break
    yield Ask(
        label="distributing the result",
        requests={party: messages.NaiveFinish(Array.of(centres)) for party in present},
        check=expect(Ready),
        steps=agreement.steps,
    )
    return Outcome(rounds=len(history), members=tuple(history), centres=centres)


def _coordinate_masked(
    agreement: Agreement, start: FloatArray | None, session: bytes, duty: NoiseDuty | None
) -> Coordinator[Outcome]:
    """Thesis 5.3.1, 5.4.1 and 7.2.4; they differ in what the parties put into their vectors, and in the noise."""
    terms, steps = agreement.sums, agreement.steps
    holders = yield from introduce(terms, session=session, steps=steps)
    sent_start = None if start is None or agreement.initialisation == "given" else Array.of(start)
    sums: list[Total] = []
    history: list[tuple[int, ...]] = []
    seen = dict.fromkeys(holders, 0)  # how many rounds' sums each party is known to have

    def news(party: int) -> tuple[Total, ...]:
        return tuple(sums[seen[party] :])

    def request(party: int, attempt: Attempt) -> messages.MaskedRound:
        return messages.MaskedRound(attempt, news(party), None if seen[party] else sent_start)

    for round_ in range(1, agreement.iterations + 1):
        summed = yield from sum_round(
            terms,
            round_=round_,
            asked=_within_reach(holders, seen, len(sums), agreement),
            length=agreement.length,
            request=request,
            label=f"round {round_} of {agreement.iterations}",
            steps=steps,
            add_plainly=_noise_of(agreement, duty, round_),
        )
        # An answer to round t shows that its sender has all sums up to t - 1; who is silent is sent them again.
        seen.update(dict.fromkeys(summed.members, round_ - 1))
        history.append(summed.members)
        sums.append(summed.total)
    yield from settle(terms, news, _within_reach(holders, seen, len(sums), agreement), steps=steps)
    return Outcome(rounds=len(history), members=tuple(history), centres=None)


def _within_reach(
    holders: tuple[int, ...], seen: Mapping[int, int], rounds: int, agreement: Agreement
) -> tuple[int, ...]:
    """Return the parties whose missed sums still fit one message."""
    return tuple(party for party in holders if rounds - seen[party] <= agreement.backlog_max)


def _noise_of(agreement: Agreement, duty: NoiseDuty | None, round_: int) -> AddPlainly | None:
    """7.2.2: noise on the masked sum. One noisy sum per round, whoever is sent it and however often."""
    if duty is None or agreement.noise is None:
        return None
    event = agreement.noise.release_of(round_)
    return partial(release, event=event, duty=duty, ring=agreement.ring)


def _local_update(reply: messages.LocalUpdate, agreement: Agreement) -> IntArray:
    return reply.update.to_numpy(np.int64, agreement.length).reshape(agreement.clusters, -1)


def _check_local_update(agreement: Agreement) -> Check:
    """In the clear, a coordinator can check each party's sums against the public bounds."""
    kind = expect(messages.LocalUpdate)

    def check(party: int, reply: Message) -> None:
        kind(party, reply)
        assert isinstance(reply, messages.LocalUpdate)
        assert isinstance(agreement.rule, ExactSums)
        agreement.rule.check_sums(_local_update(reply, agreement))

    return check
