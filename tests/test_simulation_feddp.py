"""Jobs of FedDP-KMeans, from the job file to the result and the plan."""

import dataclasses

import numpy as np
import pytest

from cloister.data import Column
from cloister.errors import BudgetError, ConfigError
from cloister.job import Budget, Job, JobParty, ProtocolOptions, parse_job
from cloister.job.feddp_section import FeddpSection
from cloister.job.model import DataOptions
from cloister.planning import plan
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Unit
from cloister.simulation import simulate
from tests.protocols.feddp.sessions import make_mixture

PARTS, SERVER, CENTRES = make_mixture(each=100)
SOURCES = {f"p{number}": part for number, part in enumerate(PARTS)} | {"server": SERVER}


def make_job(*, epsilon=5.0, unit=Unit.RECORD, section=None, records=None, ledger=None, folder=None, **protocol):
    options = {} if folder is None else {"folder": folder}
    return Job(
        name="with-server",
        k=3,
        columns=tuple(Column(name=f"x{i}", low=-1.0, high=1.0) for i in range(7)),
        parties=tuple(JobParty(name=f"p{number}") for number in range(6)),
        protocol=ProtocolOptions(name="feddp", **protocol),
        data=DataOptions(records=records),
        budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit),
        feddp=section,
        seed=5,
        ledger=ledger,
        **options,
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
    result = simulate(job, sources=SOURCES)
    assert result.card.epsilon <= job.budget.epsilon
    assert not result.card.flaw
    distances = ((CENTRES[:, None] - result.centres) ** 2).sum(axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2]
    assert distances.min(axis=1).max() < 0.15
    assert any("36 points are public" in note for note in result.notes)
    assert any("Delta^2" in note for note in result.notes) == (options.get("variant") == "published")


def test_without_server_data_the_job_says_so_and_is_a_synopsis():
    sources = {name: part for name, part in SOURCES.items() if name != "server"}
    result = simulate(make_job(), sources=sources)
    synopsis = dataclasses.replace(make_job(), protocol=ProtocolOptions(name="synopsis"))
    assert np.array_equal(result.centres, simulate(synopsis, sources=sources).centres)
    assert "the synopsis is used" in result.notes[0]
    with pytest.raises(ConfigError, match=r"data\.server must be given"):
        simulate(make_job(variant="published"), sources=sources)


def test_a_ledger_is_paid_once_and_refuses_the_second_run(tmp_path):
    for variant in ("tight", "published"):
        job = make_job(epsilon=1.0, ledger=f"ledger-{variant}", folder=tmp_path, variant=variant)
        simulate(job, sources=SOURCES)
        ledger = Ledger(tmp_path / f"ledger-{variant}" / "p0.ledger", create=False)
        (entry,) = ledger.summarise(delta=1e-6)
        assert 0.9 < entry.epsilon < 2.0  # mixed noise costs a ledger more: it adds up in zCDP, not by the plan
        ledger.set_cap(entry.fingerprint, Budget(epsilon=1.1 * entry.epsilon, delta=1e-6), reason="test")
        ledger.close()
        with pytest.raises(BudgetError, match="party 'p0'"):
            simulate(dataclasses.replace(job, seed=6), sources=SOURCES)


TEXT = """
name = "with-server"
[protocol]
name = "feddp"
{protocol}
[clusters]
k = 3
[columns]
x0 = {{ low = -1, high = 1 }}
x1 = {{ low = -1, high = 1 }}
[data]
{data}
[budget]
epsilon = 1.0
{budget}
{feddp}
[[parties]]
name = "a"
data = "a.csv"
[[parties]]
name = "b"
data = "b.csv"
"""


def parse(protocol="", data="", budget="", feddp=""):
    return parse_job(TEXT.format(protocol=protocol, data=data, budget=budget, feddp=feddp))


