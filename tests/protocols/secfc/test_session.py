"""SecFC does what Lloyd's algorithm does on the rounded records, for every split, code and field."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, DataError, LocalProtocolError, PrecisionError, TooFewPartiesError
from cloister.field import FIELD61, FIELD122
from cloister.field.coded_records import CodedRecords
from cloister.privacy.units import Budget
from cloister.protocols.secfc.messages import ExchangeShares, HeldRecords, Measure
from cloister.protocols.secfc.party import SecfcParty
from cloister.records import ArrayRecords
from cloister.runtime import Fault, FaultKind
from tests.protocols.secfc.sessions import OPENING, SecfcSession, check_against_clear, spread
from tests.sessions import SESSION, blobs, identity, split


def deal_by_cluster(points, truth, clients, clusters_each):
    """Section 5.1: client j has records of at most k' clusters."""
    clusters = int(truth.max()) + 1
    holders = {
        h: [j for j in range(clients) if h in {(j * clusters_each + o) % clusters for o in range(clusters_each)}]
        for h in range(clusters)
    }
    owner = np.array([holders[int(h)][i % len(holders[int(h)])] for i, h in enumerate(truth)])
    return [points[owner == j] for j in range(clients)]


@pytest.mark.parametrize(
    ("clients", "privacy", "segments"),
    [(3, 1, 1), (4, 1, 1), (5, 2, 1), (5, 1, 2), (7, 3, 1), (7, 2, 2), (7, 1, 3), (10, 4, 1), (11, 3, 3)],
)
@pytest.mark.parametrize("dimensions", [3, 4])
def test_labels_of_every_round_and_centres_are_lloyds(clients, privacy, segments, dimensions):
    session = SecfcSession(
        split(spread(50, dimensions, seed=clients), clients), clusters=3, privacy=privacy, segments=segments
    )
    run, parties = session.run(record_views=True)
    assert run.result.rounds > 2
    assert run.result.revealed
    assert all(party.finished for party in parties)
    check_against_clear(session, run, parties)


@pytest.mark.parametrize("clusters_each", [1, 2, 4])
def test_how_records_are_split_over_clients_changes_nothing(clusters_each):
    """k' = 1, sqrt k and k: the same records in the same order give the same labels."""
    points = blobs(64, 3, 4, seed=5, spread=0.3)
    truth = np.arange(64) % 4
    session = SecfcSession(deal_by_cluster(points, truth, 8, clusters_each), clusters=4, privacy=2)
    run, parties = session.run(record_views=True)
    check_against_clear(session, run, parties)


@settings(max_examples=25, deadline=None)
@given(
    owner=st.lists(st.integers(0, 4), min_size=12, max_size=30),
    clusters=st.integers(1, 4),
    grid=st.integers(1, 3),
    seed=st.integers(0, 100),
    separate_after=st.sampled_from([None, 0, 2]),
)
def test_any_split_with_ties_duplicates_and_empty_clients(owner, clusters, grid, seed, separate_after):
    """On a coarse grid many records coincide and many distances tie."""
    points = np.random.default_rng(seed).integers(-grid, grid + 1, (len(owner), 2)) / grid
    points = np.round(points * 4) / 4
    session = SecfcSession(
        [points[np.array(owner) == party] for party in range(5)],
        clusters=clusters,
        privacy=2,
        options={"separate_after": separate_after},
    )
    run, parties = session.run(record_views=True)
    check_against_clear(session, run, parties)


def test_own_labels_come_in_the_order_of_the_table():
    session = SecfcSession(split(spread(40, 2, seed=1), 4))
    run, parties = session.run()
    for number, party in enumerate(parties, start=1):
        before = sum(len(part) for part in session.records[: number - 1])
        expected = run.result.labels[before : before + len(session.records[number - 1])]
        assert np.array_equal(party.finding.own_labels, expected)


def test_the_round_limit_ends_it():
    session = SecfcSession(split(spread(60, 2, seed=4), 3), clusters=4, options={"rounds_max": 2})
    run, parties = session.run(record_views=True)
    assert not run.result.converged
    assert run.result.rounds == 2
    check_against_clear(session, run, parties)


def test_separation_takes_place_on_clusters_that_are_far_apart():
    points = blobs(60, 2, 3, seed=2, spread=0.2)
    for separate_after, separated in ((None, False), (1, True), (2, True)):
        session = SecfcSession(split(points, 3), options={"separate_after": separate_after})
        run, parties = session.run(record_views=True)
        assert run.result.separated == separated
        check_against_clear(session, run, parties)


