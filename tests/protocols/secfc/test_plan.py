"""What a plan says of SecFC: how records are coded, who learns what, and every byte."""

import numpy as np
import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.planning import plan
from cloister.protocols.secfc.agreement import Coding
from cloister.sessions import simulate


def make_job(parties=5, *, columns=2, data=None, budget=None, **options):
    return Job(
        name="coded",
        k=3,
        columns=tuple(Column(name=f"x{i}", low=-1, high=1) for i in range(columns)),
        parties=tuple(JobParty(name=f"p{i}") for i in range(parties)),
        protocol=make_options("secfc", **options),
        data=data or DataOptions(),
        budget=budget,
    )


def run(job, records):
    """Records without clusters: labels change in every round, and every column is measured again."""
    points = np.random.default_rng(1).uniform(-1, 1, (records, len(job.columns)))
    parts = np.array_split(points, len(job.parties))
    return simulate(job, sources={f"p{i}": part for i, part in enumerate(parts)}, seed=1, evaluate=False)


@pytest.mark.parametrize(
    "options",
    [
        {"iterations": 2},
        {"iterations": 2, "coordinate_bits": 27, "columns": 3, "segments": 2},
        {"iterations": 2, "budget": Budget(epsilon=4.0, delta=1e-6), "parties": 4},
        {"iterations": 2, "data": DataOptions(records=120)},
    ],
)
def test_bytes_are_those_of_a_run_that_needs_all_rounds(options):
    """Fewer come down where few labels change, which then travel as changes."""
    job = make_job(**options)
    planned, result = plan(job, records=120).traffic, run(job, 120)
    assert planned.at_most
    assert result.rounds == 2
    leader, *others = result.parties
    busiest = max(others, key=lambda party: party.bytes_sent)
    for link, party in ((planned.leader, leader), (planned.other, busiest)):
        assert link.bytes_up == party.bytes_sent
        assert party.bytes_received <= link.bytes_down <= 1.02 * party.bytes_received
        assert (link.messages_up, link.messages_down) == (party.messages_sent, party.messages_received)
    total = sum(party.bytes_sent + party.bytes_received for party in result.parties)
    assert total <= planned.total_bytes <= 1.02 * total


@pytest.mark.parametrize("id_column", [None, "pid"])
def test_bytes_of_many_records_are_in_proportion(id_column, monkeypatch):
    """Short sessions tell what a long one sends: with as many chunks, and as many messages for the columns."""
    job = make_job(4, data=DataOptions(id=id_column), iterations=3)
    monkeypatch.setattr(Coding, "chunk_rows", 400)
    monkeypatch.setattr(Coding, "columns_most", 2)
    short = plan(job, records=6000).traffic
    monkeypatch.setattr("cloister.protocols.secfc.plan._RECORDS_MEASURED", 6000)
    whole = plan(job, records=6000).traffic
    assert short.steps == whole.steps
    for one, other in ((short.leader, whole.leader), (short.other, whole.other)):
        assert (one.messages_up, one.messages_down) == (other.messages_up, other.messages_down)
        assert one.bytes_up == pytest.approx(other.bytes_up, rel=1e-3)
        assert one.bytes_down == pytest.approx(other.bytes_down, rel=1e-3)


def test_a_plan_says_what_the_coordinator_learns_and_how_records_are_coded():
    planned = plan(make_job(), records=240)
    assert "distance of every record" in planned.learned
    assert any("17 bits, one prime" in note for note in planned.notes)
    assert not any("--records" in note for note in planned.notes)
    assert "secfc has no noise" in planned.advice
    assert any("--records" in note for note in plan(make_job()).notes)


def test_a_plan_of_noisy_centres_says_that_labels_are_exact():
    planned = plan(make_job(budget=Budget(epsilon=4.0, delta=1e-6)), records=240)
    assert planned.advice.startswith("The labels are exact and follow from all records")
    assert planned.who_adds_noise.startswith("The coordinator codes the noise")
    assert [warning[:34] for warning in planned.warnings] == ["The coordinator adds the noise and"]
    exact = plan(make_job(), records=240)
    assert (exact.who_adds_noise, exact.warnings) == (None, ())


def test_other_epsilons_are_not_compared():
    with pytest.raises(ConfigError, match="epsilons must be left out with the protocol secfc"):
        plan(make_job(budget=Budget(epsilon=4.0, delta=1e-6)), records=240, epsilons=(1.0,))
