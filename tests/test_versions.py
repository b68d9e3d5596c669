"""Every kind of file carries a version; one of another version is read, or refused with what to do."""

import json
import re
import sqlite3
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cloister.agreement import give_consent, read_consent, write_consent
from cloister.agreement.record import decode_session
from cloister.credentials import load_keys, load_public, make_keys
from cloister.deployment.record import RunRecord
from cloister.deployment.run_files import Begun, RunFiles
from cloister.errors import CloisterError, ConfigError, CredentialsError, JournalError, LedgerError, PolicyError
from cloister.jobfile import load_job, parse_job
from cloister.privacy.ledger import Ledger
from cloister.protocols.align import Mode
from cloister.protocols.align.alignment import Alignment, decode_alignment, encode_alignment
from cloister.report.folder import read_result
from cloister.runtime.journal import Journal
from cloister.runtime.resuming import Memory
from tests.agreement.people import make_people
from tests.agreement.test_record import write_job

DOCUMENT = (Path(__file__).parents[1] / "docs" / "deploy.md").read_text()
REMEDY = r"\. (Use|Update|Restore|Make|Ask|Finish|See|Run|It was not written|Align|This role cannot go on)"


def bump(path, key):
    """Make it one of the next version."""
    values = json.loads(path.read_text())
    values[key] += 1
    path.write_text(json.dumps(values))


def job_file(folder):
    path = folder / "job.toml"
    path.write_text("version = 2\n" + write_job(make_people(folder)))
    load_job(path)


def result(folder):
    (folder / "result.json").write_text('{"schema": 3, "something": "new"}')
    read_result(folder)


def session_record(folder):
    decode_session(b'{"cloister_session": 2, "something": "new"}', "session.json")


def ledger(folder):
    path = folder / "north.ledger"
    Ledger(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    Ledger(path)


def run_journal(folder):
    write_newer_run(folder)
    RunFiles(folder, key=bytes(32), job=bytes(32), role="north")


def write_newer_run(folder):
    files = RunFiles(folder, key=bytes(32), job=bytes(32), role="north")
    files._journal.append(msgspec.msgpack.encode([0, 2, bytes(16), "", "something new"]))
    (files.folder / "clustering").write_bytes(b"of the newer version")
    files.close()


def role_journal(folder):
    options = {"key": bytes(32), "session": bytes(16)}
    journal = Journal(folder / "clustering", **options)
    journal.append(msgspec.msgpack.encode([2, bytes(32)]))
    journal.close()
    Memory(folder / "clustering", **options)


def consent(folder):
    people = make_people(folder)
    path = folder / "north.consent"
    write_consent(give_consent(people.keys["north"].identity, people.job, "north"), path)
    bump(path, "cloister_consent")
    read_consent(path)


def private_key(folder):
    make_keys("north", folder)
    bump(folder / "north.key", "cloister_private_keys")
    load_keys(folder / "north.key")


def public_key(folder):
    make_keys("north", folder)
    bump(folder / "north.pub", "cloister_public_key")
    load_public(folder / "north.pub")


def alignment(folder):
    made = Alignment(mode=Mode.INTERSECTION, digest="ab" * 32, records=3, rows=np.arange(3), ids_sha256="cd" * 32)
    decode_alignment(encode_alignment(made).replace(b'"version":1', b'"version":2'))


OTHERS = {  # as docs/deploy.md names them
    "job file": (job_file, ConfigError),
    "`result.json`": (result, ConfigError),
    "`session.json`": (session_record, ConfigError),
    "ledger": (ledger, LedgerError),
    "journal of a run": (run_journal, JournalError),
    "journal of a role": (role_journal, JournalError),
    "consent": (consent, PolicyError),
    "`NAME.key`": (private_key, CredentialsError),
    "`NAME.pub`": (public_key, CredentialsError),
    "alignment": (alignment, ConfigError),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_of_another_version_is_refused_with_what_to_do(kind, tmp_path):
    make, error = OTHERS[kind]
    with pytest.raises(error) as caught:
        make(tmp_path)
    assert re.search(r"version|schema|be 1,", str(caught.value)), caught.value
    assert re.search(REMEDY, str(caught.value)), caught.value
    assert isinstance(caught.value, CloisterError)


def test_a_run_of_another_version_can_be_given_up_as_its_error_says(tmp_path):
    write_newer_run(tmp_path)
    files = RunFiles(tmp_path, key=bytes(32), job=bytes(32), role="north", anew=True)
    assert files.run is None
    assert [file.name for file in files.folder.iterdir()] == ["run"]
    with pytest.raises(JournalError, match="another has it open"):  # not while it runs
        RunFiles(tmp_path, key=bytes(32), job=bytes(32), role="north", anew=True)
    files.write(Begun(1, bytes(16), ""))
    files.close()
    assert RunFiles(tmp_path, key=bytes(32), job=bytes(32), role="north").run is not None


def test_the_guide_names_every_kind_of_file():
    rows = re.findall(r"^\| ([^|]+) \| \d", DOCUMENT.partition("Every file says")[2].partition("## ")[0], re.MULTILINE)
    assert set(rows) == {*OTHERS, "`run-NAME.json`"}


def test_a_job_file_without_a_version_is_of_the_first_and_has_the_same_digest(tmp_path):
    text = write_job(make_people(tmp_path))
    assert parse_job(text).digest == parse_job("version = 1\n" + text).digest


def test_the_coordinators_record_has_a_version():
    assert RunRecord.__struct_fields__[0] == "cloister_run"