def test_two_primes_where_one_is_too_small():
    session = SecfcSession(split(spread(40, 3, seed=3), 5), privacy=2, options={"coordinate_bits": 27})
    assert session.coding.field == FIELD122
    run, parties = session.run(record_views=True)
    check_against_clear(session, run, parties)


def test_many_chunks_and_few_columns_in_a_message_change_nothing(monkeypatch):
    points = split(spread(40, 2, seed=6), 5)
    whole = SecfcSession(points, clusters=4, privacy=1, segments=2).run()[0]
    monkeypatch.setattr("cloister.protocols.secfc.agreement.Coding.chunk_rows", 3)
    monkeypatch.setattr("cloister.protocols.secfc.agreement.Coding.columns_most", 1)
    session = SecfcSession(points, clusters=4, privacy=1, segments=2)
    run, parties = session.run(record_views=True)
    assert any(isinstance(e.message, ExchangeShares) and e.message.chunk > 2 for e in run.views[1])
    assert all(len(e.message.columns) == 1 for e in run.views[1] if isinstance(e.message, Measure))
    assert np.array_equal(run.result.labels, whole.result.labels)
    check_against_clear(session, run, parties)


def test_columns_of_unchanged_clusters_are_not_asked_for_again():
    """One far cluster settles at once; the other two share a cloud and go on."""
    near, far = spread(50, 2, seed=1) * 0.3 - 0.6, spread(20, 2, seed=2) * 0.05 + 0.9
    session = SecfcSession(split(np.concatenate([near, far]), 4), seed=3)
    run, parties = session.run(record_views=True)
    check_against_clear(session, run, parties)
    asked = {}
    for number in range(1, 5):
        for entry in run.views[number]:
            if isinstance(entry.message, Measure):
                asked[entry.message.news.version] = entry.message.columns
    assert asked[1] == (0, 1, 2)
    assert any(len(columns) < 3 for columns in asked.values())


@pytest.mark.parametrize("bits", ["auto", 27])
def test_labels_and_sums_follow_from_what_changed_once_few_move(bits, monkeypatch):
    monkeypatch.setattr("cloister.protocols.secfc.holder._SAVING_WORDS", 0)
    summed, sum_clusters = [], CodedRecords.sum_clusters

    def count(self, labels, clusters):
        summed.append(len(labels))
        return sum_clusters(self, labels, clusters)

    monkeypatch.setattr(CodedRecords, "sum_clusters", count)
    session = SecfcSession(split(spread(300, 2, seed=1), 3), clusters=3, options={"coordinate_bits": bits})
    run, parties = session.run(record_views=True)
    check_against_clear(session, run, parties)
    news = [entry.message.news for entry in run.views[1] if isinstance(entry.message, Measure)]
    assert news[0].base == 0
    assert news[-1].base == news[-1].version - 1
    assert len(news[-1].codes.data) < 60
    assert summed[0] == 300
    assert 0 < summed[-1] < 300 / 8  # only those that moved since the last sum


# --- membership private -----------------------------------------------------------------------------------------------


def union_of(points, clients, seed=0):
    """The same records, dealt out at random with their places in the union."""
    owner = np.random.default_rng(seed).integers(clients, size=len(points))
    places = [np.flatnonzero(owner == j) for j in range(clients)]
    places = [np.random.default_rng(j).permutation(rows) for j, rows in enumerate(places)]
    return [points[rows] for rows in places], places


@pytest.mark.parametrize(("clients", "privacy", "segments"), [(3, 1, 1), (6, 1, 2)])
def test_membership_private_equals_the_plain_run(clients, privacy, segments):
    points = spread(40, 3, seed=9)
    plain = SecfcSession(list(np.array_split(points, clients)), privacy=privacy, segments=segments)
    records, places = union_of(points, clients)
    union = SecfcSession(records, privacy=privacy, segments=segments, positions=places)
    (plain_run, _), (union_run, parties) = plain.run(), union.run(record_views=True)
    assert np.array_equal(plain_run.result.labels, union_run.result.labels)
    check_against_clear(union, union_run, parties)
    for party, rows in zip(parties, places, strict=True):
        assert np.array_equal(party.finding.own_labels, union_run.result.labels[rows])


def test_the_records_of_a_union_add_up_with_two_primes_in_many_chunks(monkeypatch):
    """The rows of a chunk are then in two places of the table."""
    monkeypatch.setattr("cloister.protocols.secfc.agreement.Coding.chunk_rows", 7)
    records, places = union_of(spread(30, 3, seed=4), 5)
    session = SecfcSession(records, privacy=2, positions=places, options={"coordinate_bits": 27})
    assert session.coding.field == FIELD122
    run, parties = session.run(record_views=True)
    check_against_clear(session, run, parties)


