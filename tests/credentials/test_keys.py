"""Key files: private ones stay private and are never lost; public ones cannot be changed unnoticed."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from cloister.credentials import (
    find_public_files,
    load_keys,
    load_public,
    make_keys,
    renew_keys,
    request_certificate,
    take_certificate,
    write_public,
)
from cloister.credentials.certificates import find_public_key
from cloister.credentials.files import write_new
from cloister.credentials.keys import PublicKeyFile
from cloister.crypto import Stream, read_fingerprint
from cloister.errors import CredentialsError
from tests.credentials.authority import Authority

NOW = datetime.now(UTC)


def test_new_keys_are_read_back(tmp_path):
    made = make_keys("north", tmp_path)
    own, public = load_keys(tmp_path / "north.key"), load_public(tmp_path / "north.pub")
    assert own.public == public == made.public
    assert own.identity.public_bytes == public.identity == read_fingerprint(public.fingerprint)
    assert find_public_key(own.tls_key_pem) == public.chain.key
    assert own.journal_key == made.journal_key
    assert own.journal_key not in (tmp_path / "north.key").read_bytes()
    assert stat.S_IMODE((tmp_path / "north.key").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"north.key", "north.pub"}


def test_two_keys_have_nothing_in_common(tmp_path):
    first, second = make_keys("a", tmp_path), make_keys("b", tmp_path)
    assert first.identity.public_bytes != second.identity.public_bytes
    assert first.tls_key_pem != second.tls_key_pem
    assert first.journal_key != second.journal_key
    assert first.public.chain.der != second.public.chain.der


def test_all_randomness_of_keys_is_the_given_entropy(tmp_path):
    first, second = (make_keys(name, tmp_path, entropy=Stream(bytes(32)), now=NOW) for name in "ab")
    assert first.identity.public_bytes == second.identity.public_bytes
    assert first.tls_key_pem == second.tls_key_pem


@pytest.mark.parametrize("suffix", [".key", ".pub"])
def test_new_keys_never_replace_others(tmp_path, suffix):
    (tmp_path / f"north{suffix}").write_text("mine")
    with pytest.raises(CredentialsError, match="exists"):
        make_keys("north", tmp_path)
    assert (tmp_path / f"north{suffix}").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_private_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    """Two processes that make the same keys at once: one of them wins."""
    (tmp_path / "north.key").write_text("mine")
    with pytest.raises(CredentialsError, match="must be new"):
        write_new(tmp_path / "north.key", b"theirs", mode=0o600)
    assert (tmp_path / "north.key").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
def test_a_key_file_that_others_can_use_is_refused(tmp_path, mode):
    make_keys("north", tmp_path)
    (tmp_path / "north.key").chmod(mode)
    with pytest.raises(CredentialsError, match=f"mode is {mode:04o}"):
        load_keys(tmp_path / "north.key")


def test_the_private_file_is_never_readable_by_others_not_even_while_it_is_written(tmp_path, monkeypatch):
    seen = []
    real = os.fdopen

    def fdopen(descriptor, *rest):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return real(descriptor, *rest)

    monkeypatch.setattr(os, "fdopen", fdopen)
    before = os.umask(0)
    try:
        make_keys("north", tmp_path)
    finally:
        os.umask(before)
    assert seen
    assert set(seen) == {0o600}


def test_every_flipped_byte_of_a_public_file_is_refused_or_harmless(tmp_path):
    """Whatever is still read says the same."""
    good = make_keys("north", tmp_path).public
    raw, path = (tmp_path / "north.pub").read_bytes(), tmp_path / "flipped.pub"
    refused = 0
    for place in range(len(raw)):
        for flip in (1,) if place % 8 else (1, 0x20, 0x80):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :])
            try:
                assert load_public(path) == good
            except CredentialsError:
                refused += 1
    assert refused > 0.9 * len(raw)


def test_every_truncated_file_is_refused(tmp_path):
    make_keys("north", tmp_path)
    for suffix, load in ((".pub", load_public), (".key", load_keys)):
        raw, path = (tmp_path / f"north{suffix}").read_bytes(), tmp_path / f"cut{suffix}"
        path.touch(mode=0o600)
        for length in [*range(0, len(raw), 7), *range(len(raw) - 40, len(raw) - 2)]:
            path.write_bytes(raw[:length])
            with pytest.raises(CredentialsError):
                load(path)


def test_every_flipped_byte_of_a_private_file_is_refused_or_harmless(tmp_path):
    good = make_keys("north", tmp_path)
    raw, path = (tmp_path / "north.key").read_bytes(), tmp_path / "flipped.key"
    path.touch(mode=0o600)
    for place in range(len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        try:
            read = load_keys(path)
        except CredentialsError as error:
            assert json.loads(raw)["secret"] not in str(error)
            continue
        # A certificate's signature can be written in several ways: the file then has another one, for the same key.
        assert (read.public.identity, read.public.chain.key) == (good.public.identity, good.public.chain.key)
        assert read.journal_key == good.journal_key
        assert find_public_key(read.tls_key_pem) == good.public.chain.key


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cloister_public_key": 2}, "version 1; got 2. Update"),
        ({"cloister_public_key": 0}, "version 1; got 0"),
        ({"cloister_public_key": "1"}, "public file"),
        ({"cloister_public_key": True}, "version"),
        ({"extra": 1}, "as Cloister wrote it"),
        ({"name": "south"}, "made out to 'south'"),
        ({"name": "../north"}, "name of keys"),
        ({"name": "nor\x1bth"}, "name of keys"),
        ({"certificates": ""}, "X.509"),
        ({"certificates": "x" * (1 << 20)}, "at most"),
        ({"identity": "ed25519:abc"}, "identity"),
    ],
)
def test_a_public_file_that_says_something_else_is_refused(tmp_path, change, reason):
    make_keys("north", tmp_path)
    path = tmp_path / "north.pub"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CredentialsError, match=reason):
        load_public(path)


def test_a_certificate_of_another_identity_is_refused(tmp_path):
    """An attacker's certificate beside the victim's identity, and the other way round."""
    victim, attacker = (json.loads(make_keys(name, tmp_path).public.encode()) for name in ("north", "mallory"))
    for part in ("identity", "certificates", "signature"):
        path = tmp_path / "swapped.pub"
        path.write_text(json.dumps(victim | {part: attacker[part]}))
        with pytest.raises(CredentialsError, match="signed by the identity"):
            load_public(path)
    path.write_text(json.dumps(attacker | {"name": "north"}))
    with pytest.raises(CredentialsError, match="made out to"):
        load_public(path)


def test_the_test_would_notice_a_file_that_is_not_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("cloister.credentials.keys.is_certified", lambda *_: True)
    victim, attacker = (json.loads(make_keys(name, tmp_path).public.encode()) for name in ("north", "mallory"))
    path = tmp_path / "swapped.pub"
    path.write_text(json.dumps(victim | {"identity": attacker["identity"]}))
    assert load_public(path).fingerprint == attacker["identity"]


def test_dates_are_checked(tmp_path):
    make_keys("north", tmp_path, days=30, now=NOW)
    for load, path in ((load_public, tmp_path / "north.pub"), (load_keys, tmp_path / "north.key")):
        load(path, now=NOW)
        load(path, now=NOW - timedelta(minutes=59))
        load(path, now=NOW + timedelta(days=29))
        with pytest.raises(CredentialsError, match="Check the clock"):
            load(path, now=NOW - timedelta(hours=2))
        with pytest.raises(CredentialsError, match="keys renew"):
            load(path, now=NOW + timedelta(days=31))
        load(path, now=NOW + timedelta(days=31), any_date=True)


def test_a_private_file_is_no_public_one(tmp_path):
    make_keys("north", tmp_path)
    with pytest.raises(CredentialsError, match=r"public file \(NAME.pub\)"):
        load_public(tmp_path / "north.key")
    (tmp_path / "north.pub").chmod(0o600)
    with pytest.raises(CredentialsError, match=r"private file \(NAME.key\)"):
        load_keys(tmp_path / "north.pub")
    with pytest.raises(CredentialsError, match="No such file"):
        load_public(tmp_path / "south.pub")


def test_renewing_keeps_the_identity_and_nothing_else(tmp_path):
    old = make_keys("north", tmp_path, now=NOW, days=30)
    new = renew_keys(tmp_path / "north.key", now=NOW + timedelta(days=31))
    assert new.identity.public_bytes == old.identity.public_bytes
    assert new.journal_key == old.journal_key
    assert new.tls_key_pem != old.tls_key_pem
    assert new.public.certificate_fingerprint != old.public.certificate_fingerprint
    assert load_public(tmp_path / "north.pub", now=NOW + timedelta(days=40)) == new.public


def test_a_kill_while_renewing_leaves_old_keys_or_new_ones(tmp_path, monkeypatch):
    make_keys("north", tmp_path)
    steps = ["fsync", "fchmod"]

    class KilledError(BaseException):
        pass

    for step in steps:
        for after in range(6):
            calls = 0
            real = getattr(os, step)

            def dies(*arguments, real=real, after=after):
                nonlocal calls
                calls += 1
                if calls > after:
                    raise KilledError
                return real(*arguments)

            monkeypatch.setattr(os, step, dies)
            try:
                renew_keys(tmp_path / "north.key")
            except KilledError:
                pass
            finally:
                monkeypatch.setattr(os, step, real)
            own = load_keys(tmp_path / "north.key")
            load_public(tmp_path / "north.pub")
            write_public(tmp_path / "north.key")
            assert load_public(tmp_path / "north.pub") == own.public


def test_a_lost_public_file_is_written_again(tmp_path):
    made = make_keys("north", tmp_path)
    (tmp_path / "north.pub").unlink()
    assert load_public(write_public(tmp_path / "north.key")) == made.public


# --- an authority of the user's own -----------------------------------------------------------------------------------


def test_a_certificate_of_an_authority(tmp_path):
    root = Authority()
    middle = Authority("Issuing CA", issuer=root)
    request = request_certificate("north", tmp_path)
    with pytest.raises(CredentialsError, match="await"):
        load_keys(tmp_path / "north.key")
    chain = tmp_path / "chain.pem"
    chain.write_bytes(middle.issue(request.read_bytes()) + middle.pem + root.pem)
    own = take_certificate(tmp_path / "north.key", chain)
    assert load_keys(tmp_path / "north.key").public == own.public == load_public(tmp_path / "north.pub")
    assert own.public.certificates_pem.startswith(own.public.chain.first_pem)
    assert own.public.certificates_pem.endswith(root.pem)

    # Renewal: the old certificate stays in use until the new one is there.
    request = request_certificate("north", tmp_path)
    assert load_keys(tmp_path / "north.key").public == own.public
    chain.write_bytes(root.issue(request.read_bytes()) + root.pem)
    renewed = take_certificate(tmp_path / "north.key", chain)
    assert renewed.public.identity == own.public.identity
    assert renewed.tls_key_pem != own.tls_key_pem


def test_no_private_key_gets_into_a_public_file(tmp_path):
    """Chains often come in one file with a key."""
    root = Authority()
    request = request_certificate("north", tmp_path)
    chain = tmp_path / "chain.pem"
    secret = json.loads((tmp_path / "north.key").read_text())["next_tls_key"].encode()
    chain.write_bytes(secret + root.issue(request.read_bytes()) + b"a comment\n" + root.pem)
    take_certificate(tmp_path / "north.key", chain)
    public = (tmp_path / "north.pub").read_text()
    assert "PRIVATE" not in public
    assert "comment" not in public


@pytest.mark.parametrize(
    ("issue", "reason"),
    [
        (lambda root, request, other: root.issue(request) + other.pem, "signed by the next"),
        (lambda root, request, other: root.pem + root.issue(request), "P-256|DNS|signed by the next"),
        (lambda root, request, other: root.issue(request, name="south") + root.pem, "made out to 'north'"),
        (lambda root, request, other: root.issue(request, dns="") + root.pem, "DNS name"),
        (lambda root, request, other: root.issue(request, days=0) + root.pem, "expired"),
        (lambda root, request, other: root.issue(request, key=other.key.public_key()) + root.pem, "another key"),
        (lambda root, request, other: b"", "X.509"),
        (lambda root, request, other: root.issue(request) + root.pem * 8, "X.509"),
    ],
)
def test_a_certificate_that_is_not_the_requested_one_is_refused(tmp_path, issue, reason):
    request = request_certificate("north", tmp_path)
    before = (tmp_path / "north.key").read_bytes()
    chain = tmp_path / "chain.pem"
    chain.write_bytes(issue(Authority(), request.read_bytes(), Authority("Other CA")))
    with pytest.raises(CredentialsError, match=reason):
        take_certificate(tmp_path / "north.key", chain)
    assert (tmp_path / "north.key").read_bytes() == before


def test_a_party_cannot_issue_certificates_with_its_own(tmp_path):
    """A chain whose issuer may not issue: CA:FALSE."""
    request = request_certificate("north", tmp_path)
    impostor = Authority("harbour", ca=False)
    chain = tmp_path / "chain.pem"
    chain.write_bytes(impostor.issue(request.read_bytes()) + impostor.pem)
    with pytest.raises(CredentialsError, match="CA:TRUE"):
        take_certificate(tmp_path / "north.key", chain)


def test_a_self_signed_certificate_signs_nothing_else(tmp_path):
    """Where it is trusted by itself, it must not vouch for a certificate in another's name."""
    certificate = x509.load_pem_x509_certificate(make_keys("north", tmp_path).public.certificates_pem)
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    uses = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (uses.digital_signature, uses.key_cert_sign) == (True, False)


