"""Messages and bytes of a session in which nobody drops out: the session's own messages, filled with zeros.

Their lengths follow from public values, so the bytes are those that a run counts, up to a byte a message for the
numbers of the parties.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from cloister.aggregation import Aggregate, pack_members
from cloister.aggregation.seed_agreement import (
    SEED_BYTES,
    OpenSession,
    Ready,
    SealedSeed,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.crypto import SignedSessionKey
from cloister.crypto.identity import PUBLIC_KEY_BYTES, SIGNATURE_BYTES
from cloister.crypto.sealing import OVERHEAD_BYTES
from cloister.numeric import Ring
from cloister.planning.model import PartyBytes, Traffic
from cloister.protocols import multiparty_lloyd
from cloister.protocols.guided_sums import messages as rounds
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.messages import make_codec
from cloister.protocols.multiparty_lloyd import messages as lloyd
from cloister.roles import COORDINATOR, Message
from cloister.wire import Array, Codec
from cloister.wire.codec import SESSION_BYTES

Exchange = tuple[int, Message, Message]
"""The step, what a party is sent in it, and what it answers."""

_DIGEST = bytes(32)


def forecast_guided(agreement: Agreement[Any]) -> Traffic:
    """Return what a session of guided sums sends: of the synopsis, or of FedDP-KMeans.

    With a sample of the parties in each round it is the most: a party that is left out in a round sends nothing, and
    is told the total later.
    """
    parties = agreement.settings.parties

    def exchanges(party: int) -> Iterator[Exchange]:
        step = yield from _agree_on_seed(party, parties)
        news: Aggregate | None = None
        for number in range(1, len(agreement.slots) + 2):
            length = agreement.length_of(number)
            answer = rounds.MaskedUpdate(_zeros(length, agreement.ring))
            if number <= len(agreement.slots):
                yield step, rounds.Round(number, news), answer
            else:
                assert news is not None
                yield step, rounds.Confirm(news), answer
            news = _sum(number, parties, length, agreement.ring)
            step += 1
        assert news is not None
        yield step, rounds.Finish(news), Ready()

    return _forecast(
        exchanges_of=exchanges,
        parties=parties,
        codec=make_codec(agreement.settings.protocol),
        steps=agreement.steps,
        at_most=agreement.settings.sample_size < parties,
    )


def forecast_lloyd(agreement: multiparty_lloyd.Agreement) -> Traffic:
    """Return what a session of multiparty Lloyd sends; the naive one may stop earlier, if it has a tolerance."""
    exchanges = _exchange_masked if agreement.masked else _exchange_naive
    return _forecast(
        exchanges_of=lambda party: exchanges(agreement, party),
        parties=agreement.parties,
        codec=multiparty_lloyd.CODEC,
        steps=agreement.steps,
        at_most=agreement.tolerance > 0,
    )


def _exchange_naive(agreement: multiparty_lloyd.Agreement, party: int) -> Iterator[Exchange]:
    centres = Array.of(np.zeros((agreement.clusters, agreement.dimensions)))
    yield 0, OpenSession(_DIGEST), Ready()
    for number in range(1, agreement.iterations + 1):
        answer = lloyd.LocalUpdate(Array.of(np.zeros(agreement.length, dtype=np.int64)))
        yield number, lloyd.NaiveRound(number, centres), answer
    yield agreement.iterations + 1, lloyd.NaiveFinish(centres), Ready()


def _exchange_masked(agreement: multiparty_lloyd.Agreement, party: int) -> Iterator[Exchange]:
    step = yield from _agree_on_seed(party, agreement.parties)
    drawn = agreement.initialisation != "given" and agreement.start_by == "coordinator"
    start = Array.of(np.zeros((agreement.clusters, agreement.dimensions))) if drawn else None
    answer = lloyd.MaskedUpdate(_zeros(agreement.length, agreement.ring))
    news: tuple[Aggregate, ...] = ()
    for number in range(1, agreement.iterations + 1):
        # A party is known to have a sum once it has answered the request that came with it, so the first two rounds
        # count as its first: the start goes with both.
        yield step, lloyd.MaskedRound(number, news, start if number <= 2 else None), answer
        news = (_sum(number, agreement.parties, agreement.length, agreement.ring),)
        step += 1
    yield step, lloyd.MaskedFinish(news), Ready()


def _agree_on_seed(party: int, parties: int) -> Generator[Exchange, None, int]:
    """The three steps; returns the number of the next."""
    key = SignedSessionKey(party, bytes(PUBLIC_KEY_BYTES), bytes(SIGNATURE_BYTES))
    keys = tuple(SignedSessionKey(p, key.public_key, key.signature) for p in range(1, parties + 1))
    box = bytes(SEED_BYTES + OVERHEAD_BYTES)
    yield 0, OpenSession(_DIGEST), SessionOpened(key)
    if party == 1:
        yield 1, ShareSeed(keys), SealedSeeds(tuple(SealedSeed(p, box) for p in range(2, parties + 1)))
    else:
        yield 2, TakeSeed(keys[0], box), Ready()
    return 3


def _forecast(
    *, exchanges_of: Callable[[int], Iterator[Exchange]], parties: int, codec: Codec, steps: int, at_most: bool = False
) -> Traffic:
    """Put the first and the last party's messages into bytes; the others' are like the last one's."""
    leader, other = (_measure(exchanges_of(party), party, codec) for party in (1, parties))
    others = (other.bytes_up + other.bytes_down) * (parties - 1)
    return Traffic(
        steps=steps,
        leader=leader,
        other=other,
        total_bytes=leader.bytes_up + leader.bytes_down + others,
        at_most=at_most,
    )


def _measure(exchanges: Iterator[Exchange], party: int, codec: Codec) -> PartyBytes:
    up = down = messages = 0
    for step, request, answer in exchanges:
        down += len(codec.encode(request, session=bytes(SESSION_BYTES), step=step, sender=COORDINATOR))
        up += len(codec.encode(answer, session=bytes(SESSION_BYTES), step=step, sender=party))
        messages += 1
    return PartyBytes(bytes_up=up, bytes_down=down, messages_up=messages, messages_down=messages)


def _zeros(length: int, ring: Ring) -> Array:
    return Array.of(np.zeros(length, dtype=ring.dtype))


def _sum(round_: int, parties: int, length: int, ring: Ring) -> Aggregate:
    return Aggregate(round_, pack_members(range(1, parties + 1), parties), _zeros(length, ring))