@pytest.mark.parametrize("places", [[0, 1, 1], [0, 1, 9], [0, -1, 2], [0, 1]])
def test_positions_that_do_not_fit_the_union_are_refused(places):
    session = SecfcSession([spread(3, 2, seed=1)] * 3, positions=[np.array(places)] * 3, options={"records_max": 9})
    with pytest.raises(DataError, match="its own position"):
        session.party(1)


def test_positions_go_with_membership_privacy_only():
    records = [spread(3, 2, seed=1)] * 3
    with pytest.raises(LocalProtocolError, match="positions"):
        SecfcSession(records, positions=[np.arange(3)] * 3, options={"union": False}).party(1)
    with pytest.raises(LocalProtocolError, match="positions"):
        SecfcSession(records, options={"union": True, "records_max": 9}).party(1)


# --- what is refused before anything is sent -----------------------------------------------------------------------


def agree(**options):
    return SecfcSession([spread(20, 4, seed=1)] * 5, **options).agreement


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"privacy": 3}, "n = 7 or more clients, or t = 2 with l = 1"),
        ({"privacy": 1, "segments": 3}, "l = 2 with t = 1"),
        ({"privacy": 0}, "privacy"),
        ({"segments": 5, "privacy": 1}, "segments must be at most the number of columns"),
        ({"clusters": 0}, "clusters must be"),
        ({"options": {"records_max": 2}}, r"at least clusters\.k = 3 records"),
        ({"options": {"union": True}}, "records_max must be the number of records with union"),
        ({"options": {"rounds_max": 0}}, "rounds_max must be"),
        ({"options": {"rounds_max": 3, "separate_after": 3}}, "separate_after must be"),
        ({"options": {"coordinate_bits": 1}}, "coordinate_bits must be"),
        ({"options": {"coordinate_bits": 32}}, "coordinate_bits must be"),
        ({"options": {"records_max": 2**24}}, "must each fit a message"),
        ({"clusters": 60_000, "options": {"records_max": 2**20, "dimensions": 4000}}, "must each fit a message"),
    ],
)
def test_an_agreement_that_cannot_work_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        agree(**options)


def test_the_field_follows_from_the_bound_and_is_refused_with_the_numbers():
    codings = {records: agree().choose_coding(records) for records in (1000, 2**18, 2**20)}
    assert codings[1000].bits == 17
    assert codings[1000].field == FIELD61
    assert codings[2**20].bits == 17  # one prime would leave 9 bits
    assert codings[2**20].field == FIELD122
    assert codings[2**18].bits == 11
    assert codings[2**18].field == FIELD61
    declared = agree(options={"records_max": 2**20}).choose_coding(1000)
    assert (declared.bits, declared.field) == (17, FIELD122)  # a declared cap decides, whatever the total
    # 2 + 2 * 22 + 2 * 31 = 108 < 121.99; a hundred thousand columns more than fill it
    wide = np.zeros((1, 2**17))
    with pytest.raises(PrecisionError, match="2\\^1"):
        SecfcSession([wide] * 3, clusters=1, options={"coordinate_bits": 31, "records_max": 2**22})


def test_every_field_is_in_the_digest():
    session = SecfcSession([spread(20, 4, seed=1)] * 5, options={"records_max": 100})
    changes = [
        {},
        {"clusters": 2},
        {"privacy": 2},
        {"segments": 2},
        *(
            {"options": {"records_max": 100, name: value}}
            for name, value in {
                "records_max": 99,
                "rounds_max": 9,
                "coordinate_bits": 12,
                "separate_after": 1,
                "reveal_centres": False,
                "budget": Budget(epsilon=1.0, delta=1e-6),
                "union": True,
                "context": "other bounds",
            }.items()
        ),
        {"seed": 8},
    ]
    digests = [session.agreement.digest, *(agree(**change).digest for change in changes)]
    assert len(set(digests)) == len(digests)


def test_more_records_than_declared_and_fewer_than_clusters_end_the_session():
    with pytest.raises(ConfigError, match=r"data\.records = 20 must be at least the number of records"):
        SecfcSession([spread(7, 2, seed=1)] * 3, options={"records_max": 20}).run()
    with pytest.raises(ConfigError, match=r"must hold at least clusters\.k = 4 records"):
        SecfcSession([spread(1, 2, seed=1)] * 3, clusters=4).run()


