"""A journal: what was written is there after a kill, what was cut off is not, and damage is a typed error."""

import os

import pytest

from cloister.errors import JournalError
from cloister.runtime import journal as module
from cloister.runtime.journal import Journal

KEY, SESSION = bytes(range(32)), b"session"
ENTRIES = [b"first", b"", bytes(100), b"last"]


def reopen(path, key=KEY, session=SESSION):
    journal = Journal(path, key=key, session=session)
    journal.close()
    return journal.recovered


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path, key=KEY, session=SESSION)
    assert journal.recovered == []
    for entry in ENTRIES:
        journal.append(entry)
    journal.close()
    return path


def test_entries_are_there_in_order_and_more_can_follow(path):
    journal = Journal(path, key=KEY, session=SESSION)
    assert journal.recovered == ENTRIES
    journal.append(b"more")
    journal.close()
    assert reopen(path) == [*ENTRIES, b"more"]


def test_a_journal_that_was_cut_off_anywhere_holds_the_entries_before(path):
    whole = path.read_bytes()
    ends = [40 * (i + 1) + sum(16 + len(entry) for entry in ENTRIES[: i + 1]) for i in range(len(ENTRIES))]
    assert ends[-1] == len(whole)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        kept = sum(end <= length for end in ends)
        assert reopen(path) == ENTRIES[:kept]
        assert path.stat().st_size == ([0, *ends])[kept]


def test_what_takes_the_place_of_an_entry_that_was_cut_off_is_sealed_under_another_key(path):
    whole = path.read_bytes()
    last = whole[-(40 + 16 + len(ENTRIES[-1])) :]
    path.write_bytes(whole[:-1])
    journal = Journal(path, key=KEY, session=SESSION)
    journal.append(ENTRIES[-1])
    journal.close()
    again = path.read_bytes()[-len(last) :]
    assert again[:8] == last[:8]  # of the same length
    assert again[40 : 40 + len(ENTRIES[-1])] != last[40 : 40 + len(ENTRIES[-1])]


def test_every_byte_that_changes_is_noticed(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(JournalError, match="as its role wrote it"):
            reopen(path)
    assert path.read_bytes() == bytes(damaged)  # a journal that is refused is left as it is


def test_entries_that_change_places_are_noticed(path):
    whole = path.read_bytes()
    first, second = whole[:61], whole[61:117]
    for changed in (second + first + whole[117:], first + first + whole[117:], first + whole[117:]):
        path.write_bytes(changed)
        with pytest.raises(JournalError, match="as its role wrote it"):
            reopen(path)


@pytest.mark.parametrize("other", [{"key": bytes(32)}, {"session": b"another"}])
def test_a_journal_of_another_session_or_key_is_refused(path, other):
    with pytest.raises(JournalError, match="in this session and under its owner's key"):
        reopen(path, **other)


def test_nothing_of_an_entry_can_be_read_and_nobody_else_may_open_the_file(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path, key=KEY, session=SESSION)
    journal.append(b"a secret of twenty-five b")
    assert b"secret" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    journal.close()


def test_two_processes_cannot_use_one_journal(path):
    journal = Journal(path, key=KEY, session=SESSION)
    with pytest.raises(JournalError, match="one process at a time"):
        reopen(path)
    journal.close()
    assert reopen(path) == ENTRIES


def test_a_journal_that_is_wiped_is_gone_and_its_bytes_with_it(path):
    keeper = os.open(path, os.O_RDONLY)
    journal = Journal(path, key=KEY, session=SESSION)
    journal.wipe()
    assert not path.exists()
    assert not any(os.read(keeper, 10_000))
    os.close(keeper)


def test_a_power_cut_while_a_journal_is_wiped_leaves_a_whole_one_or_none(path, monkeypatch):
    """What was written and not synced is there or not."""
    synced, written = [path.read_bytes()], []
    real_write, real_sync = os.pwrite, os.fsync

    def write(file, data, offset):
        real_write(file, data, offset)
        written.append(path.read_bytes())

    def sync(file):
        real_sync(file)
        if path.exists():
            synced.append(path.read_bytes())

    monkeypatch.setattr(module.os, "pwrite", write)
    monkeypatch.setattr(module.os, "fsync", sync)
    Journal(path, key=KEY, session=SESSION).wipe()
    monkeypatch.undo()
    assert len({*synced, *written}) > 2
    for left in (*synced, *written):
        path.write_bytes(left)
        assert reopen(path) in (ENTRIES, [])


def test_a_full_disk_is_a_typed_error_and_the_entries_before_are_kept(path, monkeypatch):
    """The disk takes some bytes of the entry and then no more."""
    journal = Journal(path, key=KEY, session=SESSION)
    real, calls = os.write, []

    def write(file, data):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(file, bytes(data)[:50])

    monkeypatch.setattr(module.os, "write", write)
    with pytest.raises(JournalError, match="can be read and written; got: No space left on device"):
        journal.append(bytes(100))
    monkeypatch.undo()
    journal.close()
    assert reopen(path) == ENTRIES


def test_an_entry_counts_when_it_is_on_the_disk(path, monkeypatch):
    """Written, then synced: the other way round a power cut could take back what was sent on its account."""
    done = []
    real_write, real_sync = os.write, os.fsync
    monkeypatch.setattr(module.os, "write", lambda *args: done.append("write") or real_write(*args))
    monkeypatch.setattr(module.os, "fsync", lambda *args: done.append("sync") or real_sync(*args))
    journal = Journal(path, key=KEY, session=SESSION)
    assert done == ["sync", "sync"]  # the file, and its name in the folder
    journal.append(b"more")
    journal.close()
    assert done == ["sync", "sync", "write", "sync"]


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path):
    with pytest.raises(JournalError, match="can be read and written; got: No such file"):
        reopen(tmp_path / "none" / "journal")
