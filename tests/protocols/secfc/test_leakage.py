"""What each role of SecFC receives is what its leakage table allows; and the tests that say so can fail."""

import itertools

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation import unpack_members
from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.errors import ConfigError, PrecisionError
from cloister.field.lagrange import interpolation_matrix
from cloister.privacy.units import Budget, Learns
from cloister.protocols.secfc.coordinator import coordinate_secfc
from cloister.protocols.secfc.holder import CirclePads
from cloister.protocols.secfc.leakage import HOLDERS_BREAK, describe_leakage, describe_scope
from cloister.protocols.secfc.messages import (
    BeginRounds,
    ExchangeShares,
    Finish,
    HeldRecords,
    Holding,
    Measure,
    Measured,
    MeetPeers,
    RevealSums,
    SealedShares,
    SumShares,
)
from cloister.runtime import Fault, FaultKind
from tests.protocols.multiparty_lloyd.test_leakage import arrays_in
from tests.protocols.secfc.sessions import OPENING, SecfcSession, spread
from tests.sessions import SESSION, split

ALPHA = 1e-6
ALLOWED = {
    0: {SessionOpened, SealedSeeds, Ready, HeldRecords, SealedShares, Measured, SumShares},
    1: {OpenSession, ShareSeed, TakeSeed, MeetPeers, ExchangeShares, BeginRounds, Measure, RevealSums, Finish},
}


def test_the_card_says_what_the_coordinator_learns():
    for union, reveal in itertools.product((False, True), repeat=2):
        session = SecfcSession(
            [spread(5, 2, seed=1)] * 3,
            positions=[np.arange(5)] * 3 if union else None,
            options={"reveal_centres": reveal},
        )
        table = describe_leakage(session.agreement)
        assert "d / (k - 1) rounds" in table.breaks_if
        assert "help of any one client" in table.breaks_if
        assert "Any 2 clients together can read all records" in table.breaks_if
        assert (HOLDERS_BREAK in table.breaks_if) is union
        assert table.learns("coordinator", "distances") is Learns.EXACT
        assert table.learns("coordinator", "shape") is Learns.EXACT
        assert table.learns("coordinator", "replies") is Learns.NOTHING
        assert table.learns("coordinator", "sizes") is table.learns("party", "sizes") is Learns.EXACT
        assert table.learns("party", "centres") is (Learns.EXACT if reveal else Learns.NOTHING)
        assert table.learns("coordinator", "holders") is (Learns.NOTHING if union else Learns.EXACT)


def test_roles_receive_only_the_messages_of_the_protocol():
    run, _ = SecfcSession(split(spread(20, 2, seed=1), 4)).run(record_views=True)
    for role, entries in run.views.items():
        assert {type(entry.message) for entry in entries} <= ALLOWED[min(role, 1)]
        assert entries


def test_clients_are_sent_labels_and_boxes_and_no_other_array():
    session = SecfcSession(split(spread(20, 2, seed=1), 4))
    run, _ = session.run(record_views=True)
    for role in range(1, 5):
        for entry in run.views[role]:
            for array in arrays_in(entry.message):
                assert array.dtype in (np.uint8, np.uint32)
                assert array.size == 0 or array.max() <= 20


# --- what a client receives -------------------------------------------------------------------------------------------


def shares_at(party, owner):
    """Another client's records as they stand in a client's table: what it opened of its boxes."""
    rows = party._holder.layout.rows_of(owner)
    return party._holder._coded.shares[0, rows].ravel()


def top_bytes(sign, seeds):
    """The upper byte of each share that clients 1 and 3 hold of client 2's records, over fresh sessions."""
    words = []
    for seed in seeds:
        # mirrored records have the same labels: all that a client may learn is the same
        records = [sign * np.full((60, 4), value) for value in (0.25, 0.75, -0.5)]
        session = SecfcSession(records, clusters=2, seed=seed, options={"rounds_max": 2})
        _, parties = session.run()
        words += [shares_at(parties[0], owner=2), shares_at(parties[2], owner=2)]
    return np.bincount((np.concatenate(words) >> np.uint64(53)).astype(np.int64), minlength=256)


