"""Measurements of the authors' code stand beside mixtures of the size that was measured, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cloister.errors import DataError
from cloister.privacy.units import Unit
from papers.feddp.datasets import MixtureSet
from papers.feddp.peers import FILE, load_peers

HEAD = "source,mode,method,eps_total,lloyd_steps,data_seed,seed,cost_per_point,excess_over_optimal,accuracy,time_s\n"
SILO = MixtureSet(clients=100, records_each=1000, unit=Unit.RECORD)


def write(folder: Path, *rows: str) -> Path:
    (folder / FILE).write_text(HEAD + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return folder


def test_the_best_number_of_steps_counts_by_its_mean(tmp_path: Path) -> None:
    peers = load_peers(
        write(
            tmp_path,
            "official,data,A,0.1,0,0,0,52,2.0,,",
            "official,data,A,0.1,0,0,1,54,4.0,,",
            "official,data,A,0.1,1,0,0,51,1.0,,",
            "official,data,A,0.1,1,0,1,59,9.0,,",
            "official,client,A,0.1,0,0,0,60,10.0,,",
            "official,data,B,inf,0,0,0,50,0.5,0.9,1.0",
        )
    )
    assert peers.find(SILO, "A", 0.1) == 3.0
    assert peers.find(SILO, "B", None) == 0.5
    assert peers.find(MixtureSet(clients=2000, records_each=50, unit=Unit.CLIENT), "A", 0.1) == 10.0


def test_nothing_stands_beside_what_was_not_measured(tmp_path: Path) -> None:
    peers = load_peers(write(tmp_path, "official,data,A,0.1,0,0,0,52,2.0,,"))
    assert peers.find(SILO, "A", 0.2) is None
    assert peers.find(SILO, "B", 0.1) is None
    assert peers.find(replace(SILO, records_each=200), "A", 0.1) is None
    assert load_peers(None).find(SILO, "A", 0.1) is None
    assert load_peers(tmp_path / "nowhere").find(SILO, "A", 0.1) is None


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("mode,method\ndata,A\n", encoding="utf-8")
    with pytest.raises(DataError, match="must have the columns mode, method"):
        load_peers(tmp_path)
