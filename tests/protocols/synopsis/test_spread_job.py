"""Jobs that scale by a spread: what they take and refuse, and what their results say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.planning import plan
from cloister.privacy.units import Unit
from cloister.protocols.synopsis.settings import Knobs
from cloister.report.labels import predict
from cloister.report.result import Spread, decode_result, encode_result
from cloister.sessions import simulate

WIDE = (Column(name="length", low=0, high=1000), Column(name="width", low=-500, high=500))
PARTIES = tuple(JobParty(name=name) for name in ("a", "b", "c"))
FAST = make_options("synopsis", knobs=Knobs(cells_max=400, restarts=3))


def make_job(columns=WIDE, *, epsilon=1.0, unit=Unit.RECORD, protocol=FAST, scale=None, **data):
    return Job(
        name="spread",
        k=3,
        columns=columns,
        parties=PARTIES,
        protocol=protocol,
        data=DataOptions(scale=scale, **data),
        budget=None if protocol.facts.budget == "refused" else Budget(epsilon=epsilon, delta=1e-6, unit=unit),
    )


def make_rows(n=6000):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    noise = rng.normal(size=(n, 2)) * (5.0, 0.4)
    return np.array([[20.0, 1.0], [50.0, 9.0], [80.0, 2.0]])[labels] + noise, labels


def run(job, rows, **options):
    return simulate(job, sources={party.name: rows[i::3] for i, party in enumerate(job.parties)}, seed=1, **options)


@pytest.fixture(scope="module")
def result():
    return run(make_job(), make_rows()[0], evaluate=True)


def test_the_default_scales_by_a_spread_where_that_is_proved():
    assert make_job().scale == "spread"
    assert make_job(scale="bounds").scale == "bounds"
    assert make_job(unit=Unit.CLIENT).scale == "bounds"
    assert make_job(protocol=make_options("masked-sum-count")).scale == "bounds"
    many = tuple(Column(name=f"x{i}", low=0, high=1) for i in range(201))
    assert make_job(many).scale == "bounds"
    assert make_job(many[:200]).scale == make_job(many, scale="spread").scale == "spread"


@pytest.mark.parametrize(
    "options",
    [{"unit": Unit.CLIENT}, {"protocol": make_options("masked-sum-count")}, {"protocol": make_options("feddp")}],
)
def test_a_spread_is_refused_where_it_is_not_proved(options):
    with pytest.raises(ConfigError, match=r'data.scale must be "bounds", or come with the protocol synopsis'):
        make_job(scale="spread", **options)


def test_bounds_that_nobody_knows_need_a_spread():
    columns = (WIDE[0], Column.unbounded("width"))
    with pytest.raises(ConfigError, match=r'columns.width must have public bounds with scale = "bounds"'):
        make_job(columns, scale="bounds")
    with pytest.raises(ConfigError, match=r'bounds = "private" must come with a signal of 100 or more; 300 records'):
        plan(make_job(columns, records=300), quick=True, epsilons=())


def test_centres_are_found_in_wide_bounds_and_the_loss_is_where_they_were_clustered(result):
    centres = result.centres[np.argsort(result.centres[:, 0])]
    np.testing.assert_allclose(centres, [[20, 1], [50, 9], [80, 2]], atol=0.6)
    rows = make_rows()[0]
    np.testing.assert_allclose(result.scale.spread, rows.std(axis=0), rtol=0.15)
    assert result.evaluation.ratio < 1.01
    np.testing.assert_allclose(result.evaluation.loss, 2 * np.mean([(5 / 25.0) ** 2, (0.4 / 3.6) ** 2]) / 36, rtol=0.2)
    assert any(note.startswith("Strong enough to find the scale: ") for note in result.notes)


def test_a_result_keeps_its_scale_and_labels_new_rows_by_it(result):
    again = decode_result(encode_result(result), Path("result.json"))
    assert again.scale == result.scale
    rows, labels = make_rows()
    found = np.concatenate(list(predict(again, pd.DataFrame(rows, columns=["length", "width"])).labels()))
    order = np.argsort(np.argsort(result.centres[:, 0]))
    assert (order[found] == labels).mean() > 0.999
    with pytest.raises(ConfigError, match="a centre and a spread for each"):
        replace_scale(result, Spread(centre=(0.0,), spread=(1.0,))).coordinates  # noqa: B018
    with pytest.raises(ConfigError, match="spreads at least 0"):
        replace_scale(result, Spread(centre=(0.0, 0.0), spread=(1.0, -1.0))).coordinates  # noqa: B018


def replace_scale(result, scale):
    from msgspec.structs import replace as replace_struct

    return replace_struct(result, scale=scale)


def test_a_column_that_did_not_count_is_named():
    rows, _ = make_rows()
    rows[:, 1] = 3.0
    found = run(make_job(), rows)
    assert any(note.endswith("lost in the noise: width.") for note in found.notes)
    np.testing.assert_allclose(found.centres[:, 1], 3.0, atol=1000 / 32)


def test_bounds_that_nobody_knows_are_found():
    found = run(make_job((WIDE[0], Column.unbounded("width")), epsilon=2.0), make_rows()[0])
    centres = found.centres[np.argsort(found.centres[:, 0])]
    np.testing.assert_allclose(centres, [[20, 1], [50, 9], [80, 2]], atol=0.6)


def test_too_few_records_for_unknown_bounds_end_in_an_error_that_says_so():
    with pytest.raises(ConfigError, match='bounds = "private" must come with more records'):
        run(make_job((WIDE[0], Column.unbounded("width")), epsilon=0.5), make_rows(90)[0])


def test_where_records_are_few_the_report_says_that_the_scale_is_a_guess():
    found = run(make_job(epsilon=0.5), make_rows(120)[0])
    assert any(note.startswith("The scale is a guess: ") for note in found.notes)


def test_a_plan_says_whether_the_scale_will_be_found():
    said = plan(make_job(), records=6000, quick=True, epsilons=()).notes
    assert any(note.startswith("Strong enough to find the scale: ") for note in said)
    said = plan(make_job(), records=100, quick=True, epsilons=()).notes
    assert any(note.startswith("The scale is a guess: ") for note in said)


@pytest.mark.parametrize("scale", ["spread", "bounds"])
@pytest.mark.parametrize("columns", [2, 6])
def test_missing_cells_are_imputed_on_every_route(scale, columns):
    rows, _ = make_rows()
    wide = np.hstack([rows] * (columns // 2))
    named = tuple(Column(name=f"x{j}", low=(0, -2)[j % 2], high=(100, 12)[j % 2]) for j in range(columns))
    frame = pd.DataFrame(wide, columns=[column.name for column in named])
    gaps = frame.mask(np.random.default_rng(5).uniform(size=frame.shape) < 0.1)
    gaps["x0"] = gaps["x0"].where(gaps.notna().any(axis=1), frame["x0"])
    found = run(make_job(named, scale=scale, missing="impute"), gaps, evaluate=True)
    centres = found.centres[np.argsort(found.centres[:, 0])][:, :2]
    np.testing.assert_allclose(centres, [[20, 1], [50, 9], [80, 2]], atol=1.0)
    assert found.evaluation.gaps == gaps.isna().any(axis=1).sum()
    assert found.evaluation.ratio < 1.05
    labels = np.concatenate(list(predict(found, gaps).labels()))
    assert (labels == np.concatenate(list(predict(found, frame).labels()))).mean() > 0.95


def test_categories_and_booleans_count_beside_numbers():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 6000)
    frame = pd.DataFrame({"length": 10.0 * rng.normal(size=6000) + np.array([300, 300, 600])[labels]})
    frame["ward"] = np.where(rng.uniform(size=6000) < 0.97, np.array(["a", "b", "c"])[labels], "a")
    frame["smokes"] = rng.uniform(size=6000) < np.array([0.05, 0.95, 0.5])[labels]
    columns = (WIDE[0], Column.category("ward", ("a", "b", "c")), Column.boolean("smokes"))
    found = run(make_job(columns, epsilon=2.0), frame, evaluate=True)
    assert found.evaluation.ratio < 1.05
    assert found.centres[:, 1:4].max(axis=1).min() > 0.8  # each centre has a ward
    np.testing.assert_allclose(
        found.scale.centre[1:4], frame.ward.value_counts(normalize=True)[["a", "b", "c"]], atol=0.03
    )


def test_a_weight_counts_in_both_scales():
    for scale in ("spread", "bounds"):
        columns = (replace(WIDE[0], low=0, high=100), replace(WIDE[1], low=0, high=10, weight=0.001))
        found = run(make_job(columns, scale=scale), make_rows()[0])
        found = found.centres[np.argsort(found.centres[:, 0])]
        np.testing.assert_allclose(found[:, 0], [20, 50, 80], atol=3)
