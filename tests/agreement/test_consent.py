"""A party's consent: its own, to this very job, for one run."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from cloister.agreement import check_consent, give_consent, read_consent, use_consent, write_consent
from cloister.crypto import Identity, SystemEntropy
from cloister.errors import PolicyError
from tests.agreement.people import make_people

RUN, OTHER = bytes(range(16)), bytes(16)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return make_people(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def path(people, tmp_path):
    path = tmp_path / "north.consent"
    write_consent(give_consent(people.keys["north"].identity, people.job, "north"), path)
    return path


def use(people, path, *, job=None, party="north", run=RUN):
    use_consent(path, people.keys[party].identity, job or people.job, party, run=run)


def test_a_consent_is_good_for_one_run_and_again_for_the_same(people, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    check_consent(read_consent(path), people.keys["north"].public.identity, people.job, "north")
    use(people, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_consent(path).run == RUN.hex()
    use(people, path)  # after a kill
    with pytest.raises(PolicyError, match="spends the budget again"):
        use(people, path, run=OTHER)
    with pytest.raises(PolicyError, match="has used it up"):
        check_consent(read_consent(path), people.keys["north"].public.identity, people.job, "north")


def test_a_consent_that_was_used_up_cannot_be_freed_without_the_key(people, path):
    use(people, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": ""}))
    with pytest.raises(PolicyError, match="signed by the identity"):
        use(people, path, run=OTHER)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run": OTHER.hex()}))
    with pytest.raises(PolicyError, match="signed by the identity"):
        use(people, path, run=OTHER)


@pytest.mark.parametrize("change", [{"k": 5}, {"budget": None}, {"name": "other"}])
def test_a_consent_to_another_job_is_refused(people, path, change):
    protocol = {} if change.get("budget", 1) else {"protocol": __import__("cloister").make_options("naive")}
    with pytest.raises(PolicyError, match="to this job"):
        use(people, path, job=replace(people.job, **change, **protocol))
    assert not read_consent(path).run


def test_a_consent_of_another_party_is_refused(people, path):
    with pytest.raises(PolicyError, match="this party's own"):
        use(people, path, party="harbour")
    with pytest.raises(PolicyError, match="this party's own"):
        use_consent(path, people.keys["north"].identity, people.job, "harbour", run=RUN)


def test_a_consent_that_somebody_else_wrote_is_refused(people, path):
    """An attacker who can write the file but has not the key."""
    forged = give_consent(Identity(SystemEntropy()), people.job, "north")
    write_consent(with_fields(forged, identity=people.keys["north"].public.fingerprint), path)
    with pytest.raises(PolicyError, match="signed by the identity"):
        use(people, path)


def test_a_consent_given_with_another_major_version_is_refused(people, path, monkeypatch):
    monkeypatch.setattr("cloister.agreement.consent.version_of", lambda _: "1.0.0")
    with pytest.raises(PolicyError, match="major version"):
        use(people, path)


def test_every_flipped_byte_of_a_consent_is_refused_or_harmless(people, path):
    raw = path.read_bytes()
    good = read_consent(path)
    harmless = 0
    for place in range(len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        try:
            consent = read_consent(path)
            check_consent(consent, people.keys["north"].public.identity, people.job, "north")
        except PolicyError:
            continue
        harmless += 1
        assert with_fields(consent, job=good.job) == good  # the name is for people: the digest counts
    assert harmless < 60


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"cloister_consent": 2}', None])
def test_what_is_no_consent_is_refused(people, tmp_path, content):
    path = tmp_path / "north.consent"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PolicyError, match="cloister join"):
        use(people, path)


def test_a_run_that_is_not_one_in_a_consent_is_refused(people, path):
    for run in ("00", "zz" * 16, "00" * 16 + "\n"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"run": run}))
        with pytest.raises(PolicyError):
            use(people, path)


def test_the_tests_notice_a_signature_that_is_not_checked(people, path, monkeypatch):
    monkeypatch.setattr("cloister.agreement.consent.is_signed", lambda *_: True)
    write_consent(with_fields(read_consent(path), signature=bytes(64)), path)
    use(people, path)
