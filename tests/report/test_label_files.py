"""Files of labels: for their owner's eyes, whole or not at all, never replaced unasked."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from tests.report.examples import make_result

from cloister.errors import ConfigError
from cloister.report.folder import write_result
from cloister.report.labels import PartyLabels, check_label_folder, write_label_folder

OWN = PartyLabels(party="north", key_name="who", keys=["plain", "a,b", 'say "x"', 7], labels=np.array([0, 1, 2, 0]))


def test_a_result_folder_keeps_labels_apart_and_its_owner_alone_reads_them(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = write_result(make_result(), tmp_path / "r", labels=[OWN])
    finally:
        os.umask(before)
    path = folder / "labels-north.csv"
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [["who", "label"], ["plain", "0"], ["a,b", "1"], ['say "x"', "2"], ["7", "0"]]
    assert "plain" not in (folder / "result.json").read_text()
    # An earlier result with labels may be replaced, and its labels go with it.
    write_result(make_result(), folder, overwrite=True)
    assert not path.exists()


def test_a_folder_of_labels_is_not_replaced_unasked(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "labels"
    check_label_folder(folder, ["north"], overwrite=False)
    assert not folder.exists()  # nothing is left by a check
    (path,) = write_label_folder([OWN], folder, overwrite=False)
    assert path == folder / "labels-north.csv"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="which exists"):
        check_label_folder(folder, ["south", "north"], overwrite=False)
    check_label_folder(folder, ["south"], overwrite=False)
    write_label_folder([OWN], folder, overwrite=True)
    assert [entry.name for entry in folder.iterdir()] == ["labels-north.csv"]


def test_a_file_is_no_folder_and_labels_need_keys(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(ConfigError, match="can be written to"):
        check_label_folder(taken, ["north"], overwrite=True)
    assert taken.read_text() == "mine"
    with pytest.raises(ConfigError, match="must come with a key"):
        PartyLabels(party="north", key_name="row", keys=[1], labels=np.array([0, 1]))
    assert "[0" not in repr(OWN)
    assert "plain" not in repr(OWN)
