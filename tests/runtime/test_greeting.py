"""Who is at the other end of a connection: everyone but who the job names is refused, whatever keys it holds."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import msgspec
import pytest
from msgspec.structs import replace as with_fields

from cloister.credentials import certify, make_keys, renew_keys
from cloister.crypto import SystemEntropy
from cloister.deployment.keys import agree
from cloister.errors import RemoteProtocolError
from cloister.job import COORDINATOR
from cloister.runtime.remote import greeting
from cloister.runtime.remote.greeting import (
    OwnEnd,
    RefusedError,
    check_consents,
    check_hello,
    check_welcome,
    consent_statement,
    make_hello,
    make_welcome,
    read_major,
)
from cloister.runtime.remote.messages import Challenge, Consented, Hello, Refusal, Welcome
from tests.agreement.people import NAMES, make_people

RUN = bytes(range(16))


def draw():
    return SystemEntropy().bytes(32)


def end_of(keys):
    return OwnEnd(identity=keys.identity, certificate=keys.public.chain.der, program=version("cloister"))


class Meeting:
    """A party calls the coordinator; tests change what is said or shown."""

    def __init__(self, people, *, revoked=()):
        self.people, self.agreed = people, agree(people.job, revoked=revoked)
        self.challenge = Challenge(1, 0, draw())

    def certificate(self, who):
        return self.people.keys[who].public.chain.der

    def hello(self, who, *, party=None, keys=None, agreed=None, peer=None):
        own = end_of(keys or self.people.keys[who])
        peer = self.certificate(COORDINATOR) if peer is None else peer
        agreed = agreed or self.agreed
        return make_hello(own, agreed, self.challenge, party=party or who, nonce=draw(), run=b"", peer=peer)

    def take(self, hello, *, shown, challenge=None):
        """What the coordinator does with a greeting over a connection on which this certificate was shown."""
        ours = end_of(self.people.keys[COORDINATOR])
        check_hello(hello, ours, self.agreed, challenge or self.challenge, peer=shown)

    def welcome(self, hello, *, keys=None):
        return make_welcome(end_of(keys or self.people.keys[COORDINATOR]), self.agreed, self.challenge, hello, run=RUN)

    def take_welcome(self, welcome, hello, *, shown=None, challenge=None):
        shown = self.certificate(COORDINATOR) if shown is None else shown
        check_welcome(welcome, self.agreed, challenge or self.challenge, hello, peer=shown)

    def refuse(self, reason, hello, *, shown, **named):
        with pytest.raises(RefusedError) as error:
            self.take(hello, shown=shown, **named)
        assert error.value.reason is reason


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return make_people(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def meeting(people):
    return Meeting(people)


@pytest.mark.parametrize("name", NAMES)
def test_everyone_in_the_job_is_let_in_and_finds_the_coordinator(meeting, name):
    hello = msgspec.msgpack.decode(msgspec.msgpack.encode(meeting.hello(name)), type=Hello)
    meeting.take(hello, shown=meeting.certificate(name))
    meeting.take_welcome(msgspec.msgpack.decode(msgspec.msgpack.encode(meeting.welcome(hello)), type=Welcome), hello)


def test_a_certificate_of_somebody_else_is_refused(meeting, tmp_path):
    """Copied from a public file; a true party that shows another's; a new one for the same name."""
    hello = meeting.hello("north")
    for shown in (meeting.certificate("harbour"), make_keys("north", tmp_path).public.chain.der, b"junk"):
        meeting.refuse(Refusal.IDENTITY, hello, shown=shown)


