"""Plans of Lloyd's rounds: bytes and messages are those that a run counts, however many rounds and parties."""

import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, Job, JobParty, make_options
from cloister.planning import plan
from cloister.sessions import simulate
from tests.sessions import blobs


def make_job(name, *, parties=3, **options):
    return Job(
        name="test",
        k=3,
        columns=tuple(Column(name=f"c{i}", low=0, high=10) for i in range(2)),
        parties=tuple(JobParty(name=f"p{i}") for i in range(parties)),
        protocol=make_options(name, **options),
        budget=None if name in ("naive", "masked-sum-count", "masked-centroid") else Budget(epsilon=8.0, delta=1e-6),
    )


def run(job):
    tables = {party.name: 5 + 5 * blobs(20, 2, 3, seed=1) for party in job.parties}
    return simulate(job, seed=1, sources=tables, evaluate=False)


@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 30])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("naive", {}),
        ("masked-sum-count", {"start_by": "coordinator"}),
        ("masked-centroid", {"masks": "double"}),
        ("fastlloyd", {"placement": "local"}),
        ("fastlloyd", {"placement": "shared"}),
    ],
)
def test_every_round_is_counted(name, options, iterations):
    job = make_job(name, iterations=iterations, **options)
    made, ran = plan(job, records=60), run(job)
    assert made.traffic.total_bytes == ran.bytes_total
    assert made.traffic.leader.bytes_up == ran.parties[0].bytes_sent
    assert made.traffic.other.bytes_down == ran.parties[1].bytes_received
    assert (made.rounds_max, made.traffic.leader.messages_up) == (iterations, ran.parties[0].messages_sent)


@pytest.mark.parametrize("options", [{}, {"placement": "shared", "colluding_max": 40}])
def test_more_parties_than_are_measured_are_in_proportion(options):
    job = make_job("fastlloyd", parties=70, iterations=3, **options)
    made, ran = plan(job, records=1400), run(job)
    assert made.traffic.total_bytes == pytest.approx(ran.bytes_total, rel=2e-3)
    assert made.traffic.leader.bytes_down == pytest.approx(ran.parties[0].bytes_received, rel=2e-3)


def test_losses_are_not_forecast_so_epsilons_cannot_be_compared():
    with pytest.raises(ConfigError, match="epsilons must be left out with the protocol fastlloyd"):
        plan(make_job("fastlloyd"), records=60, epsilons=(1.0,))


def test_too_much_noise_for_so_few_records_is_said():
    made = plan(make_job("mask-noise-average"), records=30)
    assert "30 records or fewer, the noise of one round moves a centre" in made.advice
    assert "or fewer" not in plan(make_job("mask-noise-average"), records=10**6).advice