def same_distribution():
    table = np.array([top_bytes(1, range(12)), top_bytes(-1, range(100, 112))])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def test_a_clients_shares_do_not_depend_on_the_records():
    assert same_distribution() > ALPHA


def test_shares_without_noise_are_caught(monkeypatch):
    def zeros(out, modulus, stream):
        out[:] = 0

    monkeypatch.setattr("cloister.field.lagrange.fill_uniform", zeros)
    assert same_distribution() < ALPHA


def test_the_noise_of_a_chunk_is_used_once(monkeypatch):
    """Equal records in different chunks have different shares."""
    monkeypatch.setattr("cloister.protocols.secfc.agreement.Coding.chunk_rows", 5)
    records = [np.full((20, 2), 0.5) for _ in range(3)]
    _, parties = SecfcSession(records, clusters=2).run()
    shares = parties[0]._holder._coded.shares[0]
    assert len(np.unique(shares)) == shares.size


def test_boxes_are_for_their_holder_only():
    session = SecfcSession(split(spread(20, 2, seed=1), 4))
    run, parties = session.run(record_views=True)
    taken = [entry.message for entry in run.views[1] if isinstance(entry.message, ExchangeShares)][-1]
    plain = [shares_at(parties[0], sent.party).tobytes() for sent in taken.boxes]
    for sent, clear in zip(taken.boxes, plain, strict=True):
        assert len(sent.box) == len(clear) + 16
        assert clear not in sent.box
        assert sent.box not in {other.box for other in taken.boxes if other is not sent}


# --- what the coordinator receives ------------------------------------------------------------------------------------


def replies_of(run, session):
    """For each attempt that all responders answered: labels' version, columns, responders and their replies."""
    field, records = session.coding.field, len(run.result.labels)
    for step in sorted({entry.step for entry in run.views[0] if isinstance(entry.message, Measured)}):
        words = {
            entry.sender: np.frombuffer(entry.message.values.data, "<u8").reshape(field.residues, records, -1)
            for entry in run.views[0]
            if entry.step == step
        }
        request = next(
            entry.message
            for number in words
            for entry in run.views[number]
            if entry.step == step and isinstance(entry.message, Measure)
        )
        responders = unpack_members(request.responders, session.agreement.parties)
        if set(words) == set(responders):
            yield request, responders, words


def distances_of(words, field):
    return field.decode_distances(field.add([words[number].copy() for number in sorted(words)])).to_integers()


def segment_distances(responders, words, session, segment):
    """The attack that masking is for: undo the weights, interpolate, and read one segment's distance."""
    code = session.coding.code
    (modulus,) = code.field.moduli
    weights = code.weigh_distances(responders)[0]
    nodes = tuple(code.alphas[number - 1] for number in responders)
    (row,) = interpolation_matrix(nodes, (code.betas[segment],), modulus)
    total = 0
    for place, number in enumerate(sorted(words)):
        phi = words[number][0].astype(object) * pow(int(weights[place]), -1, modulus)
        total = total + phi * row[place]
    return total % modulus


def true_distances(session, labels, columns, segment=None):
    """d' in the clear; of all coordinates or of one segment's."""
    points = np.concatenate([session.coding.fixed_point.encode(part) for part in session.records])
    if segment is not None:
        width = session.coding.width
        points = points[:, segment * width : (segment + 1) * width]
    sums = np.array([points[labels == h].sum(axis=0) for h in columns])
    counts = np.array([(labels == h).sum() for h in columns])
    return ((sums[None] - counts[None, :, None] * points[:, None]) ** 2).sum(axis=2)


def attack_segments():
    """How many of the distances of a first segment the coordinator finds."""
    session = SecfcSession(split(spread(20, 4, seed=1), 5), privacy=1, segments=2)
    run, _ = session.run(record_views=True)
    request, responders, words = next(iter(replies_of(run, session)))
    start = session.start(20)
    assert (distances_of(words, session.coding.field) == true_distances(session, start, request.columns)).all()
    found = segment_distances(responders, words, session, segment=0)
    return (found == true_distances(session, start, request.columns, segment=0)).mean()


