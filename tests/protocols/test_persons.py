"""Jobs whose unit is a person: what is refused, how much noise there is, and that sessions keep what was chosen."""

from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest

from cloister.columns import Column
from cloister.errors import ConfigError, DataError
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.job.model import Setup
from cloister.jobfile import parse_job
from cloister.planning import plan
from cloister.privacy.accounting import Accountant
from cloister.privacy.units import PersonBudget, Sensitivity, Unit
from cloister.protocol import PublicInput, find_protocol, placeholder_directory
from cloister.sessions.instruments import Instruments
from cloister.sessions.simulation import Simulation, simulate
from tests.owners import told_to_owner

NAMES = ("a", "b", "c")
PRIVATE = ("synopsis", "fastlloyd", "mask-noise-average", "feddp")


def make_job(protocol=None, *, unit="person", delta=1e-6, data=None, options=None, **others):
    return Job(
        name="visits",
        k=2,
        columns=(Column(name="x", low=0, high=10), Column(name="y", low=0, high=10)),
        parties=tuple(JobParty(name=name) for name in NAMES),
        protocol=make_options(protocol, **options or {}),
        data=DataOptions(**{"person": "who"} if data is None else data),
        budget=Budget(epsilon=1.0, delta=delta, unit=unit),
        **others,
    )


def make_tables(people=300, visits=4, seed=0):
    numbers = np.random.default_rng(seed)
    tables = {}
    for name in NAMES:
        who = np.repeat(np.arange(people), visits)
        points = np.where(who[:, None] % 2, 3.0, 7.0) + numbers.normal(0, 0.3, (len(who), 2))
        tables[name] = pd.DataFrame({"who": [f"p{one}" for one in who], "x": points[:, 0], "y": points[:, 1]})
    return tables


def agree(job):
    protocol = find_protocol(job)
    server = np.random.default_rng(1).uniform(-1, 1, (50, 2)) if job.protocol.name == "feddp" else None
    return protocol, protocol.agree(job, placeholder_directory(job), PublicInput(server=server))


# --- how much noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PRIVATE)
@pytest.mark.parametrize(("records", "parties"), [(1, 1), (3, 1), (1, 2), (3, 2)])
def test_noise_and_norms_are_those_of_a_record_times_c_and_q(protocol, records, parties):
    """At the same cost: so the budget is neither passed nor left over."""
    data = {"person": "who", "person_records": records, "person_parties": parties}
    one, many = (agree(job) for job in (make_job(protocol, unit="record", data={}), make_job(protocol, data=data)))
    paid = [roles.charges(agreed) for roles, agreed in (one, many)]
    for of_record, of_person in zip(paid[0].prepaid, paid[1].prepaid, strict=True):
        assert of_person.sensitivity == of_record.sensitivity.times(records * parties)
        assert of_person.mechanism.sigma == pytest.approx(records * parties * of_record.mechanism.sigma, rel=1e-6)
    spent = [Accountant(charges.budget).would_spend(charges.prepaid) for charges in paid]
    assert spent[1].epsilon <= 1.0
    assert spent[1].rho == pytest.approx(spent[0].rho, rel=1e-5)


def test_norms_of_several_vectors():
    assert Sensitivity(l1=3, l2_squared=5).times(4) == Sensitivity(l1=12, l2_squared=80)


def test_pure_noise_grows_alike():
    data = {"person": "who", "person_records": 2, "person_parties": 3}
    options = {"noise": "laplace"}
    jobs = (
        make_job("fastlloyd", delta=0.0, options=options, data=data),
        make_job("fastlloyd", delta=0.0, options=options, unit="record", data={}),
    )
    many, one = ([release.mechanism.scale for release in agree(job)[1].agreement.noise.releases] for job in jobs)
    assert many == pytest.approx([6 * scale for scale in one])


def test_by_default_one_record_counts_at_every_party():
    budget = make_job().budget
    assert budget == PersonBudget(epsilon=1.0, delta=1e-6, records=1, parties=3)
    assert replace(make_job(), parties=tuple(JobParty(name=name) for name in "vwxyz")).budget.parties == 5


def test_a_plain_budget_for_persons_calibrates_nothing():
    with pytest.raises(ConfigError, match="how many records"):
        _ = Budget(epsilon=1.0, unit=Unit.PERSON).most_records


