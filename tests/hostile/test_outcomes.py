"""What a hostile coordinator tells of a session's outcome, between organisations, is refused or taken, and no more."""

import warnings
from random import Random

import msgspec
import pytest

from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.jobfile import parse_setup
from cloister.protocol import find_protocol
from cloister.sessions import simulate
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables
from tests.hostile.mutation import mutate_bytes, mutate_tree


def end_session(job, folder, monkeypatch):
    """Run a golden job; return its protocol, and what that is given at the end."""
    write_tables(folder)
    setup = parse_setup(JOBS[job], folder=folder)
    protocol, given = find_protocol(setup.job), {}
    kind = type(protocol)
    find, explain = kind.find, kind.explain
    monkeypatch.setattr(kind, "find", lambda self, *own: given.setdefault("find", own) and find(self, *own))
    monkeypatch.setattr(kind, "explain", lambda self, *own: given.setdefault("explain", own) and explain(self, *own))
    monkeypatch.setattr(kind, "close", lambda self, role: None)
    simulate(setup, evaluate=False)
    return protocol, *given["find"], given["explain"]


def take(protocol, agreed, party, explained, told):
    """Do what a party does with it."""
    job, _, _, _, make_card = explained
    heard = protocol.hear(agreed, told)
    finding = protocol.find(agreed, party, heard)
    if finding is not None:
        protocol.explain(job, agreed, finding, heard, make_card)
    charges = protocol.charges(agreed)
    if charges is not None and not charges.parties_pay:
        protocol.list_coordinator_charges(agreed, heard)


def damage(told, rng):
    if rng.random() < 0.15:
        return mutate_bytes(told, rng)
    message = msgspec.msgpack.decode(told)
    mutate_tree(message, rng)
    return msgspec.msgpack.encode(message)


@pytest.mark.parametrize(
    "job", ["naive-tolerance", "mask-noise-average-local", "synopsis-shared", "feddp-record", "secfc"]
)
def test_a_false_outcome_is_refused_or_taken_and_causes_nothing_else(job, tmp_path, monkeypatch):
    protocol, agreed, party, outcome, explained = end_session(job, tmp_path, monkeypatch)
    told, rng, refused = protocol.tell(outcome), Random(job), 0
    for _ in range(300):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                take(protocol, agreed, party, explained, damage(told, rng))
            except RemoteProtocolError:
                refused += 1
            except TooFewPartiesError:  # so few that nothing is revealed
                assert job == "secfc"
    assert refused > 50


@pytest.mark.parametrize("false", [{"records_max": 0}, {"records_max": 1 << 62}, {"counts": ()}, {"counts": (1,) * 99}])
def test_sizes_that_no_session_could_have_are_refused(false, tmp_path, monkeypatch):
    protocol, agreed, *_, outcome, _ = end_session("secfc", tmp_path, monkeypatch)
    told = msgspec.msgpack.decode(protocol.tell(outcome), type=protocol.Told)
    with pytest.raises(RemoteProtocolError):
        protocol.hear(agreed, msgspec.msgpack.encode(msgspec.structs.replace(told, **false)))
