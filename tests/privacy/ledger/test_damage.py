"""A damaged ledger says the truth or that it is damaged; it never says that less was spent, and never fails otherwise.

``CLOISTER_LONG=1`` damages every byte; without it, all that SQLite keeps for itself and a part of the rest.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest

from cloister.errors import LedgerError
from cloister.privacy.ledger import Ledger
from tests.privacy.ledger.helpers import BUDGET, CUSTOMERS, PATIENTS, gaussian, laplace, open_session

PAGE = 4096
LONG = os.environ.get("CLOISTER_LONG") == "1"


@pytest.fixture(scope="module")
def folder():
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


def grow(path, charges):
    """Make a ledger with every kind of entry; yields the file after each."""
    with Ledger(path) as ledger:
        ledger.set_cap(PATIENTS, BUDGET, reason="test")
        ledger.set_cap(None, BUDGET, reason="test")
        session = open_session(ledger, fingerprint="ab" * 32)
        other = open_session(ledger, CUSTOMERS, session=b"2")
        held = session.hold([gaussian(0.02)], what="a search")
        session.settle(held, [gaussian(0.01)])
        other.hold([laplace(0.1)], what="another")
        for n in range(charges):
            session.charge(gaussian(0.01, f"round {n}"))
            yield path.read_bytes()
        other.charge(laplace(0.1))
    yield path.read_bytes()


@pytest.fixture(scope="module")
def small(folder):
    return list(grow(folder / "small.ledger", 4))[-1]


@pytest.fixture(scope="module")
def large(folder):
    return list(grow(folder / "large.ledger", 60))


def read(path, content):
    """What a ledger with this content says; None if it says that it is damaged. Nothing else is raised."""
    path.write_bytes(content)
    try:
        with Ledger(path, create=False) as ledger:
            return ledger.summarise(), ledger.summarise_one(None)
    except LedgerError as error:
        assert str(error).endswith((".", ")"))
        return None
    finally:
        for one in path.parent.glob(f"{path.name}-*"):
            one.unlink()


def count_noticed(folder, truth, damaged):
    """Read each damaged file; returns how many were noticed and how many told the truth."""
    path = folder / "damaged.ledger"
    expected = read(path, truth)
    assert expected is not None
    noticed = told = 0
    for what, content in damaged:
        if content == truth:
            continue
        said = read(path, content)
        assert said in (None, expected), what
        noticed += said is None
        told += said is not None
    return noticed, told


def flip_bytes(content, chance):
    places = range(len(content)) if LONG else sorted({*range(100), *chance.sample(range(len(content)), 1500)})
    for at in places:
        for value in {content[at] ^ 1 << chance.randrange(8), chance.randrange(256)}:
            yield (at, value), content[:at] + bytes([value]) + content[at + 1 :]


def test_any_byte_that_is_changed_is_noticed_or_does_not_matter(folder, small):
    noticed, told = count_noticed(folder, small, flip_bytes(small, random.Random(1)))
    assert noticed > 100
    assert told > 100, "a page's unused bytes say nothing"


def test_every_byte_of_every_entry_matters(folder, small):
    """Where the text of an entry, its hash, the salt and the head stand."""
    chance, at = random.Random(2), small.index(b'{"kind":"charge"')
    text = range(at, at + 700)
    changed = [(n, small[:n] + bytes([small[n] ^ 1 << chance.randrange(8)]) + small[n + 1 :]) for n in text]
    noticed, told = count_noticed(folder, small, changed)
    assert (noticed, told) == (700, 0)


def test_any_length_is_noticed(folder, small):
    lengths = range(0, len(small), 1 if LONG else 97)
    cut = [(length, small[:length]) for length in lengths]
    noticed, told = count_noticed(folder, small, cut)
    assert told <= len(cut) * PAGE / len(small), "of the last page only what warnings are made of may be missing"
    assert noticed
    more = [(n, small + bytes(n)) for n in (1, 512, PAGE, 3 * PAGE)]
    count_noticed(folder, small, more)


def put(content, at, page):
    return content[: at * PAGE] + page + content[(at + 1) * PAGE :]


def move_pages(history):
    """One page in another's place, two swapped, one blank, or one as it was earlier: a write that went astray."""
    content = history[-1]
    pages = [content[start : start + PAGE] for start in range(0, len(content), PAGE)]
    for i in range(len(pages)):
        yield ("blank", i), put(content, i, bytes(PAGE))
        for j in range(len(pages)):
            yield ("copied", i, j), put(content, j, pages[i])
            yield ("swapped", i, j), put(put(content, j, pages[i]), i, pages[j])
    for age, earlier in enumerate(history[:-1]):
        for i in range(len(earlier) // PAGE):
            yield ("earlier", age, i), put(content, i, earlier[i * PAGE : (i + 1) * PAGE])


def test_pages_in_the_wrong_place_are_noticed(folder, large):
    assert len(large[-1]) >= 10 * PAGE
    noticed, told = count_noticed(folder, large[-1], move_pages(large))
    assert noticed > 500
    assert told < noticed / 2, "only pages that did not change may be as they were"


def test_a_page_that_went_astray_is_not_noticed_without_the_count(folder, large, monkeypatch):
    """What opened with 8 of 60 charges before: the last pages of entries as they were, and nothing that counts them."""
    monkeypatch.setattr("cloister.privacy.ledger.ledger.Ledger._check_end", lambda *arguments: None)
    monkeypatch.setattr("cloister.privacy.ledger.store.check_pages", lambda connection: None)
    with pytest.raises(AssertionError):
        count_noticed(folder, large[-1], move_pages(large))


def test_a_journal_that_was_damaged_after_a_kill_is_noticed_or_does_not_matter(folder):
    """A second fault on top of a first: the state before or after what was not acknowledged, or an error."""
    from tests.privacy.ledger.faults import Fault, find_vfs, run_with

    if find_vfs() is None:
        pytest.skip("needs SQLite as a shared library")
    path, journal = folder / "hot.ledger", folder / "hot.ledger-journal"
    *_, before = grow(path, 4)

    def charge(acknowledge):
        with Ledger(path) as ledger:
            open_session(ledger).charge(gaussian(0.01))

    said = [read(folder / "copy.ledger", before)]
    path.write_bytes(before)
    assert run_with(Fault(), charge)[0] == 0
    said.append(read(folder / "copy.ledger", path.read_bytes()))
    assert said[0] != said[1]
    chance = random.Random(3)
    for step in range(1, 40):
        path.write_bytes(before)
        journal.unlink(missing_ok=True)
        run_with(Fault(kind="half", step=step), charge)
        if not journal.exists():
            continue
        half, hot = path.read_bytes(), journal.read_bytes()
        for _ in range(400 if LONG else 15):
            at = chance.randrange(len(hot)) if hot else 0
            copy = folder / "copy.ledger"
            (folder / "copy.ledger-journal").write_bytes(hot[:at] + bytes([chance.randrange(256)]) + hot[at + 1 :])
            assert read(copy, half) in (None, *said)
