"""Messages and bytes of a session in a ring: two short sessions with vectors of zeros are run, and their bytes counted.

Every round sends the same messages, so what the second round adds is what each later one adds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cloister.crypto import Identity, Stream
from cloister.planning.model import PartyBytes, Traffic
from cloister.protocols.serverless import CODEC, RingParty, Terms, relay
from cloister.records import IntArray
from cloister.runtime import run_local
from cloister.wire.codec import SESSION_BYTES


class _ZeroWalker:
    """Contributes zeros and goes nowhere."""

    def __init__(self, length: int) -> None:
        self._length = length

    def begin(self, seed: bytes, session: bytes) -> None:
        """Nothing to draw."""

    def contribute(self, round_: int) -> IntArray:
        """Zeros."""
        return np.zeros(self._length, dtype=np.int64)

    def take(self, round_: int, total: IntArray, members: int) -> None:
        """Nothing to move."""


def forecast_ring(terms: Terms) -> Traffic:
    """Return what a session of so many parties and rounds sends."""
    one, two = (_count(terms, rounds) for rounds in (1, 2))
    parties = [_extend(first, second, terms.rounds) for first, second in zip(one, two, strict=True)]
    return Traffic(
        steps=terms.steps,
        leader=parties[0],
        other=max(parties[1:], key=lambda party: party.bytes_up + party.bytes_down),
        total_bytes=sum(party.bytes_up + party.bytes_down for party in parties),
        uneven=True,
    )


def _count(terms: Terms, rounds: int) -> list[PartyBytes]:
    """Run a session on zeros, with keys that protect nothing since there is nothing to protect."""
    stream = Stream.from_seed(0, "traffic of a ring")
    identities = [Identity(stream.child("identity", number)) for number in range(terms.parties)]
    short = replace(terms, rounds=rounds, directory=tuple(identity.public_bytes for identity in identities))
    session = bytes(SESSION_BYTES)
    parties = [
        RingParty(
            number=number,
            terms=short,
            walker=_ZeroWalker(short.length),
            identity=identity,
            entropy=stream.child("party", number),
            session=session,
        )
        for number, identity in enumerate(identities, start=1)
    ]
    run = run_local(relay(short, entropy=stream.child("relay"), session=session), parties, codec=CODEC, session=session)
    return [
        PartyBytes(
            bytes_up=traffic.bytes_sent,
            bytes_down=traffic.bytes_received,
            messages_up=traffic.messages_sent,
            messages_down=traffic.messages_received,
        )
        for traffic in run.traffic.values()
    ]


def _extend(one: PartyBytes, two: PartyBytes, rounds: int) -> PartyBytes:
    """From one and two rounds to all of them, in proportion."""

    def at(first: int, second: int) -> int:
        return first + (rounds - 1) * (second - first)

    return PartyBytes(
        bytes_up=at(one.bytes_up, two.bytes_up),
        bytes_down=at(one.bytes_down, two.bytes_down),
        messages_up=at(one.messages_up, two.messages_up),
        messages_down=at(one.messages_down, two.messages_down),
    )
