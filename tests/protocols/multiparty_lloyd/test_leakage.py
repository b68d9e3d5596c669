"""What each role receives is what thesis tables 5.1-5.3 allow, and the tests that say so can fail."""

import itertools

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation import MaskSchedule
from cloister.aggregation.messages import Answered, Conclude, MeetPeers, Opened, OpenTotal, Settle, Total, Voted
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.privacy.units import Learns
from cloister.protocols.multiparty_lloyd.agreement import LEAKAGE
from cloister.protocols.multiparty_lloyd.messages import (
    LocalUpdate,
    MaskedRound,
    NaiveFinish,
    NaiveRound,
)
from cloister.wire import Array
from cloister.wire.codec import DTYPES
from tests.protocols.multiparty_lloyd.oracle import local_sums, plain_lloyd
from tests.protocols.multiparty_lloyd.sessions import make_session, split
from tests.sessions import blobs

ALPHA = 1e-6
VALUES = ("C_li", "S_li", "C_i", "S_i", "mu_i")
MASKED = ["masked-sum-count", "masked-centroid"]
POINTS = blobs(90, 2, 3, seed=3)
START = tuple(tuple(row) for row in POINTS[[0, 30, 60]])


def session_of(variant, records=None, seed=7, **options):
    return make_session(
        variant,
        records=records or split(POINTS, 3),
        iterations=3,
        seed=seed,
        **{"initialisation": "given", "start": START, **options},
    )


# The thesis's tables, typed in from the text, so that the code's copy is checked against it and not against itself.
PRINTED = {
    "naive": {"coordinator": "yes yes yes yes yes", "party": "own own no no yes"},
    "masked-sum-count": {"coordinator": "no no no no no", "party": "own own yes yes yes"},
    "masked-centroid": {"coordinator": "no no no no no", "party": "own own no no yes"},
}
WORDS = {"yes": Learns.EXACT, "own": Learns.OWN, "no": Learns.NOTHING}


@pytest.mark.parametrize("variant", PRINTED)
def test_the_leakage_tables_are_the_printed_ones(variant):
    for role, row in PRINTED[variant].items():
        for value, word in zip(VALUES, row.split(), strict=True):
            assert LEAKAGE[variant].learns(role, value) is WORDS[word]


ALLOWED = {
    ("naive", 0): {Ready, LocalUpdate},
    ("naive", 1): {OpenSession, NaiveRound, NaiveFinish},
    ("masked", 0): {SessionOpened, SealedSeeds, Ready, Answered, Voted},
    ("masked", 1): {OpenSession, ShareSeed, TakeSeed, MaskedRound, Settle, Conclude},
    ("double", 0): {SessionOpened, SealedSeeds, Ready, Answered, Opened, Voted},
    ("double", 1): {OpenSession, ShareSeed, TakeSeed, MeetPeers, MaskedRound, OpenTotal, Settle, Conclude},
}


@pytest.mark.parametrize(("variant", "masks"), [*((name, "common") for name in PRINTED), ("masked-centroid", "double")])
def test_roles_receive_only_the_messages_of_the_protocol(variant, masks):
    run, _ = session_of(variant, masks=masks).run(record_views=True)
    family = "naive" if variant == "naive" else "double" if masks == "double" else "masked"
    for role, entries in run.views.items():
        assert {type(entry.message) for entry in entries} <= ALLOWED[family, min(role, 1)]
        assert entries


def arrays_in(value):
    """Every array in a message, however deep."""
    if isinstance(value, Array):
        return [np.frombuffer(value.data, DTYPES[value.code]).reshape(value.shape)]
    if isinstance(value, Answered | Total):
        words = np.frombuffer(value.vector if isinstance(value, Answered) else value.body, np.uint32)
        return [words[:-4]]  # less the check words
    if isinstance(value, tuple):
        return [array for item in value for array in arrays_in(item)]
    if hasattr(value, "__struct_fields__"):
        return [array for name in value.__struct_fields__ for array in arrays_in(getattr(value, name))]
    return []


def received_arrays(run, role):
    return [array for entry in run.views[role] for array in arrays_in(entry.message)]


def truth(session, run):
    """Every value of the table, for every round, as the integers or doubles in which it could appear."""
    scale = session.agreement.fixed_point.scale
    path = [np.array(START), *plain_lloyd(session.records, np.array(START), run.result.members)]
    found = {value: [] for value in VALUES}
    for centres, after in itertools.pairwise(path):
        locals_ = [local_sums(part, centres) for part in session.records]
        for sums, counts in locals_:
            found["C_li"].append(counts)
            found["S_li"].append(np.rint(sums * scale).astype(np.int64))
        found["C_i"].append(np.sum([c for _, c in locals_], axis=0))
        found["S_i"].append(np.rint(np.sum([s for s, _ in locals_], axis=0) * scale).astype(np.int64))
        found["mu_i"].append(after)
    return found


def appears(value, arrays):
    """Whether the numbers of a value stand in an array, as columns of it, in any of the encodings that are used."""
    for array in arrays:
        if array.size % len(value):
            continue
        rows = array.reshape(len(value), -1)
        flat = value.reshape(len(value), -1)
        forms = [flat.astype(np.float64)]
        if value.dtype.kind == "f":
            forms.append(np.rint(flat * 2**16).astype(np.float64))
        for form in forms:
            for at in range(rows.shape[1] - form.shape[1] + 1):
                window = rows[:, at : at + form.shape[1]]
                signed = window.view(f"<i{window.itemsize}") if window.dtype.kind == "u" else window
                if np.array_equal(signed.astype(np.float64), form):
                    return True
    return False


