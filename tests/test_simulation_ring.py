"""Jobs in a ring, end to end: the three ways to add noise without a server, what they cost, and what a plan says."""

import dataclasses

import numpy as np
import pytest

from cloister import Budget, Column, Job, JobParty, plan, simulate
from cloister.job.model import DataOptions, ProtocolOptions

CENTRES = np.array([[20.0, 20.0], [60.0, 25.0], [40.0, 70.0], [80.0, 80.0]])
WAYS = {
    "local": ProtocolOptions(name="fastlloyd", topology="ring", placement="local"),
    "shared": ProtocolOptions(name="fastlloyd", topology="ring", placement="shared", colluding_max=1),
    "joint": ProtocolOptions(name="fastlloyd", topology="ring", placement="joint", noise="laplace"),
    "mask-noise-average": ProtocolOptions(
        name="mask-noise-average", topology="ring", placement="joint", noise="laplace", iterations=5
    ),
}


def tables(parties, seed=1):
    rng = np.random.default_rng(seed)
    points = np.clip(np.concatenate([rng.normal(centre, 4, (600, 2)) for centre in CENTRES]), 0, 100)
    return dict(zip("abcdef"[:parties], np.array_split(rng.permutation(points), parties), strict=True))


def make_job(way, *, parties=3, epsilon=2.0, **changes):
    options = WAYS[way]
    delta = 0.0 if options.noise == "laplace" else 1e-6
    job = Job(
        name="ring",
        k=4,
        columns=(Column(name="x", low=0, high=100), Column(name="y", low=0, high=100)),
        parties=tuple(JobParty(name=name) for name in "abcdef"[:parties]),
        protocol=options,
        budget=Budget(epsilon=epsilon, delta=delta),
        data=DataOptions(max_records=2400),
        seed=3,
    )
    return dataclasses.replace(job, **changes)


@pytest.mark.parametrize("way", ["local", "shared", "joint"])
def test_the_clusters_are_found_without_a_server(way):
    result = simulate(make_job(way), sources=tables(3))
    distances = np.linalg.norm(result.centres[:, None] - CENTRES, axis=2).min(axis=0)
    assert distances.max() < 2.5
    assert result.variant == "in a ring"
    assert {row.role for row in result.leakage} == {"the relay", "each party", "everyone"}


@pytest.mark.parametrize("way", WAYS)
def test_the_budget_is_spent_and_not_more(way):
    card = simulate(make_job(way, seed=None), sources=tables(3)).card
    assert 0.99 * 2 < card.epsilon <= 2
    assert card.private
    assert "relay" in card.protects_against


def test_the_card_says_who_knows_the_noise():
    cards = {way: simulate(make_job(way), sources=tables(3)).card for way in ("local", "shared", "joint")}
    assert "Nobody" in cards["local"].who_could_subtract
    assert "own share" in cards["shared"].who_could_subtract
    assert "Not even 2 of the 3 parties" in cards["joint"].who_could_subtract
    assert "dealt the randomness" in cards["joint"].breaks_if
    assert "2^-80" in cards["joint"].who_adds_noise


def test_two_parties_in_a_ring_are_warned():
    card = simulate(make_job("local", parties=2), sources=tables(2)).card
    assert any(warning.startswith("Two parties") for warning in card.warnings)


@pytest.mark.parametrize(("way", "parties"), [("local", 2), ("shared", 4), ("joint", 3)])
def test_a_plan_forecasts_the_bytes_that_a_run_counts(way, parties):
    job = make_job(way, parties=parties)
    forecast = plan(job, records=2400).traffic
    run = simulate(job, sources=tables(parties))
    total = sum(party.bytes_sent + party.bytes_received for party in run.parties)
    assert forecast.total_bytes == pytest.approx(total, rel=2e-3)
    assert forecast.leader.messages_up == run.parties[0].messages_sent


def test_one_joint_noise_is_less_than_one_from_each_party():
    """Thesis 7.3: the joint noise is the tightest, local noise grows with the number of parties."""
    blurs = {}
    for parties in (2, 6):
        for way in ("local", "joint"):
            options = dataclasses.replace(WAYS[way], noise="laplace")
            job = make_job(way, parties=parties, protocol=options, budget=Budget(epsilon=1.0))
            blurs[way, parties] = plan(job, records=2400).round_noise[0].centre_noise
    assert blurs["joint", 2] == pytest.approx(blurs["joint", 6])
    assert blurs["local", 2] == pytest.approx(2**0.5 * blurs["joint", 2])
    assert blurs["local", 6] == pytest.approx(6**0.5 * blurs["joint", 6])
