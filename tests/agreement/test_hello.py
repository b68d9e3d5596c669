"""Who is at the other end of a connection: everyone else is refused, and strangers learn nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace as with_fields

from cloister.agreement import Hello, check_peer, say_hello
from cloister.credentials import certify, make_keys, renew_keys
from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError, RefusedError
from cloister.job import COORDINATOR, JobCoordinator
from tests.agreement.people import NAMES, make_people

ENTROPY = SystemEntropy()


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return make_people(tmp_path_factory.mktemp("keys"))


def hello_of(people, name, **named):
    return say_hello(people.keys[name], job=people.job, name=name, entropy=ENTROPY, **named)


def certificate_of(people, name):
    return people.keys[name].public.chain.der


@pytest.mark.parametrize("name", [COORDINATOR, *NAMES])
def test_everyone_in_the_job_is_known(people, name):
    hello = msgspec.msgpack.decode(msgspec.msgpack.encode(hello_of(people, name)), type=Hello)
    assert check_peer(certificate_of(people, name), hello, job=people.job) == people.number(name)


def test_an_answer_is_bound_to_the_nonce_it_answers(people):
    asked = hello_of(people, "north")
    answer = hello_of(people, COORDINATOR, answers=asked.nonce)
    assert check_peer(certificate_of(people, COORDINATOR), answer, job=people.job, answers=asked.nonce) == 0
    for nonce in (b"", hello_of(people, "north").nonce):  # replayed to another connection
        with pytest.raises(RefusedError, match="signed by the identity"):
            check_peer(certificate_of(people, COORDINATOR), answer, job=people.job, answers=nonce)


def test_two_messages_of_one_have_different_nonces(people):
    assert hello_of(people, "north").nonce != hello_of(people, "north").nonce


def test_another_certificate_than_the_signed_one_is_refused(people, tmp_path):
    """A copied message, or a true one of a party that shows somebody else's certificate."""
    hello = hello_of(people, "north")
    mallory = make_keys("north", tmp_path)
    for der in (certificate_of(people, "harbour"), mallory.public.chain.der):
        with pytest.raises(RefusedError, match="certificate of the connection"):
            check_peer(der, hello, job=people.job)


def test_nobody_speaks_for_another(people, tmp_path):
    """Valid keys, valid signatures, valid certificates: of someone else."""
    true = hello_of(people, "harbour")
    for name in ("north", COORDINATOR, "valley", "nobody"):
        with pytest.raises(RefusedError, match="named in the job"):
            check_peer(
                certificate_of(people, "harbour"),
                say_hello(people.keys["harbour"], job=people.job, name=name, entropy=ENTROPY),
                job=people.job,
            )
    mallory = make_keys("harbour", tmp_path)
    stolen = certificate_of(people, "harbour")
    forged = [
        say_hello(mallory, job=people.job, name="harbour", entropy=ENTROPY),
        with_fields(true, certificate_signature=certify(mallory.identity, mallory.public.chain.der)),
        with_fields(true, identity=people.keys["north"].public.identity, name="north"),
    ]
    for hello in forged:
        for der in (stolen, mallory.public.chain.der):
            with pytest.raises(RefusedError):
                check_peer(der, hello, job=people.job)


def test_whatever_is_said_is_signed(people):
    hello = hello_of(people, "north", session=bytes(16))
    changes = {
        "version": hello.version + ".1",
        "nonce": bytes(16),
        "session": bytes(range(16)),
        "proof": bytes(64),
        "job": bytes(32),
    }
    for field, value in changes.items():
        with pytest.raises(RefusedError, match="signed by the identity"):
            check_peer(certificate_of(people, "north"), with_fields(hello, **{field: value}), job=people.job)


def test_a_stranger_learns_nothing_of_the_job(people, tmp_path):
    mallory = make_keys("mallory", tmp_path)
    for name in ("mallory", *NAMES):
        hello = say_hello(mallory, job=people.job, name=name, entropy=ENTROPY)
        with pytest.raises(RefusedError) as error:
            check_peer(mallory.public.chain.der, with_fields(hello, job=bytes(32)), job=people.job)
        said = str(error.value)
        assert not any(known in said for known in (*NAMES, people.job.name, people.job.digest.hex()[:8]))