def test_naive_shows_the_coordinator_everything_and_the_parties_centres_only():
    """Table 5.1, cell by cell."""
    session = session_of("naive")
    run, _ = session.run(record_views=True)
    values = truth(session, run)
    at_coordinator = received_arrays(run, 0)
    for name in ("C_li", "S_li"):
        assert all(appears(value, at_coordinator) for value in values[name])
    for party in (1, 2, 3):
        at_party = received_arrays(run, party)
        assert all(appears(value, at_party) for value in values["mu_i"])
        for name in ("C_li", "S_li", "C_i", "S_i"):
            assert not any(appears(value, at_party) for value in values[name])


@pytest.mark.parametrize("variant", MASKED)
def test_no_value_reaches_the_masked_coordinator_and_no_others_values_reach_a_party(variant):
    """Tables 5.2 and 5.3: rows P_S, and columns C_li and S_li."""
    session = session_of(variant)
    run, _ = session.run(record_views=True)
    values = truth(session, run)
    for role in range(4):
        arrays = received_arrays(run, role)
        for name in VALUES:
            assert not any(appears(value, arrays) for value in values[name])
    sent = [array.tobytes() for array in received_arrays(run, 0)]
    for role in (1, 2, 3):  # not even under the mask does a party receive one other party's vector
        assert not {array.tobytes() for array in received_arrays(run, role)} & set(sent)


def test_the_search_finds_what_is_there(monkeypatch):
    """The mutant of the test above: parties that do not mask are caught by the same search."""
    monkeypatch.setattr(MaskSchedule, "_potential", lambda self, round_, index, length: np.zeros(length, np.uint32))
    session = session_of("masked-sum-count")
    run, _ = session.run(record_views=True)
    values = truth(session, run)
    for name in ("C_li", "S_li"):
        assert all(appears(value, received_arrays(run, 0)) for value in values[name])
    for name in ("C_i", "S_i"):
        assert all(appears(value, received_arrays(run, 1)) for value in values[name])


def test_parties_of_the_sum_count_protocol_learn_the_sums_and_counts():
    """Table 5.2, row P_l: unmasking gives S_i, C_i and hence mu_i."""
    session = session_of("masked-sum-count")
    run, parties = session.run(record_views=True)
    values = truth(session, run)
    totals = session.read_totals(run, parties[0], 1)
    assert len(totals) == 3
    for number, total in enumerate(totals):
        assert np.array_equal(total[:, -1], values["C_i"][number])
        assert np.array_equal(total[:, :-1], values["S_i"][number])


@pytest.mark.parametrize(("variant", "same"), [("naive", True), ("masked-centroid", True), ("masked-sum-count", False)])
def test_counts_are_hidden_where_the_tables_say_so(variant, same):
    """Doubling every record leaves all centres alone and doubles every count and sum.

    What a party receives in naive and in the centroid protocol is then the same, byte for byte, so it tells nothing of
    C_i and S_i; in the sum/count protocol it differs.
    """
    once, twice = split(POINTS, 3), [np.repeat(part, 2, axis=0) for part in split(POINTS, 3)]
    views = []
    for records in (once, twice):
        run, _ = session_of(variant, records).run(record_views=True)
        views.append([array.tobytes() for role in (1, 2, 3) for array in received_arrays(run, role)])
    assert (views[0] == views[1]) is same


def coordinator_bytes(records, seeds, variant):
    """High and low bytes of everything the coordinator receives in the first round, over fresh sessions."""
    collected = []
    for seed in seeds:
        session = session_of(variant, records, seed=seed, clusters=1, start=((0.0, 0.0),))
        run, _ = session.run(record_views=True)
        vectors = [array for array in received_arrays(run, 0) if array.dtype == np.uint32]
        collected += [byte for vector in vectors for byte in vector.tobytes()]
    return np.bincount(collected, minlength=256)


def same_distribution(variant):
    """P-value of "the coordinator's view does not depend on who holds what"; the two inputs have equal sums."""
    one = [np.full((4, 2), 0.5), np.full((4, 2), -0.5)]
    other = [np.full((4, 2), -0.25), np.full((4, 2), 0.25)]
    table = np.array([coordinator_bytes(one, range(100), variant), coordinator_bytes(other, range(100, 200), variant)])
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue


@pytest.mark.parametrize("variant", MASKED)
def test_inputs_with_equal_sums_look_the_same_to_the_coordinator(variant):
    assert same_distribution(variant) > ALPHA


# Mutants change f_t(i), of which masking and unmasking are both made: the sums stay right and only the masks get weak.
REAL = MaskSchedule._potential
MUTANTS = {
    "no mask": lambda self, round_, index, length: np.zeros(length, np.uint32),
    "constant mask": lambda self, round_, index, length: np.full(length, 12345 * index, np.uint32),
    "mask of half the word": lambda *which: REAL(*which) & np.uint32(0xFFFF),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_weak_masks_are_caught(name, monkeypatch):
    monkeypatch.setattr(MaskSchedule, "_potential", MUTANTS[name])
    assert same_distribution("masked-sum-count") < ALPHA


def round_differences(session):
    """Differences between a party's vectors of consecutive rounds, as the coordinator could take them."""
    run, _ = session.run(record_views=True)
    answers = [e.message for e in run.views[0] if e.sender == 1 and isinstance(e.message, Answered)]
    words = [arrays_in(answer)[0] for answer in answers]
    return np.concatenate([b - a for a, b in itertools.pairwise(words)])


def test_masks_are_fresh_in_every_round(monkeypatch):
    def large(session):
        return (round_differences(session).view(np.int32) >> 26 != 0).mean()  # far from a difference of true sums

    session = make_session(records=split(POINTS, 3), iterations=12, initialisation="given", start=START)
    assert large(session) > 0.5
    monkeypatch.setattr(MaskSchedule, "_potential", lambda self, round_, *which: REAL(self, 1, *which))
    assert large(session) < 0.5