# --- other organisations' files ---------------------------------------------------------------------------------------


def test_public_files_are_found_by_identity_whatever_they_are_called(tmp_path):
    keys = {name: make_keys(name, tmp_path / "made") for name in ("north", "harbour", "valley")}
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "a.pub").write_bytes(keys["north"].public.encode())
    (folder / "damaged.pub").write_bytes(b"{}")
    (folder / "north.pub").write_bytes(keys["valley"].public.encode())
    (tmp_path / "made" / "harbour.pub").rename(folder / "h")
    wanted = {"A": keys["north"].public.identity, "B": keys["harbour"].public.identity}
    found = find_public_files(wanted, [folder, folder / "h"])
    assert {name: public.name for name, public in found.items()} == {"A": "north", "B": "harbour"}
    with pytest.raises(CredentialsError, match=r"none for B in .*damaged.pub") as error:
        find_public_files(wanted, [folder])
    assert "none for A" not in str(error.value)


def test_the_latest_certificate_of_an_identity_counts_and_an_expired_one_is_named(tmp_path):
    old = make_keys("north", tmp_path, now=NOW - timedelta(days=40), days=41)
    (tmp_path / "north.pub").rename(tmp_path / "z-old.pub")
    new = renew_keys(tmp_path / "north.key", now=NOW, days=60)
    wanted = {"north": old.public.identity}
    assert find_public_files(wanted, [tmp_path]) == {"north": new.public}
    with pytest.raises(CredentialsError, match="expired"):
        find_public_files(wanted, [tmp_path], now=NOW + timedelta(days=90))


def test_no_public_key_file_exists_whose_parts_do_not_belong_together(tmp_path):
    first, second = make_keys("a", tmp_path).public, make_keys("b", tmp_path).public
    with pytest.raises(CredentialsError):
        PublicKeyFile(
            name="a",
            identity=first.identity,
            certificates_pem=second.certificates_pem,
            signature=first.signature,
        )
