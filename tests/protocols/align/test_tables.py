"""From tables to alignment files and back, and the refusal of jobs that were not aligned."""

import json
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cloister.data import open_table, read_ids
from cloister.errors import ConfigError, DataError
from cloister.protocols.align.alignment import Alignment, check_alignments, check_ids, decode_alignment
from cloister.protocols.align.terms import Mode
from cloister.sessions.alignment import align_ids, load_alignment, save_alignment
from tests.owners import told_to_owner
from tests.protocols.align.sessions import name_ids

IDS = ["b7", "a1", "c3"]


def cells(source, column="id"):
    return read_ids(source, column, label="party 'north'")


def test_every_kind_of_table_gives_its_ids_in_the_order_of_its_rows(tmp_path):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "id": IDS})
    table = pa.table({"id": IDS, "age": [1.0, 2.0, 3.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    pa.feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed")
    folder = tmp_path / "parts"
    folder.mkdir()
    pa.parquet.write_table(table.slice(0, 2), folder / "1.parquet")
    pa.parquet.write_table(table.slice(2), folder / "2.parquet")
    files = [tmp_path / name for name in ("t.csv", "t.tsv", "t.parquet", "t.arrow", "parts")]
    for source in (*files, str(files[0]), frame, table, pa.table({"id": pa.array(IDS).dictionary_encode()})):
        assert cells(source) == IDS
    for source in (*files, frame, table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches(2))):
        opened = open_table(source, bounds={"age": (0, 4)}, id_column="id", batch_rows=2)
        assert opened.id_cells == IDS
        assert np.allclose(np.concatenate(list(opened.raw_batches())).ravel(), [1, 2, 3], atol=1e-4)


def test_rows_are_those_of_the_table_that_is_clustered(tmp_path):
    """Blank lines are no rows, in either reading."""
    path = tmp_path / "t.csv"
    path.write_text("id,age\n\na,1\n\nb,2\nc,3\n\n")
    table = open_table(path, bounds={"age": (0, 4)}, id_column="id")
    assert table.id_cells == cells(path) == ["a", "b", "c"]
    assert table.check().records == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age,bmi\n1,2\n", "'id' is not among its 2 columns"),
        ("id,id\na,b\n", "2 times"),
        ("id,age\na,1\nCANARY\n", "1 row does not have as many cells"),
        ("id,age\na,1\nCANARY,1,2\nb,1\n", "1 row does not have as many cells"),
        ('id,age\n"CANARY,1\n', "quoted"),
        ("", "empty"),
    ],
)
def test_broken_files_are_refused_without_a_cell(text, says, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=says) as caught:
        cells(path)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("name", ["t.xlsx", "missing.csv", "t"])
def test_files_of_other_kinds_and_none_are_refused(name, tmp_path):
    for other in ("t.xlsx", "t"):
        (tmp_path / other).write_text("id\n")
    with pytest.raises(DataError, match="must"):
        cells(tmp_path / name)


def test_objects_without_columns_are_refused():
    for source in (np.zeros((2, 2)), {"id": IDS}, 7):
        with pytest.raises(DataError, match="must be a path, a pandas or polars DataFrame or an Arrow table"):
            cells(source)
    with pytest.raises(DataError, match="'id' is not among"):
        cells(pd.DataFrame({"ID": IDS}))


# --- alignments ------------------------------------------------------------------------------------------------------


def make(ids=None, mode=Mode.INTERSECTION, seed=1):
    ids = ids or {"north": name_ids(range(8)), "harbour": name_ids(range(4, 14))}
    return ids, dict(align_ids(ids, mode=mode, seed=seed).alignments)


def test_a_file_gives_the_alignment_back(tmp_path):
    for mode in Mode:
        _, alignments = make(mode=mode)
        path = tmp_path / "deep" / f"{mode.value}.json"
        save_alignment(alignments["north"], path)
        again = load_alignment(path)
        assert np.array_equal(again.rows, alignments["north"].rows)
        for name in ("mode", "digest", "records", "ids_sha256", "count"):
            assert getattr(again, name) == getattr(alignments["north"], name)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(ConfigError, match="exists"):
            save_alignment(again, path)
        save_alignment(again, path, overwrite=True)
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["intersection.json", "union.json"]


