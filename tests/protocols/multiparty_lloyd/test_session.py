"""Chapter 5 of the thesis: the result is Lloyd's, for any split, with any dropouts ."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from cloister.errors import ConfigError, LocalProtocolError, PrecisionError, TooFewPartiesError
from cloister.kmeans import ConstrainedExclusive
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.runtime import Fault, FaultKind
from tests.owners import told_to_owner
from tests.protocols.multiparty_lloyd.oracle import plain_lloyd
from tests.protocols.multiparty_lloyd.sessions import make_session, split
from tests.sessions import blobs

EXACT = ["naive", "masked-sum-count"]
VARIANTS = [*EXACT, "masked-centroid"]
POINTS = blobs(300, 2, 3, seed=5)
START = tuple(tuple(row) for row in POINTS[[0, 100, 200]])


def given_start(**options):
    return {"initialisation": "given", "start": START, **options}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("parties", [2, 3, 5])
def test_all_parties_end_with_the_same_centres(variant, parties):
    run, members = make_session(variant, records=split(POINTS, parties)).run()
    assert run.result.rounds == 4
    for party in members:
        assert party.finished
        assert np.array_equal(party.centres, members[0].centres)
    assert members[0].centres.shape == (3, 2)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=300, max_size=300), st.sampled_from(EXACT))
def test_any_split_gives_scikit_learns_lloyd(owners, variant):
    """Bit-identical for every split; scikit-learn's on the same grid up to the last bits of a double."""
    owners = np.array(owners)
    parts = [POINTS[owners == party] for party in range(1, 7) if (owners == party).any()]
    if len(parts) < 2:
        return
    session = make_session(variant, records=parts, **given_start())
    _, parties = session.run()
    whole = make_session(variant, records=[POINTS, POINTS[:1][:0]], **given_start())
    _, reference = whole.run()
    assert np.array_equal(parties[0].centres, reference[0].centres)
    grid = session.agreement.fixed_point.quantise(POINTS)
    sklearn = KMeans(3, init=np.array(START), n_init=1, max_iter=4, tol=0, algorithm="lloyd").fit(grid)
    assert np.allclose(parties[0].centres, sklearn.cluster_centers_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bits", [8, 16, 24])
def test_quantisation_moves_a_centre_by_at_most_its_bound(bits):
    """Each coordinate of a record moves by at most 2^-(bits+1), and so does the mean of the same records."""
    session = make_session(records=split(POINTS, 3), fractional_bits=bits, **given_start())
    _, parties = session.run()
    sklearn = KMeans(3, init=np.array(START), n_init=1, max_iter=4, tol=0, algorithm="lloyd").fit(POINTS)
    assert np.abs(parties[0].centres - sklearn.cluster_centers_).max() <= 2.0 ** -(bits + 1)


def test_average_of_averages_is_not_the_average():
    """The example of 5.4: (1,2,3) and (2,3) give 2.25 by centroids and 2.2 by sums and counts; here in units of 4."""
    records = [np.array([[1.0], [2.0], [3.0]]) / 4, np.array([[2.0], [3.0]]) / 4]
    options = {"clusters": 1, "iterations": 1, "initialisation": "given", "start": ((0.0,),)}
    for variant, mean in [("masked-centroid", 2.25), ("masked-sum-count", 2.2), ("naive", 2.2)]:
        _, parties = make_session(variant, records=records, **options).run()
        assert parties[0].centres[0, 0] * 4 == pytest.approx(mean, abs=1e-4)


def test_equal_cluster_sizes_make_the_centroid_protocol_exact():
    points = np.vstack([np.full((10, 2), -0.5), np.full((10, 2), 0.5)]) + blobs(20, 2, 1, 1, 0.01) * 0.01
    parts = [points[::2], points[1::2]]
    options = {
        "clusters": 2,
        "initialisation": "given",
        "start": ((-0.4, -0.4), (0.4, 0.4)),
        "fractional_bits": 20,
    }
    centres = [make_session(v, records=parts, **options).run()[1][0].centres for v in VARIANTS]
    assert np.allclose(centres[1], centres[2], atol=2**-19)


def test_a_cluster_that_nobody_joins_keeps_its_centre():
    far = ((0.9, -0.9),)
    start = (*START[:2], *far)
    points = np.clip(POINTS, -1, 0.2)
    for variant in VARIANTS:
        session = make_session(variant, records=split(points, 3), initialisation="given", start=start, iterations=1)
        _, parties = session.run()
        assert np.allclose(parties[0].centres[2], far[0], atol=2**-15)


@pytest.mark.parametrize("variant", EXACT)
@pytest.mark.parametrize("kind", [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY])
def test_every_dropout_set_at_every_step(variant, kind):
    """Exhaustively for four parties: the exact result of who was in each round's sum, or a typed abort."""
    session = make_session(variant, records=split(POINTS[:40], 4), iterations=2, **given_start())
    for step in range(session.agreement.steps):
        for size in range(5):
            for gone in itertools.combinations(range(1, 5), size):
                check_dropout(session, [Fault(kind, party, step) for party in gone])


@pytest.mark.parametrize("parties", [2, 3, 5, 6])
def test_every_dropout_set_of_more_parties_in_the_rounds(parties):
    session = make_session(records=split(POINTS[:60], parties), iterations=2, **given_start())
    for step, size in itertools.product((3, 4), range(parties + 1)):
        for gone in itertools.combinations(range(1, parties + 1), size):
            check_dropout(session, [Fault(FaultKind.DROP_REPLY, party, step) for party in gone])


def check_dropout(session, faults):
    try:
        run, parties = session.run(faults=faults)
    except TooFewPartiesError as error:
        assert f"at least 2 of {session.agreement.parties} parties" in str(error)
        return
    expected = plain_lloyd(session.records, np.array(START), run.result.members)[-1]
    finished = [party for party in parties if party.finished]
    for party in finished:
        assert np.allclose(party.centres, expected, rtol=0, atol=1e-12)
    assert all(len(members) >= 2 for members in run.result.members)


def test_a_party_that_was_away_comes_back_and_catches_up():
    session = make_session(records=split(POINTS, 3), iterations=6, **given_start())
    away = [Fault(FaultKind.DROP_REQUEST, 2, step) for step in (4, 5)]
    run, parties = session.run(faults=away)
    assert run.result.members == ((1, 2, 3), (1, 3), (1, 3), (1, 2, 3), (1, 2, 3), (1, 2, 3))
    assert np.array_equal(parties[0].centres, parties[1].centres)
    assert run.traffic[2].steps_missed == 2


def test_the_centroid_protocol_averages_over_who_stayed():
    records = [np.full((4, 1), value) for value in (-0.25, 0.5, 0.75)]
    session = make_session(
        "masked-centroid", records=records, clusters=1, iterations=1, initialisation="given", start=((0.0,),)
    )
    _, parties = session.run(faults=[Fault(FaultKind.DROP_REPLY, 1, 3)])
    assert parties[0].centres[0, 0] == pytest.approx((0.5 + 0.75) / 2, abs=3 * 2**-16)


@pytest.mark.parametrize("variant", ["masked-sum-count", "masked-centroid"])
@pytest.mark.parametrize("start_by", ["parties", "coordinator"])
@pytest.mark.parametrize("initialisation", ["random", "sphere-packing"])
def test_both_ways_to_start(variant, start_by, initialisation):
    session = make_session(variant, records=split(POINTS, 2), start_by=start_by, initialisation=initialisation)
    _, parties = session.run()
    assert np.array_equal(parties[0].centres, parties[1].centres)
    assert (np.abs(parties[0].centres) <= 1).all()


def test_naive_stops_when_nothing_moves():
    session = make_session("naive", records=split(POINTS, 2), iterations=100, tolerance=1e-9, **given_start())
    run, parties = session.run()
    assert run.result.rounds < 100
    assert np.array_equal(run.result.centres, parties[0].centres)
    assert make_session(records=split(POINTS, 2)).run()[0].result.centres is None


def test_constrained_assignment_runs_through_the_protocol():
    exclusive = ConstrainedExclusive(alpha_min=1.05, alpha_max=1.05)
    _, parties = make_session(records=split(POINTS, 2), assignment=exclusive, **given_start()).run()
    free = make_session(records=split(POINTS, 2), **given_start()).run()[1]
    assert np.array_equal(parties[0].centres, parties[1].centres)
    assert not np.allclose(parties[0].centres, free[0].centres)


def test_more_records_than_the_public_cap_are_refused_before_anything_is_sent():
    session = make_session(records=split(POINTS, 2), max_records=20, clusters=1, initialisation="random")
    with told_to_owner(PrecisionError, "max_records = 20"):
        session.run()


def test_the_ring_follows_from_public_bounds():
    def ring(**options):
        return make_session(records=split(POINTS, 2), **options).agreement.ring.bits

    assert ring(max_records=16383) == 32  # 2 * 16383 * 2^16 < 2^31
    assert ring(max_records=16384) == 64
    assert ring(max_records=2**31) == 64
    assert ring(variant="masked-centroid", max_records=2**31) == 32
    with pytest.raises(PrecisionError, match="declare a smaller max_records"):
        ring(max_records=16384, ring_bits=32)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"variant": "secret"}, "variant must be one of naive"),
        ({"clusters": 0}, "clusters must be at least 1; got 0"),
        ({"iterations": 0}, "iterations must be from 1"),
        ({"members_min": 3}, "members_min must be from 1 to 2"),
        ({"tolerance": 0.1}, "coordinator cannot see"),
        ({"tolerance": float("nan")}, "tolerance must be finite"),
        ({"initialisation": "given"}, "start must have 3 rows of 2 numbers; got 0"),
        ({"initialisation": "given", "start": ((0.0,),) * 3}, "start must have 3 rows of 2"),
        ({"initialisation": "given", "start": ((0.0, 1.5),) * 3}, "within the public bounds"),
        ({"initialisation": "given", "start": ((0.0, float("nan")),) * 3}, "within the public bounds"),
        ({"start": START}, "start must be empty"),
        ({"max_records": 0}, "max_records must be from 1"),
        ({"fractional_bits": 0}, "fractional_bits"),
        ({"variant": "naive", "start_by": "parties"}, "Set start_by = 'coordinator'"),
    ],
)
def test_bad_parameters_are_refused_with_what_must_hold(options, problem):
    with pytest.raises(ConfigError, match=problem):
        make_session(records=split(POINTS, 2), **options)


