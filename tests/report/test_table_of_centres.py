"""A result as a table, a picture, HTML and labels, for those who work in Python or with spreadsheets."""

import csv
import io
import sys

import numpy as np
import pandas as pd
import pytest
from tests.report.examples import make_result
from tests.report.test_page import Reader

from cloister.columns import Column
from cloister.errors import DataError, MissingExtraError
from cloister.report.centres import encode_table, format_cells
from cloister.report.sizes import Sizes

NOISY = {
    "centre_noise": np.full((4, 4), 0.25),
    "sizes": Sizes(unit="records", clusters=(10.0, 20.0, 3.0, 0.0), noise=(1.5,) * 4, total=33.0, total_noise=2.0),
}


def rename(result, old, new):
    """The columns of a result, one of them under another name."""
    return tuple(
        Column(name=new if column.name == old else column.name, low=column.low, high=column.high)
        for column in result.columns
    )


class TestTable:
    @pytest.mark.parametrize("changes", [{}, NOISY], ids=["exact", "noisy"])
    def test_a_frame_holds_what_centres_csv_holds(self, changes):
        result = make_result(**changes)
        frame, rows = result.to_frame(), list(csv.DictReader(io.StringIO(encode_table(result).decode())))
        names = [column.name for column in result.columns]
        assert np.array_equal(frame[names].to_numpy(), result.centres)
        assert frame.index.name == "cluster"
        assert [row.pop("cluster") for row in rows] == ["0", "1", "2", "3"]
        assert [{name: float(cell) for name, cell in row.items()} for row in rows] == frame.to_dict("records")
        if changes:
            assert np.array_equal(frame[[f"{name} noise" for name in names]].to_numpy(), result.centre_noise)
            assert frame["size"].tolist() == list(result.sizes.clusters)

    def test_without_pandas_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'cloister\[frames\]'"):
            make_result().to_frame()


class TestNotebooks:
    @pytest.mark.parametrize("changes", [{}, NOISY], ids=["exact", "noisy"])
    def test_a_result_shows_the_blocks_of_its_page(self, changes):
        result = make_result(**changes)
        told = Reader(result._repr_html_()).text
        assert all(cell in told for row in format_cells(result) for cell in row)
        assert "What breaks it" in told
        assert ("±" in told) is bool(changes)


class TestUse:
    def test_in_one_line_it_says_what_it_is(self):
        assert len(repr(make_result(**NOISY))) < 120
        assert repr(make_result()).startswith("<Result 'clinics': k = 4, columns: 4, ")

    def test_records_are_labelled_as_the_command_does(self):
        result = make_result()
        frame = pd.DataFrame(result.centres[[2, 0, 3]], columns=[column.name for column in result.columns])
        assert result.predict(frame).tolist() == [2, 0, 3]
        assert result.predict(frame[frame.columns[::-1]]).dtype == np.int32
        with pytest.raises(DataError, match="got int"):
            result.predict(5)

    def test_the_picture_is_a_figure(self):
        assert type(make_result().plot()).__name__ == "Figure"
