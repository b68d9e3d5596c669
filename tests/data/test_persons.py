"""Which records of a person count: at most so many of each, decided by nobody else's records."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.columns import Column
from cloister.data import open_table
from cloister.data import persons as module
from cloister.data.persons import PersonCheck, choose_records
from cloister.errors import DataError, LocalProtocolError

COLUMNS = (Column(name="x", low=0, high=100), Column(name="y", low=0, high=100))
KEY = bytes(range(32))


def make_table(rows, **options):
    frame = pd.DataFrame(rows, columns=["who", "x", "y"])
    return open_table(frame, COLUMNS, id_column="who", may_be_empty=True, **options)


def choose(rows, most=1, key=KEY, batch_rows=None, **options):
    """The rows that count, each as (ID as it is stored, x, y)."""
    table = make_table(rows, batch_rows=batch_rows)
    chosen = choose_records(table, most=most, key=key, **options)
    return [row for row, counts in zip(rows, chosen.counts, strict=True) if counts]


def of_others(rows, person):
    return sorted(row for row in rows if row[0] != person)


people = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 3)), max_size=40)
keys = st.binary(min_size=32, max_size=32)
sizes = st.integers(1, 3)


@settings(deadline=None, max_examples=60)
@given(rows=people, person=st.integers(0, 6), most=sizes, key=keys, batch=st.integers(1, 9), data=st.data())
def test_a_person_more_or_less_changes_nobody_elses_rows(rows, person, most, key, batch, data):
    """Whatever the order of rows and wherever batches end: so it is at each party, whose tables are chosen apart."""
    without = data.draw(st.permutations([row for row in rows if row[0] != person]))
    kept = choose(data.draw(st.permutations(rows)), most, key, batch)
    assert of_others(kept, person) == sorted(choose(without, most, key, data.draw(st.integers(1, 9))))
    assert len(kept) - len(of_others(kept, person)) == min(most, sum(row[0] == person for row in rows))


@settings(deadline=None, max_examples=40)
@given(rows=people, most=sizes, key=keys, entries_most=st.integers(1, 20))
def test_it_is_the_same_choice_however_little_memory_there_is(rows, most, key, entries_most):
    assert choose(rows, most, key, 4, entries_most=entries_most) == choose(rows, most, key)


def test_persons_that_do_not_fit_are_left_for_another_reading(monkeypatch):
    rows = [(number, number % 7, 0) for number in range(200)]
    table = make_table(rows)
    readings, read = [], table.identified_batches
    monkeypatch.setattr(table, "identified_batches", lambda: readings.append(1) or read())
    chosen = choose_records(table, most=1, key=KEY, entries_most=16)
    assert chosen.counts.all()
    assert 200 / 16 <= len(readings) < 200


def test_which_record_counts_is_even():
    rows = [(number, place, 0) for number in range(2000) for place in (10, 20, 30, 40)]
    counts = np.bincount([row[1] for row in choose(rows)], minlength=50)[[10, 20, 30, 40]]
    assert counts.sum() == 2000
    assert (abs(counts - 500) < 5.5 * np.sqrt(2000 * 0.25 * 0.75)).all()


def test_another_key_makes_another_choice():
    rows = [(number, place, 0) for number in range(50) for place in (10, 20)]
    assert choose(rows) != choose(rows, key=bytes(32))


@pytest.mark.parametrize(
    "same", [(" 7", "7"), ("7.0", "7"), ("7.", 7), (7.0, "7"), (np.int64(7), "7 "), ("e\u0301", "\u00e9")]
)
def test_spellings_of_one_id_are_one_person(same):
    assert len(choose([(one, 10 * place, 0) for place, one in enumerate(same)])) == 1


@pytest.mark.parametrize(
    "other", [("7", "07"), ("a7", "A7"), ("7", "7.5"), ("7", "70"), ("7a", "7.0a"), ("7.10", "7.1")]
)
def test_other_ids_are_other_persons(other):
    assert len(choose([(one, 10 * place, 0) for place, one in enumerate(other)])) == 2


@pytest.mark.parametrize("cell", ["", "  ", None, float("nan"), "NaN", "NULL", "<NA>", "7\u200b", 2.0**60, True, b"7"])
def test_a_row_without_an_id_is_refused_and_not_quoted(cell):
    check = PersonCheck("who")
    check.see(["1", "2"])
    check.see([cell, "3"])
    with pytest.raises(DataError, match=r"1 cell.* \(row 3\)") as caught:
        check.require_all("party 'a'")
    assert "200b" not in str(caught.value)
    assert "1152921504606846976" not in str(caught.value)


def test_ids_of_a_file_are_not_kept_in_memory(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,x,y\n" + "".join(f"p{row % 50},{row % 90},1\n" for row in range(500)))
    seen = []
    options = {"id_column": "who", "batch_rows": 64, "memory_budget_bytes": 0}
    table = open_table(path, COLUMNS, see_ids=seen.append, **options)
    assert table.check().records == 500
    assert [len(batch) for batch in seen] == [64] * 7 + [52]
    assert table.id_cells == []
    chosen = choose_records(table, most=2, key=KEY)
    assert chosen.counts.sum() == 100
    assert sum(map(len, chosen.batches())) == 100
    whole = choose_records(open_table(path, COLUMNS, id_column="who"), most=2, key=KEY)
    assert np.array_equal(chosen.counts, whole.counts)


def test_a_stream_is_chosen_from_after_it_was_read():
    pa = pytest.importorskip("pyarrow")
    arrow = pa.table({"who": [str(row % 5) for row in range(40)], "x": np.arange(40.0), "y": np.zeros(40)})
    seen = []
    stream = open_table(arrow.to_reader(max_chunksize=7), COLUMNS, id_column="who", batch_rows=8, see_ids=seen.append)
    chosen = choose_records(stream, most=1, key=KEY)
    assert [cell for batch in seen for cell in batch] == [str(row % 5) for row in range(40)]
    assert chosen.counts.sum() == 5


def test_records_are_those_of_the_table_that_was_chosen_from():
    chosen = choose_records(make_table([(1, 2, 3), (2, 3, 4)]), most=1, key=KEY)
    chosen.counts = chosen.counts[:1]
    with pytest.raises(LocalProtocolError, match="others"):
        list(chosen.batches())


def test_an_empty_table_has_nobody():
    assert list(choose_records(make_table([]), most=1, key=KEY).batches()) == []


# --- the traps: each mutant dies of the property above ----------------------------------------------------------------


def count_per_batch(table, *, most, key, entries_most=None):
    parts = []
    for values, cells in table.identified_batches():
        entries = module._mark(values, cells, 0, key)
        smallest = module._Smallest(most, 0, 1000)
        smallest.add(entries)
        parts.append(np.isin(np.arange(len(values)), smallest.rows()))
    return module.PersonRecords(table, np.concatenate(parts))


def choose_by(order):
    """Keep the first of each person in some order of all rows."""

    def choose_first(table, *, most, key, entries_most=None):
        values = np.concatenate([values for values, _ in table.identified_batches()])
        names = [cell for _, cells in table.identified_batches() for cell in cells]
        counts, seen = np.zeros(len(values), dtype=bool), {}
        for row in order(values):
            seen[names[row]] = seen.get(names[row], 0) + 1
            counts[row] = seen[names[row]] <= most
        return module.PersonRecords(table, counts)

    return choose_first


def shuffled(values):
    return np.random.default_rng(1).permutation(len(values))


def numbered_when_sorted(values):
    return np.lexsort(values.T)[shuffled(values)]


MUTANTS = {
    "persons counted per batch": count_per_batch,
    "chosen by reading order": choose_by(shuffled),
    "chosen by sorting the rows": choose_by(numbered_when_sorted),
    "the first row of each": choose_by(lambda values: range(len(values))),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_choice_that_others_change_is_noticed(mutant, monkeypatch):
    rows = [(number % 7, number, 0) for number in range(70)]
    monkeypatch.setattr("tests.data.test_persons.choose_records", MUTANTS[mutant])
    kept = choose(rows, batch_rows=16)
    left = choose([row for row in rows if row[0] != 3], batch_rows=16)
    moved = choose(rows[::-1], batch_rows=16)
    is_sound = of_others(kept, 3) == sorted(left) and sorted(moved) == sorted(kept) and len(kept) == 7
    assert not is_sound


def test_the_sound_choice_passes_what_the_mutants_fail():
    rows = [(number % 7, number, 0) for number in range(70)]
    kept = choose(rows, batch_rows=16)
    assert of_others(kept, 3) == sorted(choose([row for row in rows if row[0] != 3], batch_rows=16))
    assert sorted(choose(rows[::-1], batch_rows=16)) == sorted(kept)
    assert len(kept) == 7