def test_the_coordinator_reads_sums_over_segments_and_no_segment():
    assert attack_segments() == 0


def test_replies_without_pads_give_the_segments_away(monkeypatch):
    """The mutant: the same attack works where nothing masks the replies, as published."""
    monkeypatch.setattr(CirclePads, "pad", lambda self, responders, shape, *context: self._field.zeros(*shape))
    assert attack_segments() == 1


def test_a_late_reply_tells_the_coordinator_the_same_distances_again():
    """Whoever is decoded together, d' is the same: nothing more is to be had from attempts that were given up."""
    session = SecfcSession(split(spread(20, 2, seed=1), 5), clusters=2, privacy=1)
    late = []

    class Keeps:
        def __init__(self, number, party):
            self.number, self.party = number, party

        def __getattr__(self, name):
            return getattr(self.party, name)

        def handle(self, request):
            reply = self.party.handle(request)
            if isinstance(request, Measure):
                late.append((request, self.number, reply.values.to_numpy(np.uint64, *reply.values.shape)))
            return reply

    run, _ = session.run(wrap=Keeps, faults=[Fault(FaultKind.DELAY_REPLY, 2, OPENING + 3)])
    assert run.result.attempts[0] == 2
    totals = []
    for attempt in (1, 2):
        words = {number: w for r, number, w in late if (r.news.version, r.attempt) == (1, attempt)}
        totals.append(distances_of(words, session.coding.field))
    assert (totals[0] == totals[1]).all()
    assert (totals[0] == true_distances(session, session.start(20), (0, 1))).all()


def test_isometric_records_give_the_coordinator_the_same_distances():
    """Turned, mirrored and shifted records: nothing that it decodes differs."""
    points = np.round(spread(40, 2, seed=2) * 0.4 * 2**16) / 2**16
    turned = points @ np.array([[0, 1], [-1, 0]]) + np.array([0.25, -0.125])
    decoded = []
    for records in (points, turned):
        session = SecfcSession(split(records, 4))
        run, _ = session.run(record_views=True)
        decoded.append([distances_of(words, session.coding.field) for _, _, words in replies_of(run, session)])
    assert len(decoded[0]) > 2
    assert all((one == other).all() for one, other in zip(*decoded, strict=True))


def test_the_coordinator_cannot_open_the_revealed_sums():
    session = SecfcSession(split(spread(20, 2, seed=1), 4))
    run, parties = session.run(record_views=True)
    boxes = [entry.message.box for entry in run.views[0] if isinstance(entry.message, SumShares)]
    assert len(boxes) == session.coding.code.holders
    holder = parties[0]._holder
    shares = holder._coded.sum_clusters(run.result.labels, 3)
    assert all(shares.tobytes() not in box for box in boxes)
    seen = [entry.message for entry in run.views[0]]
    assert not any(isinstance(message, Finish | TakeSeed) for message in seen)


# --- noise on the centres ---------------------------------------------------------------------------------------------


def noisy(seed=7, **options):
    budget = Budget(epsilon=1e5, delta=1e-6)  # so little noise that no centre leaves the domain, where it is clipped
    return SecfcSession(
        split(spread(24, 3, seed=1), 5), privacy=1, segments=2, seed=seed, options={"budget": budget, **options}
    )


def noise_of(session):
    """What was added to each sum, in steps of the grid; all clients must have got the same."""
    run, parties = session.run()
    clear = session.in_the_clear()
    assert run.result.labels.tolist() == clear.path[-1]
    sums = [party.finding.centres * party.finding.counts[:, None] for party in parties]
    assert all(np.array_equal(one, sums[0]) for one in sums)
    return np.rint(sums[0] * session.coding.fixed_point.scale) - clear.sums


def test_revealed_centres_carry_the_agreed_noise():
    sigma = noisy().coding.noise_event.mechanism.sigma
    drawn = np.concatenate([noise_of(noisy(seed)).ravel() for seed in range(30)])
    assert stats.kstest(drawn / sigma, "norm").pvalue > ALPHA
    assert abs(drawn.std() / sigma - 1) < 0.3