def test_another_digest_is_refused_and_both_are_named(people):
    other = replace(people.job, k=5)
    hello = say_hello(people.keys["north"], job=other, name="north", entropy=ENTROPY)
    with pytest.raises(RefusedError, match=f"{people.job.digest.hex()[:16]} here, {other.digest.hex()[:16]} there"):
        check_peer(certificate_of(people, "north"), hello, job=people.job)


def test_the_address_is_not_agreed_on(people):
    moved = replace(
        people.job, coordinator=JobCoordinator(identity=people.job.coordinator.identity, address="[::1]:443")
    )
    hello = say_hello(people.keys["north"], job=moved, name="north", entropy=ENTROPY)
    assert check_peer(certificate_of(people, "north"), hello, job=people.job) == 1


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
def test_major_versions_must_be_equal(people, monkeypatch, ours, theirs, fits):
    monkeypatch.setattr("cloister.agreement.hello.version_of", lambda _: theirs)
    hello = hello_of(people, "north")
    monkeypatch.setattr("cloister.agreement.hello.version_of", lambda _: ours)
    if fits:
        assert check_peer(certificate_of(people, "north"), hello, job=people.job) == 1
        return
    with pytest.raises(RefusedError, match="major version") as error:
        check_peer(certificate_of(people, "north"), hello, job=people.job)
    assert str(error.value).isprintable()


def test_who_was_revoked_is_refused(people):
    hello, public = hello_of(people, "north"), people.keys["north"].public
    for what in (public.fingerprint, public.certificate_fingerprint):
        with pytest.raises(RefusedError, match=what):
            check_peer(public.chain.der, hello, job=people.job, revoked={what})
    others = {people.keys["harbour"].public.fingerprint, people.keys["valley"].public.certificate_fingerprint}
    assert check_peer(public.chain.der, hello, job=people.job, revoked=others) == 1


def test_a_certificate_that_was_revoked_can_be_renewed(tmp_path):
    people = make_people(tmp_path)
    revoked = {people.keys["north"].public.certificate_fingerprint}
    renewed = renew_keys(tmp_path / "north.key")
    hello = say_hello(renewed, job=people.job, name="north", entropy=ENTROPY)
    assert check_peer(renewed.public.chain.der, hello, job=people.job, revoked=revoked) == 1


def test_an_expired_certificate_is_refused(people):
    hello, der = hello_of(people, "north"), certificate_of(people, "north")
    for now in (datetime.now(UTC) + timedelta(days=800), datetime.now(UTC) - timedelta(days=1)):
        with pytest.raises(RefusedError, match="certificate of the connection"):
            check_peer(der, hello, job=people.job, now=now)


def test_a_certificate_that_cannot_be_read_is_refused(people):
    junk = b"junk"
    hello = with_fields(hello_of(people, "north"), certificate_signature=certify(people.keys["north"].identity, junk))
    with pytest.raises(RefusedError):
        check_peer(junk, hello, job=people.job)


def test_a_job_without_identities_has_no_peers(people):
    parties = tuple(with_fields(party, identity=None) for party in people.job.parties)
    job = replace(people.job, parties=parties, coordinator=JobCoordinator())
    with pytest.raises(ConfigError, match="identity"):
        check_peer(certificate_of(people, "north"), hello_of(people, "north"), job=job)


@pytest.mark.parametrize("check", ["is_certified", "is_signed"])
def test_the_tests_notice_a_check_that_is_left_out(people, monkeypatch, check):
    monkeypatch.setattr(f"cloister.agreement.hello.{check}", lambda *_: True)
    hello = hello_of(people, "north")
    if check == "is_certified":
        assert check_peer(certificate_of(people, "harbour"), hello, job=people.job) == 1
    else:
        assert check_peer(certificate_of(people, "north"), with_fields(hello, proof=bytes(64)), job=people.job) == 1
