"""What makes two IDs equal, and what is no ID: rows are named, cells never."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import ConfigError, DataError
from cloister.protocols.align.identifiers import normalise_ids
from cloister.protocols.align.terms import NormalForm

TEXT, INTEGER, RAW = NormalForm(), NormalForm(kind="integer"), NormalForm(kind="raw")


def normalise(cells, form=TEXT):
    return normalise_ids(cells, form, label="party 'north'", column="id")


@pytest.mark.parametrize(
    ("form", "one", "other", "equal"),
    [
        (TEXT, 7, "7", True),
        (TEXT, np.int64(7), 7, True),
        (TEXT, np.uint8(200), "200", True),
        (TEXT, "7", "007", False),
        (TEXT, "a", "A", False),
        (NormalForm(ignore_case=True), "Straße", "STRASSE", True),
        (NormalForm(trim=True), " a1 ", "a1", True),
        (TEXT, "é", "e\u0301", True),  # one character, or a letter and an accent
        (TEXT, "a b", "a  b", False),
        (INTEGER, "007", 7, True),
        (INTEGER, "+7", "7", True),
        (INTEGER, "-0", "0", True),
        (INTEGER, "-7", "7", False),
        (INTEGER, "0" * 50 + "1" * 5000, "1" * 5000, True),
        (NormalForm(kind="integer", trim=True), " 7", "07 ", True),
        (RAW, b"\x00\xff", bytearray(b"\x00\xff"), True),
        (RAW, "é", "é".encode(), True),
        (RAW, " a", "a", False),
        (RAW, "é", "e\u0301", False),
    ],
)
def test_equal_ids_have_equal_forms(form, one, other, equal):
    assert (normalise([one], form) == normalise([other], form)) is equal


@given(st.lists(st.integers(-(10**30), 10**30), unique=True), st.sampled_from([TEXT, INTEGER]))
def test_different_integers_stay_different(numbers, form):
    ids = normalise(numbers, form)
    assert len(set(ids)) == len(numbers)
    assert ids == normalise([str(number) for number in numbers], form)


@pytest.mark.parametrize(
    ("form", "bad", "says"),
    [
        (TEXT, "", "empty"),
        (TEXT, "  ", "empty"),
        (TEXT, None, "empty"),
        (TEXT, float("nan"), "empty"),
        (TEXT, np.float32("nan"), "empty"),
        (TEXT, pd.NA, "empty"),
        (TEXT, pd.NaT, "empty"),
        (TEXT, " CANARY", "blanks"),
        (TEXT, "CANARY\u00a0", "blanks"),
        (TEXT, "CANA\u200bRY", "invisible"),
        (TEXT, "\ufeffCANARY", "invisible"),
        (TEXT, "CANA\tRY", "invisible"),
        (TEXT, 61.8033, "neither text nor a whole"),
        (TEXT, True, "neither text nor a whole"),
        (TEXT, b"CANARY", "neither text nor a whole"),
        (TEXT, datetime.date(1961, 8, 3), "neither text nor a whole"),
        (TEXT, decimal.Decimal("61.8033"), "neither text nor a whole"),
        (INTEGER, "CANARY", "not a whole number"),
        (INTEGER, "61.8033", "not a whole number"),
        (INTEGER, "1_000", "not a whole number"),
        (INTEGER, "٧", "not a whole number"),  # a digit of another script
        (RAW, 618033, "neither text nor a whole"),
        (RAW, b"", "empty"),
        (RAW, "", "empty"),
    ],
)
def test_what_is_no_id_is_refused_by_row_and_reason(form, bad, says):
    good = ["11", "12"] if form.kind == "integer" else ["a", "b"]
    with pytest.raises(DataError, match=rf"column 'id'; got 1 cell [^(]*{says}[^(]*\(row 3\)") as caught:
        normalise([*good, bad, "13"], form)
    assert not any(word in str(caught.value) for word in ("CANARY", "61.8", "618033", "1961"))


def test_repeated_ids_are_refused_after_they_were_made_equal():
    with pytest.raises(DataError, match=r"2 cells with the ID of an earlier row \(rows 3, 5\)") as caught:
        normalise(["CANARY", "b", "canary", "d", "CANARY"], NormalForm(ignore_case=True))
    assert "CANARY" not in str(caught.value).upper().replace("IGNORE_CASE", "")
    with pytest.raises(DataError, match="earlier row"):
        normalise(["7", "07"], INTEGER)


def test_all_faults_are_told_at_once_and_long_lists_of_rows_are_cut():
    with pytest.raises(DataError) as caught:
        normalise(["", "a", None, "a", " c", *[""] * 20])
    assert "22 cells empty (rows 1, 3, 6, 7, 8 and 17 more)" in str(caught.value)
    assert "1 cell with the ID of an earlier row (row 4)" in str(caught.value)
    assert "1 cell with blanks at either end (row 5)" in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"kind": "hex"}, {"kind": "raw", "trim": True}, {"kind": "integer", "ignore_case": True}]
)
def test_forms_that_cannot_be_are_refused(options):
    with pytest.raises(ConfigError):
        NormalForm(**options)
