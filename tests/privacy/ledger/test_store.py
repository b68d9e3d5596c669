"""The ledger's file: it only grows, notices edits, and is never mistaken for another."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import stat

import pytest

from cloister.errors import LedgerError
from cloister.privacy.ledger import Ledger
from tests.privacy.ledger.helpers import BUDGET, PATIENTS, gaussian, open_session


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    with Ledger(path) as opened:
        yield opened


class TestTrust:
    def edit(self, path, *statements):
        """Do what the triggers forbid."""
        with sqlite3.connect(path) as connection:
            query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = connection.execute(query).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(statement)
            for _, text in triggers:
                connection.execute(text)
        connection.close()

    @pytest.fixture
    def filled(self, path):
        with Ledger(path) as ledger:
            ledger.set_cap(PATIENTS, BUDGET, reason="test")
            for n in range(4):
                open_session(ledger).charge(gaussian(0.01, f"round {n}"))
            self.heads = [json.loads(line).get("chain") for line in ledger.export()]
        return path

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entry SET text = replace(text, 'round', 'roune')",
            "DELETE FROM entry",
            "INSERT INTO entry VALUES (99, '', '')",
            "INSERT OR REPLACE INTO entry VALUES (2, '', '')",
            "UPDATE head SET number = 4",
            "UPDATE head SET chain = ''",
            "DELETE FROM head",
            "UPDATE ledger SET salt = x'00'",
            "DELETE FROM ledger",
        ],
    )
    def test_the_file_refuses_changes(self, filled, statement):
        connection = sqlite3.connect(filled)
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        connection.close()
        with Ledger(filled) as ledger:
            assert ledger.verify().number == 5

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entry SET text = replace(text, 'round 1', 'round 7')",
            "UPDATE entry SET text = replace(text, '\"rho\":0.01', '\"rho\":0.00')",
            "DELETE FROM entry WHERE number = 3",
            "DELETE FROM entry WHERE number = 1",
            "UPDATE entry SET chain = lower(hex(randomblob(32))) WHERE number = 5",
            "INSERT INTO entry SELECT 6, text, chain FROM entry WHERE number = 5",
            "UPDATE ledger SET salt = zeroblob(32)",
            "UPDATE ledger SET salt = 'text'",
            "DELETE FROM ledger",
            "DELETE FROM head",
            "UPDATE head SET number = 6",
            "UPDATE head SET number = 'five'",
            "UPDATE head SET chain = ''",
            "DROP TABLE seen",
            "UPDATE entry SET text = x'ff' WHERE number = 2",
            "UPDATE entry SET chain = 7 WHERE number = 2",
        ],
    )
    def test_an_edit_is_noticed_when_the_ledger_is_opened(self, filled, statement):
        self.edit(filled, statement)
        with pytest.raises(LedgerError, match="or damaged"):
            Ledger(filled)

    def test_an_edit_is_noticed_while_the_ledger_is_open(self, filled):
        with Ledger(filled) as ledger:
            self.edit(filled, "DELETE FROM entry WHERE number = 5")
            with pytest.raises(LedgerError, match="must only grow"):
                open_session(ledger).charge(gaussian(0.01))

    def test_missing_last_entries_are_noticed(self, filled):
        self.edit(filled, "DELETE FROM entry WHERE number = 5")
        with pytest.raises(LedgerError, match="must hold the 5 entries that it says it has; it holds 4"):
            Ledger(filled)

    def test_a_file_that_was_set_back_is_noticed_with_a_head_only(self, filled):
        set_back = "UPDATE head SET number = 4, chain = (SELECT chain FROM entry WHERE number = 4)"
        self.edit(filled, "DELETE FROM entry WHERE number = 5", set_back)
        with Ledger(filled) as ledger:
            assert ledger.verify().number == 4
            assert ledger.verify(head=self.heads[3]).number == 4
            with pytest.raises(LedgerError, match="is not among its 4 entries"):
                ledger.verify(head=self.heads[5])

    def test_a_truncated_file_is_noticed(self, filled):
        filled.write_bytes(filled.read_bytes()[:-4096])
        with pytest.raises(LedgerError):
            Ledger(filled)

    def test_flipped_bytes_are_noticed_anywhere_in_the_entries(self, filled):
        content = filled.read_bytes()
        for needle in (b"round 3", b'"rho":', self.heads[4].encode()):
            at = content.index(needle)
            filled.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            with pytest.raises(LedgerError):
                Ledger(filled)

    def test_a_replaced_file_is_not_charged(self, filled, tmp_path):
        with Ledger(filled) as ledger, Ledger(tmp_path / "fresh.db") as fresh:
            fresh.path.rename(filled)
            with pytest.raises(LedgerError, match="it was replaced"):
                open_session(ledger).charge(gaussian(0.01))

    def test_a_deleted_file_is_not_charged(self, filled):
        with Ledger(filled) as ledger:
            filled.unlink()
            with pytest.raises(LedgerError, match="there is none"):
                open_session(ledger).charge(gaussian(0.01))

    def test_an_export_can_be_checked_by_anyone_and_holds_no_salt(self, filled):
        with Ledger(filled) as ledger:
            lines = list(ledger.export())
            salt = ledger.salt
        assert salt.hex() not in "".join(lines)
        chain = json.loads(lines[0])["start"]
        for line in lines[1:]:
            text = line[line.index('"entry":') + len('"entry":') : -1]
            chain = hashlib.sha256((chain + text).encode()).hexdigest()
            assert json.loads(line)["chain"] == chain
        assert json.loads(lines[0])["head"] == chain


class TestFiles:
    def test_salts_are_random_and_the_file_is_its_owners(self, tmp_path):
        with Ledger(tmp_path / "a.db") as a, Ledger(tmp_path / "b.db") as b:
            assert len(a.salt) == 32
            assert a.salt != b.salt
            assert stat.S_IMODE(a.path.stat().st_mode) == 0o600

    def test_the_file_waits_for_the_disk(self, ledger):
        with ledger._store.transaction(write=False) as transaction:
            setting = {
                name: transaction._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "busy_timeout")
            }
        assert setting == {"journal_mode": b"delete", "synchronous": 3, "busy_timeout": 30_000}

    def test_opening_leaves_no_litter(self, tmp_path):
        Ledger(tmp_path / "a.db").close()
        assert [file.name for file in tmp_path.iterdir()] == ["a.db"]

    def test_a_missing_ledger_is_not_created_unasked(self, path):
        with pytest.raises(LedgerError, match="there is none"):
            Ledger(path, create=False)
        assert not path.exists()

    def test_a_missing_folder_is_an_error(self, tmp_path):
        with pytest.raises(LedgerError, match=r"folder must exist; there is no .*nowhere"):
            Ledger(tmp_path / "nowhere" / "ledger.db")

    @pytest.mark.parametrize("content", [b"", b"age,bmi\n31,22\n" * 200])
    def test_another_file_is_refused_and_left_alone(self, path, content):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="must be a"):
            Ledger(path)
        assert path.read_bytes() == content

    def test_a_folder_is_refused(self, tmp_path):
        with pytest.raises(LedgerError):
            Ledger(tmp_path)

    def test_another_sqlite_file_is_refused(self, path):
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        with pytest.raises(LedgerError, match="must be a ledger"):
            Ledger(path)

    def test_a_newer_schema_is_refused(self, path):
        Ledger(path).close()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 3")
        connection.close()
        with pytest.raises(LedgerError, match="must have schema 2; got 3"):
            Ledger(path)
