"""Data sets are what their values say; bounds come from the server's points alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister.privacy.units import Unit
from papers.feddp.datasets import CensusSet, MixtureSet, QuestionSet, load_records, load_study
from tests.papers.data.test_census import write_census
from tests.papers.data.test_questions import write_questions

SMALL = MixtureSet(clients=6, records_each=20, unit=Unit.CLIENT, dimensions=12)


def test_labels_are_those_of_the_tables() -> None:
    assert MixtureSet(clients=100, records_each=1000, unit=Unit.RECORD).label == "Gaussian Mixture (100 clients)"
    assert MixtureSet(clients=2000, records_each=50, unit=Unit.CLIENT).label == "Gaussian Mixture (2000 clients)"
    assert SMALL.label == "Gaussian Mixture (6 clients of 20)"
    assert CensusSet(folder=Path(), employment="federal").label == "US Census (Federal Employees)"
    assert QuestionSet(path=Path(), topics=("github", "pdf")).label == "Stack Overflow (github, pdf)"


def test_a_mixture_has_its_clients_and_the_papers_server() -> None:
    study = load_study(SMALL)
    assert study.points.shape == (120, 12)
    assert [len(part) for part in study.parts] == [20] * 6
    assert study.server.shape == (300, 12)
    assert study.components is not None
    assert not study.points.flags.writeable


def test_the_radius_of_the_mixture_is_about_the_printed_one() -> None:
    study = load_study(MixtureSet(clients=100, records_each=20, unit=Unit.RECORD))
    assert np.linalg.norm(study.server, axis=1).max() == pytest.approx(10.57, abs=0.7)  # Table 1, another draw


def test_bounds_are_public_and_keep_proportions() -> None:
    study = load_study(SMALL)
    frame = study.frame
    assert np.abs(frame.to_unit(study.server)).max() == pytest.approx(1 / 1.5)
    np.testing.assert_allclose(frame.to_original(frame.to_unit(study.server)), study.server)
    far = study.server.max(axis=0) + 100
    assert (frame.to_unit(far[None]) == 1.0).all()
    records = load_records(SMALL)
    assert len(records) == 6
    (batch,) = records[2].batches()
    np.testing.assert_allclose(frame.to_original(batch), study.parts[2], atol=frame.half_width * 2**-16)


def test_real_data_is_read_by_its_value(tmp_path: Path) -> None:
    census = CensusSet(folder=write_census(tmp_path / "census", people=250), employment="federal", server_other=40)
    study = load_study(census)
    assert len(study.clients) == 3
    assert len(study.server) == 60
    assert study.components is None
    questions = QuestionSet(path=write_questions(tmp_path / "questions"), topics=("github", "pdf"), server_other=50)
    assert load_study(questions).server.shape == (70, 8)
    assert (census.unit, questions.unit) == (Unit.RECORD, Unit.CLIENT)