def test_a_job_file_says_everything():
    job = parse(
        'variant = "tight"', 'server = "server.csv"', 'unit = "client"', "[feddp]\nlloyd_steps = 2\nsimplify = true"
    )
    assert job.data.server == "server.csv"
    assert job.feddp == FeddpSection(lloyd_steps=2, simplify=True)
    assert job.budget.delta == 1e-6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol": 'variant = "sound"'}, r"job:5: protocol\.variant must be one of"),
        ({"protocol": "iterations = 3"}, "must be left out with the protocol feddp"),
        ({"protocol": 'variant = "published"', "budget": 'unit = "client"'}, "must be declared with variant"),
        ({"protocol": 'variant = "published"', "feddp": "[feddp]\nsimplify = true"}, "have no options"),
        ({"protocol": 'variant = "published"\nplacement = "local"'}, "placement must be left out"),
        ({"feddp": "[feddp]\nsample = 3"}, r"feddp\.sample"),
        ({"feddp": "[feddp]\nweight_min = 0.1"}, "must be given together"),
        ({"feddp": "[feddp]\nmoment_share = 2.0"}, "moment_share must be from"),
        ({"feddp": "[feddp]\nsimplify = 1"}, "must be true or false"),
        ({"feddp": "[feddp]\nshare = 1"}, "known key"),
        ({"budget": "delta = 0"}, "greater than 0 with Gaussian noise"),
    ],
)
def test_refused_jobs(given, message):
    with pytest.raises(ConfigError, match=message):
        parse(**given)


def test_other_protocols_take_no_server_data():
    text = TEXT.replace('name = "feddp"', 'name = "synopsis"')
    for given in ({"data": 'server = "q.csv"'}, {"feddp": "[feddp]\nsample = 2"}):
        with pytest.raises(ConfigError, match="must come with the protocol feddp"):
            parse_job(text.format(**{"protocol": "", "data": "", "budget": "", "feddp": "", **given}))


def test_a_plan_explains_which_protocol_and_why(tmp_path):
    columns = ",".join(f"x{i}" for i in range(7))
    np.savetxt(tmp_path / "server.csv", SERVER, delimiter=",", header=columns, comments="")
    job = make_job(epsilon=1.0, folder=tmp_path)
    named = dataclasses.replace(job, data=DataOptions(server="server.csv"))
    told = plan(named, records=600)
    assert "gives server data" in told.why
    assert told.round_noise[0].centre_noise > 0
    result = simulate(named, sources={name: part for name, part in SOURCES.items() if name != "server"})
    other = result.parties[1]
    assert (told.traffic.other.bytes_up, told.traffic.other.bytes_down) == (other.bytes_sent, other.bytes_received)
    published = dataclasses.replace(named, protocol=ProtocolOptions(name="feddp", variant="published"))
    assert any("Delta^2" in note for note in plan(published, records=600).notes)
    assert "the synopsis is used" in plan(job, records=600, quick=True).why


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"section": FeddpSection(sample=2)}, "feddp.sample must be an integer from 3 to 6"),
        (
            {"section": FeddpSection(sample=5), "placement": "shared", "colluding_max": 2},
            "feddp.sample must be left out where parties add the noise",
        ),
        ({"section": FeddpSection(restarts=500), "variant": "published"}, "must have no shares or restarts"),
    ],
)
def test_options_that_would_be_wrong_or_ignored_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        make_job(**options)


def test_a_section_without_server_data_is_refused_and_not_ignored():
    parts = {name: part for name, part in SOURCES.items() if name != "server"}
    with pytest.raises(ConfigError, match=r"\[feddp\] must come with server data"):
        simulate(make_job(section=FeddpSection(sample=4)), sources=parts)


@pytest.mark.parametrize("variant", ["tight", "published"])
def test_server_points_that_are_all_equal_are_refused_before_anything_is_paid(variant):
    equal = np.full((10, 7), 0.25)
    with pytest.raises(ConfigError, match="at least 3 different points"):
        simulate(make_job(variant=variant), sources=SOURCES | {"server": equal})


def test_a_partys_own_table_is_no_server_data():
    job = make_job()
    parties = (JobParty(name="p0", data="p0.csv"), *job.parties[1:])
    with pytest.raises(ConfigError, match="must not be a party's own table"):
        dataclasses.replace(job, parties=parties, data=DataOptions(server="p0.csv"))


def test_sampled_rounds_still_say_how_many_records_there_are():
    result = simulate(make_job(epsilon=20.0, section=FeddpSection(sample=4)), sources=SOURCES)
    assert abs(result.released_records - 600) < 120