def test_agreements_that_differ_anywhere_have_different_digests():
    base = make_session(records=split(POINTS, 2)).agreement
    changed = {
        "iterations": 5,
        "context": "other columns",
        "members_min": 1,
        "max_records": 9,
        "fractional_bits": 15,
        "start_by": "coordinator",
        "variant": "masked-centroid",
    }
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    digests = {Agreement(**{**fields, name: value}).digest for name, value in changed.items()} | {base.digest}
    assert len(digests) == len(changed) + 1


def test_a_session_of_strangers_does_not_open():
    session = make_session(records=split(POINTS, 2))
    other = make_session(records=split(POINTS, 2), iterations=9)
    session.party = lambda number: other.party(number) if number == 2 else type(session).party(session, number)
    with pytest.raises(TooFewPartiesError, match="at least 2 of 2"):
        session.run()


def test_centres_are_there_only_after_the_end():
    with pytest.raises(LocalProtocolError, match="must be finished"):
        _ = make_session(records=split(POINTS, 2)).party(1).centres


def test_sums_that_doubles_could_round_are_refused():
    with pytest.raises(PrecisionError, match="below 2\\^53 to be exact"):
        make_session(records=split(POINTS, 2), fractional_bits=30, max_records=2**23)


def test_a_party_whose_backlog_fits_no_message_is_left_behind_and_the_others_go_on(monkeypatch):
    session = make_session(records=split(POINTS, 3), iterations=6, **given_start())
    monkeypatch.setattr(type(session.agreement), "backlog_max", 2)
    run, parties = session.run(faults=[Fault(FaultKind.DROP_REQUEST, 3, step) for step in range(4, 8)])
    assert run.result.members[1:] == ((1, 2),) * 5
    assert parties[0].finished
    assert not parties[2].finished
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="must fit a message"):
        make_session(records=[np.zeros((1, 800))] * 2, clusters=50_000, initialisation="random")
