"""Thesis tables 7.2 and 7.3 for FastLloyd, sound and as published: what each role can make of what it receives.

Tables 5.1-5.3, and 7.2 for mask-noise-average, are tested with multiparty Lloyd.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation import MaskSchedule
from cloister.aggregation.messages import Answered
from cloister.privacy.placement import Local, Shared
from cloister.privacy.units import Learns
from cloister.protocols.multiparty_lloyd.agreement import LEAKAGE
from cloister.records import ArrayRecords
from tests.protocols.fastlloyd.sessions import POINTS, START, FastLloydSession, deal
from tests.protocols.multiparty_lloyd.test_leakage import ALLOWED, ALPHA, VALUES, appears, received_arrays

KINDS = ["sound", "published", "csulloyd", "sulloyd", "mna", "amn"]
# Typed in from the thesis; FastLloyd's own protocol is the centroid one, its sound form releases sums and counts.
PRINTED = {
    "mask-noise-average": {"coordinator": "no no no no no", "party": "own own DP DP DP"},
    "average-mask-noise": {"coordinator": "no no no no no", "party": "own own no no DP"},
    "fastlloyd": {"coordinator": "no no no no no", "party": "own own DP DP DP"},
}
WORDS = {"DP": Learns.NOISY, "own": Learns.OWN, "no": Learns.NOTHING}
TABLES = {"sound": "fastlloyd", "published": "average-mask-noise", "amn": "average-mask-noise"}


@pytest.mark.parametrize("variant", PRINTED)
def test_the_leakage_tables_are_the_printed_ones(variant):
    for role, row in PRINTED[variant].items():
        for value, word in zip(VALUES, row.split(), strict=True):
            assert LEAKAGE[variant].learns(role, value) is WORDS[word]


@pytest.mark.parametrize("kind", KINDS)
def test_each_variant_runs_under_its_table_and_sends_only_masked_messages(kind):
    session = FastLloydSession(kind, options={"iterations": 2})
    assert session.agreement.variant == TABLES.get(kind, "mask-noise-average")
    run, _ = session.run(record_views=True)
    for role, entries in run.views.items():
        assert entries
        assert {type(entry.message) for entry in entries} <= ALLOWED["masked", min(role, 1)]


@dataclass
class Truth:
    """Every value of the tables, round by round, from records and noise."""

    local: list = field(default_factory=list)
    exact: list = field(default_factory=list)
    noisy: list = field(default_factory=list)
    centres: list = field(default_factory=list)


def find_truth(session):
    truth, centres = Truth(), np.array(START)
    draws = iter(session.drawn())
    for round_ in range(1, session.agreement.iterations + 1):
        parts = [ArrayRecords(part) for part in session.records]
        local = [session.plan.rule.contribute(part, centres, round_, session.assignment) for part in parts]
        exact = np.sum(local, axis=0)
        shares = 1 if session.plan.by_coordinator else session.parties
        noisy = exact + sum(next(draws)[1].reshape(exact.shape) for _ in range(shares))
        centres = session.plan.rule.move(centres, noisy, round_=round_, members=session.parties)
        truth.local += local
        truth.exact.append(exact)
        truth.noisy.append(noisy)
        truth.centres.append(centres)
    return truth


def unmask(session, run, parties, number):
    """What one party can read: the total of each round."""
    return session.read_totals(run, parties[number - 1], number)


@pytest.mark.parametrize("kind", KINDS)
def test_no_value_reaches_the_coordinator_and_no_others_values_reach_a_party(kind):
    """Rows P_S, and columns C_li and S_li: neither sums, counts, local centroids nor centres, exact or noisy."""
    session = FastLloydSession(kind, options={"iterations": 3})
    run, _ = session.run(record_views=True)
    truth = find_truth(session)
    for role in range(4):
        arrays = received_arrays(run, role)
        for value in (*truth.local, *truth.exact, *truth.noisy, *truth.centres):
            assert not appears(value, arrays)
            assert not any(appears(column, arrays) for column in value.T)
    sent = {array.tobytes() for array in received_arrays(run, 0)}
    for role in (1, 2, 3):  # not even under the mask does a party receive one other party's vector
        assert not {array.tobytes() for array in received_arrays(run, role)} & sent


@pytest.mark.parametrize("kind", ["sound", "published"])
def test_the_search_finds_what_is_there(kind, monkeypatch):
    """The mutant of the test above: parties that do not mask."""
    monkeypatch.setattr(MaskSchedule, "_potential", lambda self, round_, index, length: np.zeros(length, np.uint32))
    session = FastLloydSession(kind, options={"iterations": 3})
    run, _ = session.run(record_views=True)
    truth = find_truth(session)
    assert all(appears(value, received_arrays(run, 0)) for value in truth.local)
    assert all(appears(value, received_arrays(run, 1)) for value in truth.noisy)


@pytest.mark.parametrize("placement", [None, Shared(parties=3, colluding_max=1), Local(parties=3)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_party_learns_the_exact_values_plus_exactly_the_noise_that_was_charged(kind, placement):
    """Row P_l: "DP", and what follows from it; each party reads the same."""
    session = FastLloydSession(kind, placement=placement, options={"iterations": 3})
    run, parties = session.run(record_views=True)
    truth = find_truth(session)
    for number in (1, 2, 3):
        totals = unmask(session, run, parties, number)
        assert len(totals) == 3
        assert all(np.array_equal(total, noisy) for total, noisy in zip(totals, truth.noisy, strict=True))
    assert all((noisy != exact).any() for noisy, exact in zip(truth.noisy, truth.exact, strict=True))
    assert np.array_equal(parties[0].centres, truth.centres[-1])
    if placement is not None:
        assert not session.duty.sampler.drawn  # it adds no noise, so it knows none


SLACK = {"alpha_min": 10.0, "alpha_max": 10.0}


@pytest.mark.parametrize(
    ("kind", "options", "hidden"),
    [
        ("amn", {"assignment": "unconstrained"}, True),
        ("amn", SLACK, True),
        ("published", SLACK, True),
        ("mna", {"assignment": "unconstrained"}, False),
        ("sound", {}, False),
    ],
)
def test_counts_are_hidden_where_table_7_3_says_so(kind, options, hidden):
    """Every record twice: all local centroids stay, all counts and sums double.

    With the same seeds and noise, what a party receives is then the same to the last bit in the centroid protocols: it
    tells nothing of C_i and S_i. Where sums and counts are released it differs.
    """
    views, counts = [], []
    for copies in (1, 2):
        parts = [np.repeat(part, copies, axis=0) for part in deal()]
        session = FastLloydSession(kind, parts=parts, records=400, options={"iterations": 3, **options})
        run, parties = session.run(record_views=True)
        arrays = [array.tobytes() for role in (1, 2, 3) for array in received_arrays(run, role)]
        views.append((arrays, parties[0].centres.tobytes()))
        counts.append(parties[0].state.released_counts)
    assert (views[0] == views[1]) is hidden
    assert (counts[0] is None) is hidden


def coordinator_bytes(kind, parts, seeds):
    """How often each byte comes in what the coordinator receives of the first round, over fresh sessions."""
    collected = np.zeros(256, dtype=np.int64)
    options = {"iterations": 1, **({} if kind == "sound" else SLACK)}
    for seed in seeds:
        session = FastLloydSession(kind, parts=parts, seed=seed, records=30, options=options)
        run, _ = session.run(record_views=True)
        for entry in run.views[0]:
            if isinstance(entry.message, Answered):
                collected += np.bincount(np.frombuffer(entry.message.vector, np.uint8), minlength=256)
    return collected


INPUTS = [deal(POINTS[:30]), [np.full((10, 2), 0.5 - 0.25 * party) for party in range(3)]]


def compare_views(kind):
    """P-value of "the coordinator's view is the same for other records": sums need not even be equal."""
    seeds = (range(60), range(60, 120))
    table = np.array([coordinator_bytes(kind, parts, part) for parts, part in zip(INPUTS, seeds, strict=True)])
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue, stats.chisquare(table.sum(axis=0)).pvalue


@pytest.mark.parametrize("kind", ["sound", "published"])
def test_what_the_coordinator_sees_is_uniform_whatever_the_records_are(kind):
    alike, uniform = compare_views(kind)
    assert alike > ALPHA
    assert uniform > ALPHA


REAL = MaskSchedule._potential
MUTANTS = {
    "no mask": lambda self, round_, index, length: np.zeros(length, np.uint32),
    "mask of half the word": lambda *which: REAL(*which) & np.uint32(0xFFFF),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_weak_masks_are_caught(name, monkeypatch):
    monkeypatch.setattr(MaskSchedule, "_potential", MUTANTS[name])
    assert min(compare_views("sound")) < ALPHA


# --- what breaks it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sound", "published"])
def test_a_coordinator_that_is_told_the_totals_takes_its_noise_away(kind):
    session = FastLloydSession(kind, options={"iterations": 2})
    run, parties = session.run(record_views=True)
    assert "once it sees the centres" in session.plan.placement.breaks_if(masked_twice=False)
    truth = find_truth(session)
    told = unmask(session, run, parties, 1)
    for total, (_, noise), exact in zip(told, session.duty.sampler.drawn, truth.exact, strict=True):
        assert np.array_equal(total - noise.reshape(total.shape), exact)


@pytest.mark.parametrize("kind", ["sound", "sulloyd"])
def test_with_two_parties_each_is_left_with_the_other_and_the_noise(kind):
    session = FastLloydSession(kind, parts=deal(parties=2), options={"iterations": 1})
    run, parties = session.run(record_views=True)
    (total,) = unmask(session, run, parties, 1)
    own, other = find_truth(session).local
    ((_, noise),) = session.duty.sampler.drawn
    assert np.array_equal(total - own, other + noise.reshape(other.shape))