def test_a_total_that_no_field_holds_ends_the_session():
    session = SecfcSession([spread(3, 2, seed=1)] * 3, options={"coordinate_bits": 31})
    for claimed, error in ((2**31, PrecisionError), (2**24, ConfigError)):
        with pytest.raises(error, match="squared distances" if error is PrecisionError else "must each fit a message"):
            session.run(wrap=lambda number, party, claimed=claimed: Claims(party, claimed if number == 1 else None))


class Claims:
    """A client that says that it has another number of records."""

    def __init__(self, party, count):
        self.party, self.count = party, count

    def __getattr__(self, name):
        return getattr(self.party, name)

    def handle(self, request):
        reply = self.party.handle(request)
        return HeldRecords(self.count) if isinstance(reply, HeldRecords) and self.count is not None else reply


def test_a_client_that_claims_more_than_it_shares_is_out():
    """Its own role refuses a layout that is not what it said."""
    session = SecfcSession([spread(4, 2, seed=1)] * 4)
    run, _ = session.run(wrap=lambda number, party: Claims(party, 9 if number == 2 else None))
    assert [owner.party for owner in run.result.owners] == [1, 3, 4]
    assert run.result.coding.records_max == 21
    assert run.result.labels.size == 12
    with pytest.raises(TooFewPartiesError):
        SecfcSession([spread(4, 2, seed=1)] * 3).run(
            wrap=lambda number, party: Claims(party, 9 if number == 2 else None)
        )


def test_the_grid_follows_from_the_clients_that_met():
    """Who is silent before is not counted."""
    parts = [spread(4, 2, seed=s) for s in range(3)] + [spread(2**18, 2, seed=9)]
    session = SecfcSession(parts, options={"rounds_max": 1})
    assert session.coding.bits == 11
    run, parties = session.run(faults=[Fault(FaultKind.CRASH, 4, OPENING - 1)])
    assert run.result.coding.bits == 17
    assert run.result.coding.records_max == 12
    assert all(party.finished for party in parties[:3])


@pytest.mark.parametrize(
    ("points", "message"),
    [(np.zeros((3, 5)), "columns"), *((np.full((3, 4), x), "12 do not") for x in (1.01, 2.0**17, np.nan))],
)
def test_records_that_do_not_fit_are_refused_without_a_value(points, message):
    session = SecfcSession([spread(4, 4, seed=1)] * 3)
    with pytest.raises(DataError, match=message) as caught:
        SecfcParty(
            number=1,
            agreement=session.agreement,
            records=ArrayRecords(points),
            identity=identity(7, 1),
            entropy=None,
            session=SESSION,
        )
    assert "1.01" not in str(caught.value)


def test_a_finding_is_there_at_the_end_only():
    party = SecfcSession([spread(4, 4, seed=1)] * 3).party(1)
    assert not party.finished
    with pytest.raises(LocalProtocolError):
        party.finding  # noqa: B018


def test_without_an_agreement_to_reveal_nobody_has_centres():
    session = SecfcSession(split(spread(30, 2, seed=1), 3), options={"reveal_centres": False})
    run, parties = session.run()
    assert not run.result.revealed
    assert all(party.finding.centres is None for party in parties)
    assert run.result.labels.tolist() == session.in_the_clear().path[-1]


def test_the_loss_is_that_of_the_converged_clusters():
    session = SecfcSession(split(spread(30, 2, seed=1), 3))
    run, parties = session.run()
    points = np.concatenate(session.records)
    centres = parties[0].finding.centres
    squares = ((points - centres[run.result.labels]) ** 2).sum()
    assert run.result.converged
    assert run.result.loss == pytest.approx(squares, rel=1e-4)


def test_the_loss_at_the_round_limit_is_to_the_centres_measured_last():
    session = SecfcSession(split(spread(60, 2, seed=4), 3), clusters=4, options={"rounds_max": 2})
    run, _ = session.run()
    points = np.concatenate([session.coding.fixed_point.quantise(part) for part in session.records])
    before, after = (np.array(labels) for labels in session.in_the_clear().path[-2:])
    assert np.bincount(before).tolist() != np.bincount(after).tolist()
    centres = np.array([points[before == h].mean(axis=0) for h in range(4)])
    assert run.result.loss == pytest.approx(((points - centres[after]) ** 2).sum(), rel=1e-9)


def test_a_seed_gives_the_same_transcript():
    session = SecfcSession(split(spread(30, 2, seed=1), 3))
    first, again = session.run()[0], session.run()[0]
    assert first.transcript_sha256 == again.transcript_sha256
    others = [SecfcSession(session.records, seed=seed).run()[0].transcript_sha256 for seed in (8, 9)]
    assert all(one != other for one, other in itertools.combinations([first.transcript_sha256, *others], 2))
