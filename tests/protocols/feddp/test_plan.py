"""Plans of jobs of FedDP-KMeans: which protocol and why, noise, and the bytes that a run counts."""

import dataclasses

import numpy as np
import pytest

from cloister.errors import ConfigError
from cloister.job import Setup
from cloister.planning import plan
from cloister.privacy.mechanisms import DiscreteGaussian
from cloister.privacy.placement import Shared
from cloister.privacy.units import Unit
from cloister.protocols.feddp.options import FeddpOptions, FeddpSection
from cloister.sessions import simulate
from tests.protocols.feddp.test_job import SERVER, SOURCES, make_job

PARTIES = {name: part for name, part in SOURCES.items() if name != "server"}


@pytest.fixture
def setup(tmp_path):
    """A job whose server's data are in a file, as a plan needs them."""
    columns = ",".join(f"x{i}" for i in range(7))
    np.savetxt(tmp_path / "server.csv", SERVER, delimiter=",", header=columns, comments="")
    return Setup(job=make_job(epsilon=1.0, server="server.csv"), folder=tmp_path, seed=5)


def change(setup, **options):
    return dataclasses.replace(setup, job=dataclasses.replace(setup.job, **options))


def test_a_plan_explains_which_protocol_and_why(setup):
    told = plan(setup, records=600)
    assert told.protocol == "feddp"
    assert "the job names feddp and server data" in told.why
    assert "36 points were read: they are public" in told.notes[0]
    assert 'compare with name = "synopsis"' in told.advice
    published = plan(change(setup, protocol=FeddpOptions(variant="published")), records=600)
    assert "the job names feddp, as published" in published.why
    assert any("Delta^2" in note for note in published.notes)
    assert "This reproduces the paper" in published.advice
    without = plan(make_job(epsilon=1.0), records=600, quick=True)
    assert (without.protocol, "the synopsis is used" in without.why) == ("synopsis", True)


def test_noise_goes_with_the_number_of_records_the_sample_and_the_budget(setup):
    def noise(setup, records=600):
        return plan(setup, records=records).round_noise[0].centre_noise

    usual = noise(setup)
    assert usual > 0
    assert noise(setup, records=1200) == pytest.approx(usual / 2)
    once = noise(change(setup, protocol=FeddpOptions(placement="aggregator")))
    shared = Shared(parties=6, colluding_max=1, quorum=5)  # the default: one of six may be missing, and one collude
    target = DiscreteGaussian(sigma=1e6)  # of any size
    assert usual / once == pytest.approx((shared.total_variance(target) / target.sigma**2) ** 0.5, rel=1e-6)
    sampled = change(setup, protocol=FeddpOptions(section=FeddpSection(sample=3)))
    assert noise(sampled) == pytest.approx(2 * once), "the coordinator adds the noise where a sample is asked"
    assert any("asks 3 of 6 parties" in note for note in plan(sampled, records=600).notes)
    clients = plan(change(setup, budget=dataclasses.replace(setup.job.budget, unit=Unit.CLIENT)), records=600)
    assert clients.round_noise == ()
    assert any("noise hides its whole table" in note for note in clients.notes)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"variant": "published"},
        {"section": FeddpSection(simplify=True)},
        {"placement": "local"},
        {"placement": "aggregator"},
    ],
    ids=["tight", "published", "simplify", "local", "aggregator"],
)
def test_bytes_and_messages_are_those_that_a_run_counts(setup, options):
    setup = change(setup, protocol=FeddpOptions(**options))
    told, result = plan(setup, records=600).traffic, simulate(setup, sources=PARTIES, evaluate=False)
    for party, predicted in zip(result.parties, [told.leader, *[told.other] * 5], strict=True):
        assert (predicted.bytes_up, predicted.bytes_down) == (party.bytes_sent, party.bytes_received)
        assert (predicted.messages_up, predicted.messages_down) == (party.messages_sent, party.messages_received)


def test_with_a_sample_bytes_are_the_most_that_a_party_sends(setup):
    setup = change(setup, protocol=FeddpOptions(section=FeddpSection(sample=3)))
    told, result = plan(setup, records=600).traffic, simulate(setup, sources=PARTIES, evaluate=False)
    assert told.at_most
    assert all(party.bytes_sent < told.leader.bytes_up for party in result.parties)


def test_epsilons_are_compared_for_the_synopsis_only(setup):
    with pytest.raises(ConfigError, match="epsilons must be left out with the protocol feddp"):
        plan(setup, records=600, epsilons=(0.5,))


def test_other_placements_are_compared_where_the_protocol_takes_them(setup):
    rows = {row.placement: row for row in plan(setup, records=600).placements}
    assert [row.placement for row in rows.values() if row.chosen] == ["shared"]
    needed = {kind: row.variance_ratio for kind, row in rows.items()}
    assert needed == pytest.approx({"aggregator": 1, "shared": 6 / 4, "local": 6}, rel=1e-9)
    for options in (FeddpOptions(variant="published"), FeddpOptions(section=FeddpSection(sample=3))):
        assert plan(change(setup, protocol=options), records=600).placements == ()