def test_nobody_speaks_for_another(meeting, tmp_path):
    """Valid keys, valid signatures, a valid certificate: of someone else."""
    shown = meeting.certificate("harbour")
    for party in ("north", "valley"):
        meeting.refuse(Refusal.IDENTITY, meeting.hello("harbour", party=party), shown=shown)
    for party in (COORDINATOR, "nobody", ""):
        meeting.refuse(Refusal.PARTY, meeting.hello("harbour", party=party or "x"), shown=shown)
    mallory, true = make_keys("harbour", tmp_path), meeting.hello("harbour")
    own = mallory.public.chain.der
    forged = [
        meeting.hello("harbour", keys=mallory),
        with_fields(true, certificate_signature=certify(mallory.identity, own)),
        with_fields(meeting.hello("harbour", keys=mallory), identity=true.identity),
        with_fields(true, signature=meeting.hello("harbour", keys=mallory).signature),
        with_fields(true, party="north", identity=meeting.people.keys["north"].public.identity),
    ]
    for hello in forged:
        for certificate in (shown, own):
            if hello is not true:
                meeting.refuse(Refusal.IDENTITY, hello, shown=certificate)


def test_whoever_holds_a_certificates_key_but_not_the_identity_gets_no_further(meeting, tmp_path):
    """A stolen TLS key: certificate and its signature are true, but nothing can be signed afresh."""
    thief = make_keys("thief", tmp_path)
    hello = meeting.hello("north")
    stolen = with_fields(hello, signature=thief.identity.sign("cloister hello"))
    meeting.refuse(Refusal.IDENTITY, stolen, shown=meeting.certificate("north"))


def test_a_greeting_cannot_be_replayed(meeting):
    """To the same coordinator on another connection, or by one coordinator to another."""
    hello = meeting.hello("north")
    shown = meeting.certificate("north")
    meeting.refuse(Refusal.IDENTITY, hello, shown=shown, challenge=Challenge(1, 0, draw()))
    elsewhere = meeting.hello("north", peer=meeting.certificate("valley"))
    meeting.refuse(Refusal.IDENTITY, elsewhere, shown=shown)


def test_whatever_is_said_is_signed(meeting):
    hello = meeting.hello("north")
    for field, value in {"nonce": draw(), "run": RUN, "job": draw(), "program": hello.program + ".1"}.items():
        meeting.refuse(Refusal.IDENTITY, with_fields(hello, **{field: value}), shown=meeting.certificate("north"))


def test_another_job_or_version_is_refused(meeting):
    shown = meeting.certificate("north")
    other = agree(replace(meeting.people.job, k=5))
    meeting.refuse(Refusal.JOB, meeting.hello("north", agreed=other), shown=shown)
    for change in ({"major": 2}, {"program": "9.0.0"}, {"program": ""}):
        meeting.refuse(Refusal.VERSION, with_fields(meeting.hello("north"), **change), shown=shown)


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        ("0.1.0", "0.1.7", True),
        ("0.1.0", "0.2.0", False),
        ("1.0.0", "1.9.2", True),
        ("1.4", "2.0", False),
        ("1.0.0", "0.1.0", False),
        ("1.0.0", "1.0.0rc1", True),
        ("0.1.0", "", False),
        ("0.1.0", "0.1.0\x1b[31m", False),
        ("0.1.0", "０.１.0", False),
    ],
)
def test_what_counts_as_a_major_version(ours, theirs, fits):
    assert (read_major(ours) == read_major(theirs)) == fits


def test_who_was_revoked_is_refused_until_its_certificate_is_renewed(tmp_path):
    people = make_people(tmp_path)
    public = people.keys["north"].public
    for what in (public.fingerprint, public.certificate_fingerprint):
        meeting = Meeting(people, revoked={what})
        meeting.refuse(Refusal.REVOKED, meeting.hello("north"), shown=public.chain.der)
        meeting.take(meeting.hello("harbour"), shown=meeting.certificate("harbour"))
    renewed = renew_keys(tmp_path / "north.key")
    meeting.take(meeting.hello("north", keys=renewed), shown=renewed.public.chain.der)
    hub = Meeting(people, revoked={people.keys[COORDINATOR].public.certificate_fingerprint})
    hello = hub.hello("harbour")
    with pytest.raises(RefusedError, match="may revoke"):
        hub.take_welcome(hub.welcome(hello), hello)


