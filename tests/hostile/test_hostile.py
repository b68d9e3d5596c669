"""Damaged messages in every protocol, from a peer that holds valid keys and from the relay: typed errors, no traces.

Longer runs: ``python -m bench.fuzz``.
"""

import msgspec
import pytest

from cloister.errors import RemoteProtocolError
from cloister.protocols.align.party import AlignParty
from cloister.protocols.vertical import contents, relayed
from cloister.wire import CoordinatorEndpoint, PartyEndpoint, codec
from tests.hostile.cases import CASES
from tests.hostile.direct import PARSERS, keep_case, try_directly
from tests.hostile.game import Game, Played, find_true_outcome
from tests.sessions import SESSION

GAMES = 12


def play(name, games=GAMES, first=0):
    total = Played()
    for seed in range(first, first + games):
        total += Game(name, seed).play()
    return total


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_party_causes_typed_errors_only_and_a_refused_message_leaves_no_trace(name):
    total = play(name)
    assert not total.findings, "\n".join(total.findings)
    assert total.frames > 50
    assert total.refused > 0.5 * total.frames


@pytest.mark.parametrize("name", CASES)
def test_every_earlier_request_is_refused_as_a_new_one(name):
    """A relay repeats all that it has ever asked a party, the seed agreement too, before each true request."""
    session = CASES[name]()
    codec = session.roles.codec(session.agreed)
    parties = {
        number: PartyEndpoint(session.party(number), number=number, codec=codec, session=SESSION)
        for number in session.numbers
    }
    coordinator = CoordinatorEndpoint(session.coordinator(), codec=codec, session=SESSION)
    asked, replies = {number: [] for number in parties}, []
    while not coordinator.finished:
        for number, frame in coordinator.frames().items():
            for request in asked[number]:
                again = codec.encode(request, session=SESSION, step=coordinator.step, sender=0)
                if again != frame:
                    with pytest.raises(RemoteProtocolError):
                        parties[number].receive(again)
            asked[number].append(coordinator.ask.requests[number])
            replies.append(parties[number].receive(frame))
            coordinator.receive(number, replies[-1])
        coordinator.close_step()
    assert replies == find_true_outcome(name)[0]  # to the last byte


def test_games_are_games():
    """Some of the damage is inside boxes, some sessions end in errors, and some as if nothing had happened."""
    total = play("vertical, threshold")
    assert total.sealed > 5
    assert total.compared > 1
    assert total.ended["TooFewPartiesError"] > 1


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_without_a_session_around_it_is_read_or_refused(name):
    total = try_directly(name, seed=1, count=600)
    assert not total.findings, "\n".join(total.findings)
    assert 0.5 * total.frames < total.refused < total.frames > 300


def test_every_parser_is_tried():
    tried = {one.what.split(" ")[0] for name in CASES for one in keep_case(name)}
    assert {f"{parser.__module__}.{parser.__name__}" for parser in PARSERS} <= tried


def test_damage_to_boxes_only():
    total = Played()
    for seed in range(20):
        total += Game("vertical, threshold", seed, only_boxes=True).play()
    assert not total.findings
    assert total.frames == total.sealed > 50


# --- mutants ------------------------------------------------------------------------------------------------------


def forget_to_put_back(monkeypatch):
    """A refused turn leaves behind what was read of it."""
    monkeypatch.setattr(relayed, "vars", lambda party: {}, raising=False)


def trust_what_is_in_boxes(monkeypatch):
    """What cannot be read is not refused but raises what its parser raises."""
    monkeypatch.setattr(contents, "decode", lambda raw, kind: msgspec.msgpack.decode(raw, type=kind))


def count_what_is_refused(monkeypatch):
    """A part of a list counts as blinded although it could not be opened."""
    real = AlignParty._open

    def open_part(self, box, owner, hop, part):
        try:
            return real(self, box, owner, hop, part)
        except RemoteProtocolError:
            self._parts_blinded[hop] += 1
            raise

    monkeypatch.setattr(AlignParty, "_open", open_part)


@pytest.mark.parametrize(
    ("mutant", "name", "games"),
    [
        (forget_to_put_back, "vertical, collective", 60),
        (trust_what_is_in_boxes, "vertical, two parties", 60),
        (count_what_is_refused, "align", 60),
    ],
)
def test_mutants_are_found(monkeypatch, mutant, name, games):
    mutant(monkeypatch)
    assert play(name, games).findings


@pytest.mark.parametrize(
    ("module", "changed", "name"),
    [
        (codec, {"_decode": lambda decoder, data, what: decoder.decode(data)}, "naive"),
        (contents, {"RemoteProtocolError": ValueError}, "vertical, two parties"),
    ],
)
def test_mutants_are_found_without_a_session(monkeypatch, module, changed, name):
    keep_case(name)
    for attribute, value in changed.items():
        monkeypatch.setattr(module, attribute, value)
    assert try_directly(name, seed=1, count=600).findings
