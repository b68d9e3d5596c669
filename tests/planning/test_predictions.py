"""What a plan says against what runs do: bytes and messages, and the noise that a card warns of."""

from __future__ import annotations

import pytest

from cloister.columns import Column
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.planning import plan
from cloister.protocols.synopsis.settings import Knobs
from cloister.sessions import simulate
from tests.sessions import blobs


def make_job(protocol, *, private, parties=3, **options):
    return Job(
        name="test",
        k=3,
        columns=tuple(Column(name=f"c{i}", low=0, high=10) for i in range(2)),
        parties=tuple(JobParty(name=f"p{i}") for i in range(parties)),
        protocol=make_options(**protocol),
        budget=Budget(epsilon=1.0, delta=1e-6) if private else None,
        **options,
    )


LLOYD = {"iterations": 3}
NOISY = {"name": "mask-noise-average", **LLOYD}


@pytest.mark.parametrize("parties", [2, 5])
@pytest.mark.parametrize(
    ("protocol", "private", "options"),
    [
        ({"knobs": Knobs(cells_max=500)}, True, {}),
        ({"placement": "local", "knobs": Knobs(cells_max=64)}, True, {"data": DataOptions(records=600)}),
        ({"name": "naive", **LLOYD}, False, {}),
        ({"name": "masked-sum-count", "ring": 64, **LLOYD}, False, {}),
        ({"name": "masked-sum-count", "start_by": "coordinator", **LLOYD}, False, {}),
        ({"name": "masked-centroid", **LLOYD}, False, {"data": DataOptions(max_records=1000)}),
        (NOISY, True, {"data": DataOptions(max_records=1000)}),
    ],
)
def test_bytes_and_messages_are_those_that_a_run_counts(protocol, private, options, parties):
    job = make_job(protocol, private=private, parties=parties, **options)
    tables = {f"p{i}": 5 + 5 * blobs(120, 2, 3, seed=i) for i in range(parties)}
    ran = simulate(job, seed=1, sources=tables, evaluate=False)
    made = plan(job, epsilons=(), quick=True)
    assert made.traffic.total_bytes == pytest.approx(ran.bytes_total, rel=0.02)
    for party, predicted in zip(ran.parties, [made.traffic.leader, *[made.traffic.other] * parties], strict=False):
        assert predicted.bytes_up == pytest.approx(party.bytes_sent, rel=0.02)
        assert predicted.bytes_down == pytest.approx(party.bytes_received, rel=0.02)
        assert (predicted.messages_up, predicted.messages_down) == (party.messages_sent, party.messages_received)


@pytest.mark.parametrize(
    ("placement", "shares"),
    [({}, 3), ({"placement": "local"}, 3), ({"placement": "aggregator"}, 1)],
    ids=["default", "local", "aggregator"],
)
def test_the_noise_of_a_round_of_noisy_lloyd_is_what_its_card_warns_of(placement, shares):
    """The scale on the card is that of one share."""
    job = make_job({**NOISY, **placement}, private=True)
    made = plan(job, records=600)
    (noise,) = made.round_noise
    assert made.cases == ()
    assert "not predicted" in made.advice
    assert noise.centre_noise == pytest.approx(4 * plan(job, records=2400).round_noise[0].centre_noise)
    tables = {f"p{i}": 5 + 5 * blobs(200, 2, 3, seed=i) for i in range(3)}
    card = simulate(job, seed=2, sources=tables, evaluate=False).card
    scale = card.releases[0].scale * 2.0**-16  # of the fixed-point grid
    assert noise.centre_noise == pytest.approx(shares**0.5 * scale / 200, rel=1e-6)