def test_t_clients_cannot_take_the_noise_off_and_more_can():
    """The noise is coded as records are: l + t shares give it back."""
    session = noisy()
    run, _ = session.run(record_views=True)
    shares = {
        number: entry.message.noise.to_numpy(np.uint64, 1, 3, 2)
        for number in range(1, 6)
        for entry in run.views[number]
        if isinstance(entry.message, RevealSums)
    }
    assert len(shares) == session.coding.code.holders == 3
    code, field = session.coding.code, session.coding.field
    found = field.decode(code.reveal(sorted(shares), np.stack([shares[n] for n in sorted(shares)]), 3))
    assert np.array_equal(found, noise_of(session))
    assert all(np.abs(field.decode(share)).min() > 2**40 for share in shares.values())


def test_the_event_is_the_largest_move_of_one_records_value():
    session = noisy(coordinate_bits=9)
    event = session.coding.noise_event
    corner = np.ones(3)
    move = session.coding.fixed_point.encode(corner) - session.coding.fixed_point.encode(-corner)
    assert event.sensitivity.l1 == np.abs(move).sum()
    assert event.sensitivity.l2_squared == (move**2).sum()
    assert event.entries == 9
    assert describe_leakage(session.agreement).learns("party", "centres") is Learns.NOISY
    assert "as a whole, are not differentially private" in describe_scope(session.agreement)


def test_noise_that_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="unless centres are revealed"):
        noisy(reveal_centres=False)
    with pytest.raises(PrecisionError, match="at most 2\\^40"):
        noisy(budget=Budget(epsilon=1e-3, delta=1e-6), coordinate_bits=31)
    with pytest.raises(ConfigError, match="noise duty"):
        coordinate_secfc(noisy().agreement, entropy=None, session=SESSION)


# --- who holds what ---------------------------------------------------------------------------------------------------


def envelope(session):
    """Types, sizes and public numbers of all that each role receives."""
    run, _ = session.run(record_views=True)
    found = []
    for role, entries in run.views.items():
        for entry in entries:
            message = entry.message
            size = message.records if isinstance(message, HeldRecords) else 0
            boxes = [len(p.box) for p in getattr(message, "boxes", ())]
            found.append((role, entry.step, entry.sender, type(message).__name__, size, boxes))
    return found, run.result.labels


def test_with_membership_private_nobody_sees_who_holds_which_record():
    points = spread(24, 2, seed=3)
    ways = [np.arange(24) % 3, np.arange(24) // 8, np.zeros(24, dtype=int)]
    views = []
    for owner in ways:
        places = [np.flatnonzero(owner == j) for j in range(3)]
        views.append(envelope(SecfcSession([points[rows] for rows in places], positions=places)))
    for view, labels in views[1:]:
        assert view == views[0][0]
        assert np.array_equal(labels, views[0][1])
    plain = [envelope(SecfcSession([points[owner == j] for j in range(3)]))[0] for owner in ways]
    assert plain[2] != plain[0]


def test_the_start_does_not_depend_on_the_records():
    starts = [SecfcSession([spread(10, 2, seed=s)] * 3).start(30).tolist() for s in (1, 2)]
    assert starts[0] == starts[1]
    assert sorted(starts[0]) == sorted(list(range(3)) * 10)


# --- how many records there are ---------------------------------------------------------------------------------------


def test_the_first_exchange_tells_every_clients_count_and_nothing_else():
    """As the table says: sizes are learned by all, and what is told of them is independent of the records."""
    parts = split(spread(20, 2, seed=1), 4)
    counts = tuple(Holding(number, len(part)) for number, part in enumerate(parts, start=1))
    told = []
    for records in (parts, [-part for part in parts]):
        run, _ = SecfcSession(records).run(record_views=True)
        heard = [entry.message for entry in run.views[0] if isinstance(entry.message, HeldRecords)]
        shown = [(m.owners, m.digest) for e in run.views[1] if isinstance(m := e.message, ExchangeShares)]
        told.append((heard, shown))
        assert heard == [HeldRecords(owner.records) for owner in counts]
        assert {owners for owners, _ in shown} == {counts}
        assert len({digest for _, digest in shown}) == 1
    assert told[0] == told[1]
