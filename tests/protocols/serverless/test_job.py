"""Jobs in a ring, end to end: the three ways to add noise without a server, what they cost, and what a plan says."""

import dataclasses

import msgspec
import numpy as np
import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, Setup, make_options
from cloister.planning import plan
from cloister.privacy.placement import Aggregator, Local
from cloister.protocol import PublicInput, find_protocol, placeholder_directory
from cloister.protocols.multiparty_lloyd.agreement import make_terms
from cloister.sessions import simulate

CENTRES = np.array([[20.0, 20.0], [60.0, 25.0], [40.0, 70.0], [80.0, 80.0]])
WAYS = {
    "local": make_options("fastlloyd", topology="ring", placement="local"),
    "shared": make_options("fastlloyd", topology="ring", placement="shared", colluding_max=1),
    "joint": make_options("fastlloyd", topology="ring", placement="joint", noise="laplace"),
    "mask-noise-average": make_options(
        "mask-noise-average", topology="ring", placement="joint", noise="laplace", iterations=5
    ),
}


def tables(parties, seed=1):
    rng = np.random.default_rng(seed)
    points = np.clip(np.concatenate([rng.normal(centre, 4, (600, 2)) for centre in CENTRES]), 0, 100)
    return dict(zip("abcdef"[:parties], np.array_split(rng.permutation(points), parties), strict=True))


def make_job(way, *, parties=3, epsilon=2.0, **changes):
    job = Job(
        name="ring",
        k=4,
        columns=(Column(name="x", low=0, high=100), Column(name="y", low=0, high=100)),
        parties=tuple(JobParty(name=name) for name in "abcdef"[:parties]),
        protocol=WAYS[way],
        budget=Budget(epsilon=epsilon, delta=1e-6),
        data=DataOptions(max_records=2400),
    )
    return dataclasses.replace(job, **changes)


@pytest.mark.parametrize("way", ["local", "shared", "joint"])
def test_the_clusters_are_found_without_a_server(way):
    result = simulate(make_job(way), seed=3, sources=tables(3))
    distances = np.linalg.norm(result.centres[:, None] - CENTRES, axis=2).min(axis=0)
    assert distances.max() < 2.5
    assert result.variant == "in a ring"
    assert {row.role for row in result.leakage} == {"the relay", "each party", "everyone"}


@pytest.mark.parametrize("way", WAYS)
def test_the_budget_is_spent_and_not_more(way):
    card = simulate(make_job(way), sources=tables(3)).card
    assert 0.99 * 2 < card.epsilon <= 2
    assert card.private
    assert "relay" in card.protects_against


def test_the_card_says_who_knows_the_noise():
    cards = {way: simulate(make_job(way), seed=3, sources=tables(3)).card for way in ("local", "shared", "joint")}
    assert "Nobody" in cards["local"].who_could_subtract
    assert "own share" in cards["shared"].who_could_subtract
    assert "Not even 2 of the 3 parties" in cards["joint"].who_could_subtract
    assert "dealt the randomness" in cards["joint"].breaks_if
    assert "2^-80" in cards["joint"].who_adds_noise


def test_two_parties_in_a_ring_are_warned():
    card = simulate(make_job("local", parties=2), seed=3, sources=tables(2)).card
    assert any(warning.startswith("Two parties") for warning in card.warnings)


@pytest.mark.parametrize(("way", "parties"), [("local", 2), ("shared", 4), ("joint", 3)])
def test_a_plan_forecasts_the_bytes_that_a_run_counts(way, parties):
    job = make_job(way, parties=parties)
    forecast = plan(job, records=2400).traffic
    run = simulate(job, seed=3, sources=tables(parties))
    total = sum(party.bytes_sent + party.bytes_received for party in run.parties)
    assert forecast.total_bytes == pytest.approx(total, rel=2e-3)
    assert forecast.leader.messages_up == run.parties[0].messages_sent


def test_one_joint_noise_is_less_than_one_from_each_party():
    """Thesis 7.3: the joint noise is the tightest, local noise grows with the number of parties."""
    noises = {}
    for parties in (2, 6):
        for way in ("local", "joint"):
            options = msgspec.structs.replace(WAYS[way], noise="laplace")
            job = make_job(way, parties=parties, protocol=options)
            noises[way, parties] = agree(job).noise.count_noise
    assert noises["joint", 2] == pytest.approx(noises["joint", 6])
    assert noises["local", 2] == pytest.approx(2**0.5 * noises["joint", 2], rel=1e-3)
    assert noises["local", 6] == pytest.approx(6**0.5 * noises["joint", 6], rel=1e-3)


def agreement_of(way, parties=5):
    return agree(make_job(way, parties=parties))


def agree(job):
    return find_protocol(job).agree(job, placeholder_directory(job), PublicInput()).agreement


def test_no_mask_is_ever_restored_where_noise_is_joint():
    terms = make_terms(agreement_of("joint"))
    assert not terms.sums.shares_masks


def test_more_parties_than_may_collude_are_needed_where_noise_is_shared():
    for colluding in (1, 2, 3, 4):
        options = msgspec.structs.replace(WAYS["shared"], colluding_max=colluding)
        job = make_job("shared", parties=5, protocol=options)
        sums = make_terms(agree(job)).sums
        assert sums.restorers > colluding
        assert 2 * sums.members_min > 5 + colluding


def test_noise_by_an_aggregator_is_refused_in_a_ring():
    agreement = agreement_of("local")
    plan_ = dataclasses.replace(agreement.noise, placement=Aggregator())
    with pytest.raises(ConfigError, match="noise by the aggregator must have an aggregator"):
        make_terms(dataclasses.replace(agreement, noise=plan_))


def test_the_kind_of_placement_is_part_of_what_is_agreed():
    agreement = agreement_of("mask-noise-average")
    other = dataclasses.replace(agreement.noise, placement=Local(parties=5))
    assert dataclasses.replace(agreement, noise=other).digest != agreement.digest


def test_a_part_of_delta_is_kept_back_for_the_law_of_joint_noise():
    assert 0.998e-6 < agreement_of("joint").noise.budget.delta < 1e-6
    card = simulate(make_job("joint"), sources=tables(3)).card
    assert card.delta == pytest.approx(1e-6, rel=1e-9)
    assert card.budget_delta == 1e-6
    with pytest.raises(ConfigError, match=r"budget\.delta must be greater than 0 with this noise"):
        make_job("joint", budget=Budget(epsilon=1.0, delta=0.0))


def test_nothing_is_paid_for_a_job_that_cannot_run(tmp_path):
    """Whatever public values rule out is refused before a ledger pays for all rounds."""
    options = msgspec.structs.replace(WAYS["joint"], initialisation="random")
    columns = tuple(Column(name=f"x{i}", low=0, high=1) for i in range(100))
    job = make_job("joint", protocol=options, k=400, columns=columns)
    own = {name: OwnSide(ledger=tmp_path / f"{name}.ledger") for name in "abc"}
    with pytest.raises(ConfigError, match=r"joint noise|one round"):
        simulate(Setup(job=job, own=own), sources={name: np.zeros((3, 100)) for name in "abc"})
    assert not list(tmp_path.rglob("*.ledger"))
