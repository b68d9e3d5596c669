"""Requests and replies that do not fit are refused and change nothing; no attempt is answered twice."""

import msgspec
import numpy as np
import pytest

from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.errors import RemoteProtocolError
from cloister.privacy.units import Budget
from cloister.protocols.secfc.holder import ShareHolder
from cloister.protocols.secfc.labels import LabelBook, write_news
from cloister.protocols.secfc.messages import (
    AddressedBox,
    BeginRounds,
    ExchangeShares,
    Finish,
    HeldRecords,
    Holding,
    LabelNews,
    Measure,
    Measured,
    MeetPeers,
    RevealSums,
    SealedShares,
    SumShares,
)
from cloister.roles import Dropped
from cloister.wire import Array
from tests.protocols.secfc.sessions import SecfcSession, check_against_clear, drive, spread
from tests.sessions import split

EVERYONE = b"\x0f"


def flipped(raw):
    """One bit changed at the start, in the middle, at the end; one byte less, one more; nothing at all."""
    for place in {0, len(raw) // 2, len(raw) - 1}:
        yield raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
    yield from (raw[:-1], raw + b"\0", b"")


def replace(value, **changes):
    return msgspec.structs.replace(value, **changes)


def tampered_boxes(boxes):
    """Every box changed, repeated, out of order, or under another name."""
    for at, sent in enumerate(boxes):
        for box in flipped(sent.box):
            yield (*boxes[:at], AddressedBox(sent.party, box), *boxes[at + 1 :])
        yield (*boxes[:at], AddressedBox(99, sent.box), *boxes[at + 1 :])
    if boxes:
        yield (*boxes, boxes[-1])
        yield (AddressedBox(boxes[0].party, boxes[-1].box), *boxes[1:]) if len(boxes) > 1 else (*boxes, *boxes)
    if len(boxes) > 1:
        yield boxes[::-1]


def words(values, dtype=np.uint32):
    return Array.of(np.array(values, dtype=dtype))


def tampered_news(news, records, clusters):
    """Labels that no honest coordinator would send."""
    yield replace(news, version=2**19)
    yield replace(news, base=news.base + 7)
    yield replace(news, codes=words([1] * (records + 1), np.uint8))
    yield replace(news, base=0, places=words([]), codes=words([clusters + 1] * records, np.uint8))
    yield replace(news, base=0, places=words([0]), codes=words([1] * records, np.uint8))
    yield replace(news, base=0, places=words([]), codes=words([1] * records))
    if news.base:
        yield replace(news, places=words([records]), codes=words([1], np.uint8))
        yield replace(news, places=words([3, 3]), codes=words([1, 1], np.uint8))
        yield replace(news, places=words([1, 2, 3]), codes=words([1], np.uint8))


def tampered(request, party, session):
    """Every way to change a request that a client must notice; what is the coordinator's to choose is left alone."""
    agreement, records = session.agreement, sum(len(part) for part in session.records)
    match request:
        case OpenSession():
            yield from (OpenSession(raw) for raw in flipped(request.agreement))
        case MeetPeers():
            yield from (
                MeetPeers(keys) for keys in (request.keys[:2], request.keys[::-1], (*request.keys, *request.keys))
            )
        case ExchangeShares():
            yield from (replace(request, chunk=request.chunk + more) for more in (1, 5))
            mine = next(owner for owner in request.owners if owner.party == party)
            for owners in (
                request.owners[:2],
                request.owners[::-1],
                (*request.owners, Holding(9, 1)),
                tuple(Holding(o.party, o.records + (o is mine)) for o in request.owners),
                tuple(Holding(o.party, o.records + 10 * (o is not mine)) for o in request.owners),
                tuple(Holding(o.party, o.records + 2**31 * (o is not mine)) for o in request.owners),
            ):
                yield replace(request, owners=owners)
            yield replace(request, digest=bytes(32))
            yield from (replace(request, boxes=boxes) for boxes in tampered_boxes(request.boxes))
        case BeginRounds():
            yield from (BeginRounds(raw) for raw in (b"", b"\x1f", EVERYONE * 2))
        case Measure():
            yield from (replace(request, news=n) for n in tampered_news(request.news, records, session.clusters))
            mine = 1 << (party - 1)
            for bitmap in (0x0F, 0x0F & ~mine, mine, 0x17, 0x00):  # three of four, we among them
                yield replace(request, responders=bytes([bitmap]))
            yield replace(request, responders=b"")
            for columns in ((), (1, 0), (0, 0), (agreement.clusters,)):
                yield replace(request, columns=columns)
        case RevealSums():
            yield from (replace(request, news=n) for n in tampered_news(request.news, records, session.clusters))
            yield replace(request, news=LabelNews(request.news.version, 0, words([]), words([1] * records, np.uint8)))
            shape = (1, session.clusters, session.coding.width)
            yield replace(request, noise=Array.of(np.zeros(shape, np.uint64)) if request.noise is None else None)
            if request.noise is not None:
                yield replace(request, noise=Array.of(np.full(shape, 2**61 - 1, np.uint64)))
                yield replace(request, noise=Array.of(np.zeros((1, 1, 1), np.uint64)))
        case Finish():
            yield from (replace(request, news=n) for n in tampered_news(request.news, records, session.clusters))
            yield replace(request, news=LabelNews(request.news.version, 0, words([]), words([0] * records, np.uint8)))
            yield from (replace(request, owners=raw) for raw in (b"", b"\x07", b"\x1f"))
            yield from (replace(request, sums=boxes) for boxes in tampered_boxes(request.sums))
            yield replace(request, sums=request.sums[:1])


class Suspicious:
    """A client that is shown every change of each request first, and all older requests after it."""

    def __init__(self, number, party, session):
        self.number, self.party, self.session = number, party, session
        self.log, self.refused = [], 0

    def __getattr__(self, name):
        return getattr(self.party, name)

    def handle(self, request):
        for changed in tampered(request, self.number, self.session):
            self.refuse(changed)
        reply = self.party.handle(request)
        self.log.append(request)
        for old in self.log:
            self.refuse(old)
        return reply

    def refuse(self, request):
        with pytest.raises(RemoteProtocolError):
            self.party.handle(request)
        self.refused += 1


@pytest.mark.parametrize("budget", [None, Budget(epsilon=1.0, delta=1e-6)])
def test_every_change_and_every_repetition_is_refused_and_changes_nothing(budget, monkeypatch):
    monkeypatch.setattr("cloister.protocols.secfc.agreement.Coding.chunk_rows", 7)
    session = SecfcSession(split(spread(40, 2, seed=8), 4), silent=True, options={"budget": budget})
    run, parties = session.run(wrap=lambda number, party: Suspicious(number, party, session), record_views=True)
    assert min(party.refused for party in parties) > 80
    assert sum(party.refused for party in parties) > 600
    assert run.result.attempts == (1,) * len(run.result.attempts)
    check_against_clear(session, run, parties)


NEWS = LabelNews(1, 0, words([]), words([1, 2, 3] * 4, np.uint8))
EARLY = {BeginRounds: {Finish}, Measure: {RevealSums, Finish}}  # when to end is the coordinator's to say


@pytest.mark.parametrize("until", [OpenSession, MeetPeers, ExchangeShares, BeginRounds, Measure, RevealSums, Finish])
def test_requests_out_of_turn_are_refused(until):
    """A request of any other kind, at any point of the session."""
    roles, ask, _ = drive(SecfcSession([spread(3, 2, seed=s) for s in range(4)]), until)
    possible = {until, *EARLY.get(until, ())}
    requests = [
        MeetPeers(()),
        ExchangeShares((), bytes(32), 0, ()),
        BeginRounds(EVERYONE),
        Measure(NEWS, 1, b"\x07", (0,)),
        RevealSums(NEWS, None),
        Finish(EVERYONE, NEWS, ()),
    ]
    for request in requests:
        if type(request) not in possible:
            with pytest.raises(RemoteProtocolError):
                roles[1].handle(request)
    assert roles[1].handle(ask.requests[1])


def test_sums_are_not_revealed_where_that_was_not_agreed():
    session = SecfcSession([spread(3, 2, seed=s) for s in range(4)], options={"reveal_centres": False})
    roles, _, _ = drive(session, Finish)
    with pytest.raises(RemoteProtocolError, match="only if that was agreed on"):
        roles[1].handle(RevealSums(NEWS, None))
    with pytest.raises(RemoteProtocolError, match="only where that was agreed"):
        roles[1].handle(Finish(EVERYONE, NEWS, (AddressedBox(1, b"box"), AddressedBox(2, b"box"))))


def reveal_twice():
    """A second set of labels, of a later version, to a client that has revealed its share of the sums."""
    roles, ask, _ = drive(SecfcSession(split(spread(24, 2, seed=4), 4)), RevealSums)
    number, request = next(iter(ask.requests.items()))
    roles[number].handle(request)
    other = LabelNews(request.news.version + 1, 0, words([]), words([1 + row % 3 for row in range(24)], np.uint8))
    return roles[number].handle(RevealSums(other, None))


def test_sums_are_revealed_once_whatever_labels_they_are_asked_for():
    """Sums of two sets of labels that differ in one record would be that record."""
    with pytest.raises(RemoteProtocolError, match="revealed once"):
        reveal_twice()


def test_the_mutant_that_reveals_sums_repeatedly_is_noticed(monkeypatch):
    real = ShareHolder.reveal

    def forget(self, request, seed):
        share = real(self, request, seed)
        self._revealed = False
        return share

    monkeypatch.setattr(ShareHolder, "reveal", forget)
    assert isinstance(reveal_twice(), SumShares)


def test_distances_to_an_empty_cluster_are_refused():
    roles, ask, _ = drive(SecfcSession([spread(3, 2, seed=s) for s in range(4)]), Measure)
    number, request = next(iter(ask.requests.items()))
    news = LabelNews(1, 0, words([]), words([1, 2] * 6, np.uint8))
    with pytest.raises(RemoteProtocolError, match="have records"):
        roles[number].handle(replace(request, news=news))
    assert isinstance(roles[number].handle(request), Measured)


def test_one_version_has_one_labelling():
    """Two labellings under one version would be two questions of one round."""
    roles, ask, _ = drive(SecfcSession([spread(3, 2, seed=s) for s in range(4)]), Measure)
    number, request = next(iter(ask.requests.items()))
    first = roles[number].handle(request)
    other = LabelNews(1, 0, words([]), words([1, 2, 3] * 4, np.uint8))
    with pytest.raises(RemoteProtocolError, match="those we were told"):
        roles[number].handle(replace(request, news=other, attempt=2))
    again = roles[number].handle(replace(request, attempt=2))
    assert isinstance(again, Measured)
    assert again != first  # the same distances under fresh pads


def test_records_whose_shares_did_not_come_are_not_clustered():
    roles, ask, generator = drive(SecfcSession(split(spread(12, 2, seed=1), 4)), ExchangeShares)
    ask = generator.send({number: roles[number].handle(request) for number, request in ask.requests.items()})
    last = ask.requests[1]
    roles[1].handle(replace(last, boxes=tuple(sent for sent in last.boxes if sent.party != 3)))
    for owners in (EVERYONE, b"\x04"):
        with pytest.raises(RemoteProtocolError, match="whose shares all came, 3 of 4"):
            roles[1].handle(BeginRounds(owners))
    assert roles[1].handle(BeginRounds(b"\x0b")) == Ready()


# --- replies ----------------------------------------------------------------------------------------------------------


def bad_replies(reply):
    yield Ready()
    match reply:
        case SealedShares():
            yield from (SealedShares(reply.boxes[:1]), SealedShares(reply.boxes[::-1]), SealedShares(()))
            yield SealedShares(tuple(AddressedBox(p.party, p.box[:-1]) for p in reply.boxes))
        case Measured():
            values = reply.values.to_numpy(np.uint64, *reply.values.shape)
            yield Measured(Array.of(values[:, :-1]))
            yield Measured(Array.of(values.astype(np.float64)))
            beyond = values.copy()
            beyond[0, 0, 0] = 2**61 - 1
            yield Measured(Array.of(beyond))
        case SumShares():
            yield from (SumShares(reply.box[:-1]), SumShares(b""))


@pytest.mark.parametrize("until", [MeetPeers, ExchangeShares, Measure, RevealSums])
def test_malformed_replies_are_refused(until):
    roles, ask, _ = drive(SecfcSession(split(spread(12, 2, seed=1), 4)), until)
    for number, request in ask.requests.items():
        reply = roles[number].handle(request)
        ask.check(number, reply)
        for bad in bad_replies(reply):
            with pytest.raises(RemoteProtocolError):
                ask.check(number, bad)


def test_with_membership_private_the_number_of_rows_is_that_of_the_union():
    places = list(np.split(np.arange(12), 4))
    session = SecfcSession(list(np.split(spread(12, 2, seed=1), 4)), positions=places)
    _, ask, _ = drive(session, MeetPeers)
    ask.check(1, HeldRecords(12))
    with pytest.raises(RemoteProtocolError):
        ask.check(1, HeldRecords(3))


def test_wrong_distances_that_cannot_be_are_noticed():
    roles, ask, generator = drive(SecfcSession(split(spread(12, 2, seed=1), 4)), Measure)
    replies = {number: roles[number].handle(request) for number, request in ask.requests.items()}
    first = min(replies)
    values = replies[first].values.to_numpy(np.uint64, *replies[first].values.shape).copy()
    values[0, 0, 0] ^= np.uint64(1 << 60)
    replies[first] = Measured(Array.of(values))
    with pytest.raises(RemoteProtocolError, match="decoded distances"):
        generator.send(replies)


def test_a_silent_client_is_replaced_and_told_the_whole_labelling_later():
    roles, ask, generator = drive(SecfcSession(split(spread(300, 2, seed=1), 4)), Measure)
    replies = {number: roles[number].handle(request) for number, request in ask.requests.items()}
    ask = generator.send({**replies, 2: Dropped()})
    assert set(ask.requests) == {1, 3, 4}
    assert {request.attempt for request in ask.requests.values()} == {2}
    assert ask.requests[4].news.base == 0
    assert ask.requests[1].news.base == 1
    assert ask.requests[1].news.codes.shape == (0,)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [2, 255, 256, 1000])
def test_labels_survive_the_way_whole_and_as_changes(clusters):
    rng = np.random.default_rng(clusters)
    book = LabelBook(records=500, clusters=clusters)
    labels, base = None, 0
    for version in range(1, 8):
        fresh = rng.integers(-1, clusters, 500).astype(np.int32)
        if labels is not None and version % 2:
            fresh = np.where(rng.random(500) < 0.02, fresh, labels).astype(np.int32)
        news = write_news(version, fresh, clusters, base, labels)
        assert (news.base > 0) == (labels is not None and version % 2 == 1)
        book.keep(version, book.read(news))
        assert np.array_equal(book.labels, fresh)
        labels, base = fresh, version
