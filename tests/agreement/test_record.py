"""What a party can prove of a session: everything in its record is checked, and its ledger stays its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import msgspec
import pytest
from msgspec.structs import replace as with_fields

from cloister.agreement import (
    Consented,
    FileHash,
    Part,
    Record,
    commit,
    encode_session,
    open_ledger,
    sign_record,
    verify_result,
)
from cloister.agreement.record import decode_session, write_record
from cloister.credentials import consent_statement, derive_session
from cloister.credentials.statements import record_statement
from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError
from cloister.jobfile import parse_job
from cloister.privacy.ledger import Ledger, LedgerSession
from cloister.protocol import RESULT_VOTE, PublicInput, Votes
from cloister.report.folder import SESSION_FILE, write_result
from cloister.sessions.assembly import open_session
from tests.agreement.people import NAMES, make_people
from tests.report.examples import make_result

RUN = bytes(range(16))
CLUSTERING = derive_session(RUN, "clustering")


class RunOnDisk:
    """One run as north has it on its disk."""

    def __init__(self, folder):
        self.people = make_people(folder / "keys")
        self.text = write_job(self.people)
        self.job = parse_job(self.text)
        self.ledger = folder / "north.ledger"
        self.folder = folder / "result"
        with Ledger(self.ledger) as ledger:
            self.charge(ledger, bytes(16), "patients")  # another job's
            opening = open_ledger(self.charge(ledger, CLUSTERING, "patients"), SystemEntropy())
            self.charge(ledger, bytes([1] * 16), "patients")
        self.opening = opening
        result = make_result(
            name=self.job.name, columns=self.job.columns, centres=[[30.0, 20.0]] * 4, transcript_sha256=None
        )
        write_result(result, self.folder, sign=lambda files: encode_session(self.sign(self.make_record(files))))

    def charge(self, ledger, session, dataset):
        keys = tuple(self.people.keys[name].public.identity for name in NAMES)
        charges = open_session(self.job, keys, PublicInput(), session=session).charges
        held = LedgerSession(ledger, dataset=dataset, job=self.job.name, session=session, budget=self.job.budget)
        held.charge_all(charges.prepaid)
        return held

    def make_record(self, files):
        return Record(
            party="north",
            job=self.text,
            digest=self.job.digest.hex(),
            run=RUN.hex(),
            sessions=(Part(kind="clustering", session=CLUSTERING.hex()),),
            connection_version=1,
            program="0.1.0",
            transport="gRPC over TLS",
            consents=tuple(self.consent(name) for name in NAMES),
            outcome="finished",
            date="2026-01-31",
            files=tuple(FileHash(name=n, sha256=hashlib.sha256(c).hexdigest()) for n, c in files.items()),
            votes=self.vote(),
            ledger=commit(self.opening),
        )

    def consent(self, name, *, run=RUN, digest=None, by=None):
        statement = consent_statement(1, self.job.digest if digest is None else digest, run)
        signature = self.people.keys[by or name].identity.sign(*statement)
        return Consented(party=name, program="0.1.0", signature=signature)

    def vote(self, *, session=CLUSTERING, members=(1, 2, 3), statement=b"link", purpose=RESULT_VOTE):
        signatures = [self.people.keys[NAMES[m - 1]].identity.sign(purpose, session, statement) for m in members]
        return Votes(session=session, statement=statement, members=tuple(members), signatures=tuple(signatures))

    def sign(self, record, by="north"):
        return sign_record(record, self.people.keys[by].identity, self.opening)

    def read(self):
        return decode_session((self.folder / SESSION_FILE).read_bytes(), "session.json")

    def rewrite(self, *, opening=..., by="north", **changes):
        """What somebody with this key may claim."""
        session = self.read()
        record = with_fields(session.record, **changes)
        signature = self.people.keys[by].identity.sign(*record_statement(write_record(record)))
        kept = session.ledger if opening is ... else opening
        changed = with_fields(session, record=record, signature=signature, ledger=kept)
        (self.folder / SESSION_FILE).write_bytes(encode_session(changed))

    def verify(self, **options):
        return verify_result(self.folder, **({"job": self.job, "ledger": self.ledger} | options))


def write_job(people):
    job = people.job
    parties = "".join(f'[[parties]]\nname = "{p.name}"\nidentity = "{p.identity}"\n' for p in job.parties)
    columns = "".join(f"{c.name} = {{ low = {c.low}, high = {c.high} }}\n" for c in job.columns)
    return (
        f'name = "{job.name}"\n[clusters]\nk = {job.k}\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n[columns]\n{columns}'
        f'[coordinator]\nidentity = "{job.coordinator.identity}"\n{parties}'
    )


@pytest.fixture
def run(tmp_path):
    return RunOnDisk(tmp_path)


def refuted(verification):
    return [check.what for check in verification.checks if check.outcome == "refuted"]


def outcomes(verification):
    return {check.what: check.outcome for check in verification.checks}


def test_a_true_record_is_proved_in_every_point(run):
    assert run.people.job == replace(run.job, coordinator=run.people.job.coordinator)
    verification = run.verify()
    assert verification.holds
    assert set(outcomes(verification).values()) == {"proved"}
    assert len(verification.checks) == 15


def test_what_is_not_here_is_not_claimed(run):
    (run.folder / "centres.npz").unlink()
    verification = run.verify(job=None, ledger=None)
    shown = outcomes(verification)
    assert shown["the job is the one that you know"] == "not shown"
    assert shown["centres.npz is the file that was signed"] == "not shown"
    assert shown["the ledger holds what this session was charged, between these heads"] == "not shown"


def test_without_its_opening_a_record_says_nothing_of_the_ledger(run):
    session = run.read()
    (run.folder / SESSION_FILE).write_bytes(encode_session(with_fields(session, ledger=None)))
    verification = run.verify()
    assert verification.holds
    assert outcomes(verification)["the ledger's heads are those that were signed"] == "not shown"


def test_the_commitment_hides_the_ledger(run):
    """Two openings of one state have nothing in common; a verifier who guesses the state cannot confirm it."""
    with Ledger(run.ledger) as ledger:
        held = LedgerSession(ledger, dataset="patients", job="a", session=CLUSTERING, budget=run.job.budget)
        first, second = (open_ledger(held, SystemEntropy()) for _ in range(2))
    assert with_fields(first, salt="") == with_fields(second, salt="")
    assert commit(first) != commit(second)
    assert commit(with_fields(first, salt="00" * 32)) != commit(first)
    none = open_ledger(None, SystemEntropy())
    assert (none.session, none.charges) == ("", 0)
    assert commit(none) != commit(open_ledger(None, SystemEntropy()))
    text = msgspec.json.encode(run.read().record).decode()
    with Ledger(run.ledger) as ledger:
        for secret in (
            run.opening.before,
            run.opening.after,
            run.opening.salt,
            ledger.salt.hex(),
            "patients",
        ):
            assert secret not in text


def test_a_record_of_a_party_without_a_ledger(run):
    nothing = open_ledger(None, SystemEntropy())
    run.rewrite(opening=nothing, ledger=commit(nothing))
    verification = run.verify()
    assert verification.holds
    assert outcomes(verification)["what the session was charged"] == "not shown"


# --- lies -------------------------------------------------------------------------------------------------------------


def test_every_field_is_signed(run):
    """Whoever changes the file without the key is noticed, whatever is changed."""
    raw = json.loads((run.folder / SESSION_FILE).read_text())
    changes = {
        "party": "harbour",
        "digest": "00" * 32,
        "run": "00" * 16,
        "connection_version": 2,
        "program": "0.1.1",
        "transport": "pigeons",
        "outcome": "failed",
        "left": ["valley"],
        "date": "2026-01-30",
        "ledger": "00" * 32,
        "sessions": [],
        "consents": [],
        "files": [],
        "votes": None,
        "job": raw["record"]["job"] + "\n",
    }
    assert set(changes) == set(Record.__struct_fields__)
    for field, value in changes.items():
        changed = raw | {"record": raw["record"] | {field: value}}
        (run.folder / SESSION_FILE).write_text(json.dumps(changed))
        assert any("signed by the identity" in what for what in refuted(run.verify())), field


def test_somebody_else_cannot_sign_for_a_party(run):
    run.rewrite(by="harbour")
    assert refuted(run.verify()) == ["the record is signed by the identity of north in the job"]


def test_another_job_than_the_one_you_know_is_noticed(run, tmp_path):
    """An attacker can make a whole run of its own, with keys of its own: only the known job tells it apart."""
    fake = RunOnDisk(tmp_path / "fake")
    assert fake.verify().holds
    assert refuted(fake.verify(job=run.job)) == ["the job is the one that you know"]


@pytest.mark.parametrize(
    ("forge", "what"),
    [
        (lambda e: {"consents": (e.consent("north"), e.consent("harbour"))}, "every party of the job"),
        (lambda e: {"consents": tuple(e.consent(n) for n in ("harbour", "north", "valley"))}, "every party of the job"),
        (lambda e: {"consents": tuple(e.consent(n) for n in (*NAMES, "north"))}, "every party of the job"),
        (lambda e: {"consents": tuple(e.consent(n, by="north") for n in NAMES)}, "harbour has consented"),
        (lambda e: {"consents": tuple(e.consent(n, run=bytes(16)) for n in NAMES)}, "valley has consented"),
        (lambda e: {"consents": tuple(e.consent(n, digest=bytes(32)) for n in NAMES)}, "north has consented"),
        (lambda e: {"run": "00" * 16}, "the sessions are those of the run"),
        (lambda e: {"sessions": (Part(kind="clustering", session="00" * 16),)}, "the sessions are those of the run"),
        (lambda e: {"job": e.text.replace("k = 4", "k = 5")}, "the job's text has the digest"),
        (lambda e: {"job": "no job"}, "the job's text has the digest"),
        (lambda e: {"digest": replace(e.job, k=5).digest.hex()}, "the job's text has the digest"),
        (lambda e: {"party": "nobody"}, "signed by the identity of nobody"),
        (lambda e: {"votes": e.vote(members=(1,))}, "a quorum has signed the same sealed result: 1 of 3"),
        (lambda e: {"votes": e.vote(members=(1, 1, 1))}, "a quorum has signed the same sealed result: 0 of 3"),
        (lambda e: {"votes": e.vote(session=bytes(16))}, "a quorum has signed the same sealed result"),
        (lambda e: {"votes": e.vote(purpose="cloister consent")}, "a quorum has signed the same sealed result: 0 of 3"),
        (
            lambda e: {"votes": with_fields(e.vote(), members=(1, 2, 4))},
            "a quorum has signed the same sealed result: 2 of 3",
        ),
        (
            lambda e: {"votes": with_fields(e.vote(), statement=b"another")},
            "a quorum has signed the same sealed result: 0 of 3",
        ),
        (lambda e: {"votes": with_fields(e.vote(), signatures=e.vote().signatures[:2])}, "a quorum has signed"),
        (lambda e: {"files": e.read().record.files[:1]}, "the result's files are signed"),
        (lambda e: {"ledger": "00" * 32}, "the ledger's heads are those that were signed"),
    ],
)
def test_a_party_that_lies_about_others_is_refuted(run, forge, what):
    """It signs what it likes; what others signed it cannot make."""
    run.rewrite(**forge(run))
    assert any(what in one for one in refuted(run.verify())), refuted(run.verify())


def test_a_changed_result_is_noticed(run):
    path = run.folder / "result.json"
    path.write_text(path.read_text().replace("30.0", "31.0"))
    assert "result.json is the file that was signed" in refuted(run.verify())


def test_a_result_of_another_job_is_noticed(run):
    other = make_result(transcript_sha256=None)
    write_result(other, run.folder, overwrite=True, sign=lambda f: encode_session(run.sign(run.make_record(f))))
    assert refuted(run.verify()) == ["the result is that of the job"]


def test_a_record_cannot_point_out_of_its_folder(run):
    secret = run.folder.parent / "north.ledger"
    file = FileHash(name="../north.ledger", sha256=hashlib.sha256(secret.read_bytes()).hexdigest())
    run.rewrite(files=(*run.read().record.files, file))
    assert outcomes(run.verify())["../north.ledger is the file that was signed"] == "not shown"


# --- the ledger -------------------------------------------------------------------------------------------------------


def test_the_charges_of_a_session_are_found_between_others(run):
    with Ledger(run.ledger) as ledger:
        trace = ledger.trace(CLUSTERING.hex())
        assert trace is not None
        assert trace.charges == run.opening.charges
        assert trace.dataset == "patients"
        assert trace.spent == ledger.spent_by("patients", CLUSTERING.hex(), trace.unit)
        assert trace.before.number < trace.after.number < ledger.verify().number
        assert ledger.trace("ff" * 16) is None


def test_a_ledger_that_was_set_back_is_noticed(run, tmp_path):
    """A backup from before the session, brought back."""
    earlier = tmp_path / "earlier.ledger"
    with Ledger(earlier) as ledger:
        run.charge(ledger, bytes(16), "patients")
    what = "the ledger holds what this session was charged, between these heads"
    assert refuted(run.verify(ledger=earlier)) == [what]
    assert refuted(run.verify(ledger=tmp_path / "none.ledger")) == [what]


def test_a_ledger_that_opens_to_something_else_is_noticed(run):
    lie = with_fields(run.opening, charges=0)
    run.opening = lie
    run.rewrite(opening=lie)
    assert "the ledger's heads are those that were signed" in refuted(run.verify())


# --- files ------------------------------------------------------------------------------------------------------------


def test_the_record_is_for_its_owner(run):
    assert (run.folder / SESSION_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"cloister_session": 2}', None])
def test_what_is_no_record_is_refused(run, content):
    path = run.folder / SESSION_FILE
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"session\.json"):
        run.verify()


def test_every_cut_or_flipped_record_is_refused_or_refuted(run):
    path = run.folder / SESSION_FILE
    raw, good = path.read_bytes(), run.read()
    for place in range(0, len(raw), 11):
        for changed in (raw[:place], raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]):
            path.write_bytes(changed)
            try:
                verification = run.verify(ledger=None)
            except ConfigError:
                continue
            assert not verification.holds or run.read() == good