def test_a_false_coordinator_is_refused(meeting, tmp_path):
    hello, mallory = meeting.hello("north"), make_keys("mallory", tmp_path)
    true = meeting.welcome(hello)
    lies = [
        (meeting.welcome(hello, keys=mallory), mallory.public.chain.der),
        (meeting.welcome(hello, keys=mallory), meeting.certificate(COORDINATOR)),
        (meeting.welcome(hello, keys=meeting.people.keys["harbour"]), meeting.certificate("harbour")),
        (true, mallory.public.chain.der),
        (with_fields(true, run=draw()[:16]), meeting.certificate(COORDINATOR)),
        (with_fields(true, program="0.1.99"), meeting.certificate(COORDINATOR)),
        (meeting.welcome(meeting.hello("north")), meeting.certificate(COORDINATOR)),  # to an earlier greeting
        (meeting.welcome(meeting.hello("harbour")), meeting.certificate(COORDINATOR)),  # to another party
    ]
    for welcome, shown in lies:
        with pytest.raises(RemoteProtocolError):
            meeting.take_welcome(welcome, hello, shown=shown)


def test_consents_of_another_run_job_or_party_are_refused(meeting):
    def consent(name, *, agreed=meeting.agreed, run=RUN, by=None, program="0.1.0"):
        signature = meeting.people.keys[by or name].identity.sign(*consent_statement(agreed, run))
        return Consented(party=name, program=program, signature=signature)

    good = tuple(consent(name) for name in NAMES)
    check_consents(good, meeting.agreed, RUN, party="north")
    other = agree(replace(meeting.people.job, k=5))
    for bad in (
        good[:2],
        (*good, good[0]),
        (good[1], good[0], good[2]),
        (good[0], good[0], good[0]),
        (*good[:2], consent("valley", run=bytes(16))),
        (*good[:2], consent("valley", agreed=other)),
        (*good[:2], consent("valley", by="north")),
        (*good[:2], consent("valley", program="0.1.0\x1b[2J")),  # no signature covers it, and results show it
        (*good[:2], consent("valley", program="0.1.0, and epsilon is 0")),
    ):
        with pytest.raises(RemoteProtocolError):
            check_consents(bad, meeting.agreed, RUN, party="north")


def test_in_a_job_of_very_many_parties_each_is_shown_its_own_consent_and_takes_no_other(meeting, monkeypatch):
    def consent(name, run=RUN):
        statement = consent_statement(meeting.agreed, run)
        return Consented(party=name, program="0.1.0", signature=meeting.people.keys[name].identity.sign(*statement))

    everybody = tuple(consent(name) for name in NAMES)
    assert greeting.share_consents(everybody, meeting.agreed) == dict.fromkeys(NAMES, everybody)
    monkeypatch.setattr(greeting, "CONSENTS_MOST", 2)
    shared = greeting.share_consents(everybody, meeting.agreed)
    assert greeting.share_consents(everybody[:2], meeting.agreed) == {one: shared[one] for one in NAMES[:2]}
    for name in NAMES:
        check_consents(shared[name], meeting.agreed, RUN, party=name)
    for bad in (everybody, shared["harbour"], (), (consent("north", run=bytes(16)),)):
        with pytest.raises(RemoteProtocolError):
            check_consents(bad, meeting.agreed, RUN, party="north")


@pytest.mark.parametrize("check", ["is_certified", "is_signed"])
def test_the_tests_notice_a_check_that_is_left_out(meeting, monkeypatch, check):
    monkeypatch.setattr(f"cloister.runtime.remote.greeting.{check}", lambda *_: True)
    if check == "is_signed":
        meeting.take(with_fields(meeting.hello("north"), signature=bytes(64)), shown=meeting.certificate("north"))
    else:
        hello = with_fields(meeting.hello("north"), certificate_signature=bytes(64))
        meeting.take(hello, shown=meeting.certificate("north"))
