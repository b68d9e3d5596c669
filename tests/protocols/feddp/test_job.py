"""Jobs of FedDP-KMeans, from the job to the result."""

import dataclasses

import numpy as np
import pytest

from cloister.columns import Column
from cloister.errors import BudgetError, ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, Setup, make_options
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Unit
from cloister.protocols.feddp.options import FeddpOptions, FeddpSection
from cloister.sessions import simulate
from tests.owners import told_to_owner
from tests.protocols.feddp.sessions import make_mixture

PARTS, SERVER, CENTRES = make_mixture(each=100)
SOURCES = {f"p{number}": part for number, part in enumerate(PARTS)} | {"server": SERVER}


def make_job(*, epsilon=5.0, unit=Unit.RECORD, records=None, server=None, **options):
    return Job(
        name="with-server",
        k=3,
        columns=tuple(Column(name=f"x{i}", low=-1.0, high=1.0) for i in range(7)),
        parties=tuple(JobParty(name=f"p{number}") for number in range(6)),
        protocol=FeddpOptions(**options),
        data=DataOptions(records=records, server=server),
        budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit),
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"variant": "published"},
        {"section": FeddpSection(sample=4, lloyd_steps=1)},
        {"section": FeddpSection(simplify=True, clear_only=True, weight_min=0.1, sigma_max=0.05)},
        {"placement": "shared", "colluding_max": 2},
        {"unit": Unit.CLIENT, "epsilon": 30.0, "records": 600},
    ],
    ids=["tight", "published", "sample", "appendix E", "shared", "client"],
)
def test_a_job_finds_the_clusters_and_says_what_it_cost(options):
    job = make_job(**options)
    result = simulate(job, seed=5, sources=SOURCES)
    assert result.card.epsilon <= job.budget.epsilon
    assert not result.card.flaw
    distances = ((CENTRES[:, None] - result.centres) ** 2).sum(axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2]
    assert distances.min(axis=1).max() < 0.15
    assert any("36 points are public" in note for note in result.notes)
    assert any("Delta^2" in note for note in result.notes) == (options.get("variant") == "published")


def test_without_server_data_the_job_says_so_and_is_a_synopsis():
    sources = {name: part for name, part in SOURCES.items() if name != "server"}
    result = simulate(make_job(), seed=5, sources=sources)
    synopsis = dataclasses.replace(make_job(), protocol=make_options("synopsis"))
    assert np.array_equal(result.centres, simulate(synopsis, seed=5, sources=sources).centres)
    assert "the synopsis is used" in result.notes[0]
    with pytest.raises(ConfigError, match=r"data\.server must be given"):
        simulate(make_job(variant="published"), sources=sources)


def test_a_ledger_is_paid_once_and_refuses_the_second_run(tmp_path):
    for variant in ("tight", "published"):
        own = {"p0": OwnSide(ledger=tmp_path / f"{variant}.ledger")}
        setup = Setup(job=make_job(epsilon=1.0, variant=variant), own=own)
        result = simulate(setup, sources=SOURCES)
        # Mixed noise costs a ledger more: it adds up in zCDP, not by the plan.
        assert any("Ledgers add up in zCDP" in note for note in result.notes) == (variant == "published")
        ledger = Ledger(tmp_path / f"{variant}.ledger", create=False)
        (entry,) = ledger.summarise(delta=1e-6)
        assert 0.9 < entry.epsilon < 2.0
        ledger.set_cap(entry.dataset, Budget(epsilon=1.1 * entry.epsilon, delta=1e-6), reason="test")
        ledger.close()
        with told_to_owner(BudgetError, "party 'p0'"):
            simulate(setup, sources=SOURCES)


def test_a_section_without_server_data_is_refused_and_not_ignored():
    parts = {name: part for name, part in SOURCES.items() if name != "server"}
    with pytest.raises(ConfigError, match="feddp must come with server data"):
        simulate(make_job(section=FeddpSection(sample=4)), sources=parts)


@pytest.mark.parametrize("variant", ["tight", "published"])
def test_server_points_that_are_all_equal_are_refused_before_anything_is_paid(variant):
    equal = np.full((10, 7), 0.25)
    with pytest.raises(ConfigError, match="at least 3 different points"):
        simulate(make_job(variant=variant), sources=SOURCES | {"server": equal})


def test_sampled_rounds_still_say_how_many_records_there_are():
    result = simulate(make_job(epsilon=20.0, section=FeddpSection(sample=4)), seed=5, sources=SOURCES)
    assert abs(result.sizes.total - 600) < 120
