"""One table: the same algorithm, prices and books as between parties; its owner adds the noise, and sends nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cloister import Budget, Column, Job, JobParty, OwnSide, Setup, make_options, plan, simulate
from cloister.audit import audit
from cloister.crypto import Stream
from cloister.errors import BudgetError, ConfigError, DataError
from cloister.exposure import compare_everything
from cloister.privacy.accounting import Accountant
from cloister.privacy.ledger import Ledger
from cloister.privacy.placement import Owner
from cloister.privacy.release import NoiseDuty
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import OwnInput, PublicInput, Seat, find_protocol, placeholder_directory, prepare_audit
from cloister.protocols.guided_sums import alone
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.guided_sums.party import release_answer
from cloister.records import ArrayRecords
from tests.sessions import identity

CENTRES = np.array([[2.0, 1.0], [8.0, 1.5], [5.0, 4.0]])
JOB = Job(
    name="one",
    k=3,
    columns=(Column(name="length", low=0, high=10), Column(name="width", low=0, high=5)),
    parties=(JobParty(name="north"),),
    budget=Budget(epsilon=1.0, delta=1e-6),
)


def draw_table(rows=3000):
    rng = np.random.default_rng(0)
    return CENTRES[rng.integers(3, size=rows)] + rng.normal(0, 0.2, (rows, 2))


def test_one_table_finds_its_clusters_and_says_what_is_promised():
    result = simulate(JOB, sources={"north": draw_table()})
    found = result.centres[np.argsort(result.centres[:, 0])]
    assert np.abs(found - CENTRES[np.argsort(CENTRES[:, 0])]).max() < 0.2
    assert result.ran == "by its owner"
    assert result.ring_bits is None
    assert result.messages_total == 0
    assert abs(result.sizes.total - 3000) < 10 * result.sizes.total_noise
    card = result.card
    assert card.private
    assert card.epsilon <= 1.0
    assert card.protects_against == "Whoever sees the result learns nothing of any record beyond epsilon 1."
    assert "whoever holds the table" in card.breaks_if
    assert not any("part" in sentence.split() for sentence in card.not_promised)
    assert {row.role: row.how for row in result.leakage} == {
        "the table's owner": "exactly",
        "whoever sees the result": "with DP noise",
        "everyone": "exactly",
    }


def test_it_finds_what_a_rehearsal_with_the_same_noise_finds():
    protocol = find_protocol(JOB)
    agreed = protocol.agree(JOB, placeholder_directory(JOB), PublicInput())
    records = ArrayRecords(agreed.agreement.settings.fixed_point.quantise(JOB.to_unit(draw_table())))
    books = Accountant(JOB.budget)
    seat = Seat(number=1, identity=identity(1, 1), entropy=Stream.from_seed(5, "keys"), session=bytes(16))
    duty = NoiseDuty(charger=books, sampler=SimulationSampler(Stream.from_seed(5, "noise")))
    party = protocol.seat(agreed, seat, OwnInput(records=records), duty=duty)
    outcome = protocol.work_alone(agreed, party)
    wanted = rehearse(
        agreed.agreement.settings,
        [records],
        pipeline=agreed.algorithm,
        sampler=SimulationSampler(Stream.from_seed(5, "noise")),
        stream=Stream(Stream.from_seed(5, "keys").bytes(32)),
    )
    assert np.array_equal(protocol.find(agreed, party, outcome).centres, wanted.finding.centres)
    assert books.spent().releases == wanted.releases


def test_the_noise_is_the_whole_noise_wanted_once():
    settings = find_protocol(JOB).agree(JOB, placeholder_directory(JOB), PublicInput()).agreement.settings
    assert settings.placement == Owner()
    assert settings.placement.mechanism_for_share(settings.target) == settings.target
    assert settings.placement.released_mechanism(settings.target) == settings.target


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": Budget(epsilon=1.0, delta=1e-6, unit="client")}, "not be all of the only party's records"),
        ({"protocol": make_options("naive"), "budget": None}, "at least 2 with the protocol naive; got 1"),
        ({"protocol": make_options(placement="local")}, "protocol.placement must be left out with one party"),
        ({"protocol": make_options(masks="double")}, "protocol.masks must be left out with one party"),
        ({"parties": ()}, "parties must be at least 1"),
    ],
)
def test_what_is_between_parties_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(JOB, **changes)


def test_no_coordinator_can_be_seated():
    protocol = find_protocol(JOB)
    agreed = protocol.agree(JOB, placeholder_directory(JOB), PublicInput())
    with pytest.raises(ConfigError, match="two parties or more to be coordinated"):
        protocol.coordinate(agreed, session=bytes(16), entropy=Stream.from_seed(1, "x"))


def test_the_owner_is_told_what_is_wrong_on_the_own_side(tmp_path):
    with pytest.raises(DataError):
        simulate(JOB, sources={"north": np.array([[1.0, np.nan]])})
    ledger = Ledger(tmp_path / "north.ledger")
    ledger.set_cap("patients", Budget(epsilon=1.2, delta=1e-6), reason="a test")
    side = OwnSide(ledger=tmp_path / "north.ledger", dataset="patients")
    setup = Setup(job=JOB, own={"north": side})
    simulate(setup, sources={"north": draw_table()})
    with pytest.raises(BudgetError, match="spent 1"):
        simulate(setup, sources={"north": draw_table()})


def test_a_plan_sends_nothing():
    made = plan(JOB, records=3000, quick=True)
    assert made.traffic.total_bytes == made.traffic.steps == 0
    assert made.placements == ()
    assert "wire" not in " ".join(made.what_runs)


FEW_NUMBERS = replace(JOB, protocol=make_options(knobs={"cells_max": 16, "rounds_max": 2, "restarts": 1}))


def count_violations(runs=400):
    prepared = prepare_audit(FEW_NUMBERS)
    return audit(prepared.attacks, claim=prepared.claim, stream=Stream.from_seed(3, "audit"), runs=runs).violates


def test_the_audit_finds_nothing_and_nothing_else_shows():
    assert not count_violations()
    assert not compare_everything(Setup(job=FEW_NUMBERS), pairs=1).exposed


class NoNoise:
    is_simulation = True

    def draw(self, mechanism, entries, on_progress=None):
        return np.zeros(entries, dtype=np.int64)


def forget_noise(agreement, round_, query, records, *, duty):
    """A mutant: the exact answer."""
    return release_answer(agreement, round_, query, records, duty=replace(duty, sampler=NoNoise()))


def test_the_audit_catches_an_owner_that_adds_no_noise(monkeypatch):
    monkeypatch.setattr(alone, "release_answer", forget_noise)
    assert count_violations()
