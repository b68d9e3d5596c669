"""Who is at the other end of a connection: everyone else is refused, and strangers learn nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import pytest
from msgspec.structs import replace as with_fields

from cloister.agreement import check_peer
from cloister.credentials import certify, make_keys, renew_keys
from cloister.errors import ConfigError, RefusedError
from cloister.job import COORDINATOR, JobCoordinator
from tests.agreement.people import NAMES, make_people


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return make_people(tmp_path_factory.mktemp("keys"))


def check(people, who, *, keys=None, der=None, job=None, **said):
    """Check one who says what it should, but for what is given."""
    keys = people.keys[who] if keys is None else keys
    claims = {
        "name": who,
        "identity": keys.public.identity,
        "certificate_signature": keys.public.signature,
        "digest": people.job.digest,
        "version": version("cloister"),
    }
    return check_peer(der or keys.public.chain.der, **(claims | said), job=job or people.job)


def certificate_of(people, name):
    return people.keys[name].public.chain.der


@pytest.mark.parametrize("name", [COORDINATOR, *NAMES])
def test_everyone_in_the_job_is_known(people, name):
    assert check(people, name) == people.number(name)


def test_another_certificate_than_the_signed_one_is_refused(people, tmp_path):
    """What was copied from a public file, or a true party that shows somebody else's certificate."""
    mallory = make_keys("north", tmp_path)
    for der in (certificate_of(people, "harbour"), mallory.public.chain.der):
        with pytest.raises(RefusedError, match="certificate of the connection"):
            check(people, "north", der=der)


def test_nobody_speaks_for_another(people, tmp_path):
    """Valid keys, valid signatures, valid certificates: of someone else."""
    for name in ("north", COORDINATOR, "valley", "nobody", ""):
        with pytest.raises(RefusedError, match="named in the job"):
            check(people, "harbour", name=name)
    mallory = make_keys("harbour", tmp_path)
    for der in (certificate_of(people, "harbour"), mallory.public.chain.der):
        for identity in (mallory.public.identity, people.keys["harbour"].public.identity):
            with pytest.raises(RefusedError):
                check(people, "harbour", keys=mallory, der=der, identity=identity)
        with pytest.raises(RefusedError):
            check(people, "harbour", der=der, certificate_signature=mallory.public.signature)
    with pytest.raises(RefusedError):
        check(people, "harbour", identity=people.keys["north"].public.identity, name="north")


def test_a_stranger_learns_nothing_of_the_job(people, tmp_path):
    mallory = make_keys("mallory", tmp_path)
    for name in ("mallory", *NAMES):
        with pytest.raises(RefusedError) as error:
            check(people, name, keys=mallory, digest=bytes(32))
        said = str(error.value)
        assert not any(known in said for known in (*NAMES, people.job.name, people.job.digest.hex()[:8]))


def test_another_digest_is_refused_and_both_are_named(people):
    other = replace(people.job, k=5).digest
    with pytest.raises(RefusedError, match=f"{people.job.digest.hex()[:16]} here, {other.hex()[:16]} there"):
        check(people, "north", digest=other)


def test_the_address_is_not_agreed_on(people):
    moved = JobCoordinator(identity=people.job.coordinator.identity, address="[::1]:443")
    assert check(people, "north", digest=replace(people.job, coordinator=moved).digest) == 1


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
    monkeypatch.setattr("cloister.agreement.peers.version_of", lambda _: ours)
    if fits:
        assert check(people, "north", version=theirs) == 1
        return
    with pytest.raises(RefusedError, match="major version") as error:
        check(people, "north", version=theirs)
    assert str(error.value).isprintable()


def test_who_was_revoked_is_refused(people):
    public = people.keys["north"].public
    for what in (public.fingerprint, public.certificate_fingerprint):
        with pytest.raises(RefusedError, match=what):
            check(people, "north", revoked={what})
    others = {people.keys["harbour"].public.fingerprint, people.keys["valley"].public.certificate_fingerprint}
    assert check(people, "north", revoked=others) == 1


def test_a_certificate_that_was_revoked_can_be_renewed(tmp_path):
    people = make_people(tmp_path)
    revoked = {people.keys["north"].public.certificate_fingerprint}
    assert check(people, "north", keys=renew_keys(tmp_path / "north.key"), revoked=revoked) == 1


def test_an_expired_certificate_is_refused(people):
    for now in (datetime.now(UTC) + timedelta(days=800), datetime.now(UTC) - timedelta(days=1)):
        with pytest.raises(RefusedError, match="certificate of the connection"):
            check(people, "north", now=now)


def test_a_certificate_that_cannot_be_read_is_refused(people):
    signature = certify(people.keys["north"].identity, b"junk")
    with pytest.raises(RefusedError, match="readable"):
        check(people, "north", der=b"junk", certificate_signature=signature)


def test_a_job_without_identities_has_no_peers(people):
    parties = tuple(with_fields(party, identity=None) for party in people.job.parties)
    with pytest.raises(ConfigError, match="identity"):
        check(people, "north", job=replace(people.job, parties=parties, coordinator=JobCoordinator()))


def test_the_tests_notice_a_check_that_is_left_out(people, monkeypatch):
    monkeypatch.setattr("cloister.agreement.peers.is_certified", lambda *_: True)
    assert check(people, "north", der=certificate_of(people, "harbour")) == 1