def test_what_is_agreed_for_persons_is_in_the_digest():
    jobs = [make_job(unit="record", data={})]
    for data in ({}, {"person_records": 2}, {"person_parties": 2}, {"person": "id"}):
        jobs.append(make_job(data={"person": "who"} | data))
    assert len({job.digest for job in jobs}) == len(jobs)
    assert len({agree(job)[1].agreement.digest for job in jobs[:4]}) == 4


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = {
    "no column": ({"data": {}}, "budget.unit must come with data.person"),
    "a clustered one": ({"data": {"person": "x"}}, "data.person must be a column that is not clustered"),
    "keys without the unit": ({"unit": "record"}, "data.person must come with the unit person"),
    "keys of clients": ({"unit": "client"}, "data.person must come with the unit person"),
    "more parties": ({"data": {"person": "who", "person_parties": 4}}, "person_parties must be an integer from 1 to 3"),
    "no records": ({"data": {"person": "who", "person_records": 0}}, "person_records must"),
    "too many records": ({"data": {"person": "who", "person_records": 1001}}, "person_records must"),
    "published": (
        {"protocol": "fastlloyd", "delta": 0.0, "options": {"variant": "sulloyd"}},
        'unit must not be person with variant = "sulloyd"',
    ),
    "published feddp": ({"protocol": "feddp", "options": {"variant": "published"}}, "unit must not be person"),
    "exact": ({"protocol": "masked-sum-count"}, "budget must be left out"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_hides_no_person_is_refused(what):
    change, said = REFUSED[what]
    if "published" in what:
        change = change | {"data": {"person": "who", "records": 100}}
    with pytest.raises(ConfigError, match=said):
        make_job(**change)


VERTICAL = """
name = "split"
[clusters]
k = 2
[budget]
epsilon = 1.0
unit = "person"
[data]
{data}
[columns]
x = {{ low = 0, high = 10 }}
y = {{ low = 0, high = 10 }}
[protocol]
name = "vertical"
[[parties]]
name = "a"
columns = ["x"]
[[parties]]
name = "b"
columns = ["y"]
"""


def test_where_columns_are_split_an_aligned_id_is_a_person():
    assert parse_job(VERTICAL.format(data='id = "who"')).budget.most_records == 1
    for data in ("aligned = true", 'id = "who"\nperson = "who"', 'id = "who"\nperson_records = 2'):
        with pytest.raises(ConfigError, match=r"(budget.unit|data.person|data.person_records) must"):
            parse_job(VERTICAL.format(data=data))


def test_a_row_without_an_id_keeps_its_party_out_and_only_its_owner_is_told_why():
    tables = make_tables()
    tables["b"].loc[7, "who"] = " "
    with told_to_owner(DataError, r"1 cell empty \(row 8\)", party="b"):
        simulate(make_job(), sources=tables)


def test_arrays_have_no_ids():
    with told_to_owner(DataError, "a table with IDs"):
        simulate(make_job(), sources={name: np.zeros((5, 2)) for name in NAMES})


# --- what runs --------------------------------------------------------------------------------------------------------


def open_inputs(seed, sources=None):
    setup = Setup(job=make_job(), seed=seed)
    simulation = Simulation.open(setup, sources or make_tables(), instruments=Instruments.of_seed(seed))
    return [np.concatenate(list(own.records.batches())) for own in simulation.inputs.values()]


def test_the_choice_is_fresh_in_each_session_and_of_the_seed_where_there_is_one():
    first, second, seeded, again = (open_inputs(seed) for seed in (None, None, 5, 5))
    assert [len(kept) for kept in first] == [300, 300, 300]
    assert not any(np.array_equal(*kept) for kept in zip(first, second, strict=True))
    assert all(np.array_equal(*kept) for kept in zip(seeded, again, strict=True))
    assert not any(np.array_equal(*kept) for kept in zip(first, seeded, strict=True))


def test_parties_choose_by_keys_of_their_own():
    tables = make_tables()
    kept = open_inputs(5, dict.fromkeys(NAMES, tables["a"]))
    assert not np.array_equal(kept[0], kept[1])


@pytest.mark.skipif("missing" not in DataOptions.__struct_fields__, reason="tables with gaps are refused, as yet")
def test_rows_with_gaps_are_dropped_before_the_choice():
    """So a person with one usable row keeps it, whatever the key."""
    tables = make_tables()
    for table in tables.values():
        table.loc[np.arange(len(table)) % 4 != 0, "y"] = np.nan
    job = make_job(data={"person": "who", "missing": "drop"})
    simulation = Simulation.open(Setup(job=job), tables, instruments=Instruments.of_seed(None))
    kept = [np.concatenate(list(own.records.batches())) for own in simulation.inputs.values()]
    assert [len(records) for records in kept] == [300, 300, 300]


@pytest.mark.parametrize("protocol", PRIVATE[:3])
def test_a_person_counts_once_at_each_party(protocol):
    data = {"person": "who", "person_parties": 1}
    result = simulate(make_job(protocol, data=data), sources=make_tables(people=1500), seed=1)
    assert result.sizes.unit == "persons"
    assert result.sizes.total == pytest.approx(4500, abs=5 * result.sizes.total_noise + 1)
    assert result.card.unit == "person"
    unseeded = msgspec.structs.replace(result.card, private=True)
    assert "any one person, with all their records" in unseeded.plain_words
    assert "of which one counts, added or removed" in result.card.neighbours
    assert any("A person is an ID" in said for said in result.card.not_promised)


def test_with_several_records_each_sizes_are_of_records():
    data = {"person": "who", "person_records": 2}
    result = simulate(make_job(data=data), sources=make_tables(people=1500), seed=1)
    assert result.sizes.unit == "records"
    assert result.sizes.total == pytest.approx(9000, abs=5 * result.sizes.total_noise + 1)
    assert "at most 2 count at each of up to 3 parties" in result.card.neighbours


def test_a_plan_is_for_persons():
    made = plan(make_job("fastlloyd"), records=1000)
    assert (made.unit, made.counted) == ("person", "persons")