def test_the_file_is_what_the_documentation_says(tmp_path):
    _, alignments = make(mode=Mode.UNION)
    save_alignment(alignments["north"], tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["format"] == "cloister alignment"
    assert (document["version"], document["mode"], document["records"]) == (1, "union", 8)
    assert len(document["rows"]) == 14
    assert document["rows"].count(-1) == 6
    assert sorted(row for row in document["rows"] if row >= 0) == list(range(8))


def test_places_undo_rows():
    ids, alignments = make(mode=Mode.UNION)
    for name, alignment in alignments.items():
        assert alignment.rows[alignment.places].tolist() == list(range(len(ids[name])))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(version=2),
        lambda d: d.update(format="result"),
        lambda d: d.update(mode="both"),
        lambda d: d.update(digest="CANARY"),
        lambda d: d.update(records=3),
        lambda d: d.update(rows=[0, 0, 1, 2]),
        lambda d: d.update(rows=[-1, *d["rows"]]),
        lambda d: d.update(rows=["CANARY"]),
        lambda d: d.update(more=1),
        lambda d: d.pop("ids_sha256"),
    ],
)
def test_files_that_were_edited_are_refused(change, tmp_path):
    _, alignments = make()
    save_alignment(alignments["north"], tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    change(document)
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="cloister align") as caught:
        load_alignment(tmp_path / "a.json")
    assert "CANARY" not in str(caught.value)


def test_what_is_no_file_or_no_json_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cloister align"):
        load_alignment(tmp_path / "none.json")
    for raw in (b"", b"\xff", b"[" * 10**5, b"{}", b"id,age\n1,2\n"):
        with pytest.raises(ConfigError, match="must be an alignment"):
            decode_alignment(raw)


def test_alignments_of_one_session_pass():
    _, alignments = make()
    assert check_alignments(alignments, {"north": 8, "harbour": 10}, mode=Mode.INTERSECTION) == 4


def test_jobs_that_were_not_aligned_are_refused():
    ids, alignments = make()
    records = {name: len(of_party) for name, of_party in ids.items()}
    with pytest.raises(ConfigError, match=r"party 'harbour' has none.*cloister align"):
        check_alignments({"north": alignments["north"]}, records, mode=Mode.INTERSECTION)
    with pytest.raises(ConfigError, match=r"needs an alignment by union.*--mode union"):
        check_alignments(alignments, records, mode=Mode.UNION)
    _, others = make(seed=2)
    with pytest.raises(ConfigError, match=r"one digest.*Align all parties again"):
        check_alignments({**alignments, "harbour": others["harbour"]}, records, mode=Mode.INTERSECTION)
    with told_to_owner(DataError, r"'harbour' must have the 10 rows that were aligned; it has 11", party="harbour"):
        check_alignments(alignments, {**records, "harbour": 11}, mode=Mode.INTERSECTION)


def test_a_table_whose_rows_were_moved_is_refused():
    ids, alignments = make()
    check_ids(alignments["north"], ids["north"], label="north.csv")
    for changed in (ids["north"][::-1], ids["north"][:-1], [b"", *ids["north"][1:]]):
        with pytest.raises(DataError, match=r"in the same order.*align again"):
            check_ids(alignments["north"], changed, label="north.csv")


def test_an_alignment_holds_what_it_must():
    options = {"mode": Mode.UNION, "digest": "0" * 64, "ids_sha256": "0" * 64}
    Alignment(**options, records=2, rows=np.array([1, -1, 0]))
    for records, rows in ((3, [1, -1, 0]), (2, [1, 1, 0]), (2, [0, 2])):
        with pytest.raises(ConfigError):
            Alignment(**options, records=records, rows=np.array(rows))
