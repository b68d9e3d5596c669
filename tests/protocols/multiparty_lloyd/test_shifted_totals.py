"""A coordinator that adds numbers of its own to exact sums, as every mask lets it, and watches whether parties go on.

If parties refused sums that no records could give, refusals would tell it how large the true ones are: under common
masks all of them, since a refused request changes nothing and can be sent with another number.
"""

import numpy as np
import pytest
from msgspec import structs

from cloister.errors import InfeasibleError, RemoteProtocolError
from cloister.kmeans import DistanceConstrained
from cloister.protocols.multiparty_lloyd import coordinator
from cloister.protocols.multiparty_lloyd.party import LloydState
from tests.protocols.multiparty_lloyd.sessions import make_session, split
from tests.sessions import Table, blobs

PARTS = split(blobs(60, 2, 2, seed=3), 3)
OTHERS = [part[:2] for part in PARTS]
ROUNDS = 2
VARIANTS = ("masked-sum-count", "masked-centroid")


def open_session(variant="masked-sum-count", masks="common", records=PARTS, assignment=None):
    return make_session(
        variant, records=records, clusters=2, iterations=ROUNDS, members_min=3, masks=masks, max_records=100,
        colluding_max=int(masks == "double"), assignment=assignment,
    )  # fmt: skip


def add(word, number, ring):
    """Return what adds a number to a word of a masked sum."""

    def shift(words):
        shifted = words.copy()
        shifted[word] += np.array(number).astype(ring.dtype)
        return shifted

    return shift


def shift_news(request, word, number, ring):
    """Return a request whose last sum has a number added."""
    total = request.news[-1]
    words = add(word, number, ring)(np.frombuffer(total.body, ring.dtype))
    return structs.replace(request, news=(*request.news[:-1], structs.replace(total, body=words.tobytes())))


def scan(session):
    """What a coordinator alone sees: the largest number that a party lets it take from a count."""
    table = Table(session).play(4)
    request, ring = table.request(), session.agreement.ring
    for number in range(100, -1, -1):
        try:
            table.parties[1].handle(shift_news(request, 2, -number, ring))
        except RemoteProtocolError:
            continue
        return number
    return None


def test_the_coordinator_learns_nothing_of_a_count():
    assert {scan(open_session(records=records)) for records in (PARTS, OTHERS)} == {100}


@pytest.mark.parametrize("records", [PARTS, OTHERS])
def test_refusals_would_tell_it_how_many_records_a_cluster_has(records, monkeypatch):
    """The mutant: what no records could give is refused, as it once was."""
    real = LloydState.take

    def take(self, round_, total, members):
        confined = self.confined
        real(self, round_, total, members)
        if self.confined > confined:
            raise RemoteProtocolError("a cluster's count must be at least 0; some are not.")

    monkeypatch.setattr(LloydState, "take", take)
    session = open_session(records=records)
    run, parties = session.run(record_views=True)
    first = session.read_totals(run, parties[0], 1)[0][0]
    needed = np.ceil(np.abs(first[:2]).max() / session.agreement.fixed_point.scale)  # by the cluster's sums
    assert scan(open_session(records=records)) == first[2] - needed > 0


@pytest.mark.parametrize("masks", ["common", "double"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_whatever_is_added_the_session_looks_the_same_and_parties_are_told(variant, masks, monkeypatch):
    seen = set()
    for records in (PARTS, OTHERS):
        for at in (None, 1, ROUNDS):
            for number in (-(2**29), 2**29):
                session = open_session(variant, masks, records)
                shift = add(0, number, session.agreement.ring)
                monkeypatch.setattr(coordinator, "_noise_of", lambda *a, at=at, by=shift: by if a[2] == at else None)
                run, parties = session.run(record_frames=True)
                seen.add(tuple((one.step, one.sender, one.receiver, len(one.frame)) for one in run.frames))
                found = [session.roles.find(session.agreed, party, run.result) for party in parties]
                assert len({one.centres.tobytes() for one in found}) == 1
                assert np.abs(found[0].centres).max() <= 1
                assert {one.details for one in found} == {int(at is not None)}
    assert len(seen) == 1


@pytest.mark.parametrize("masks", ["common", "double"])
def test_with_a_radius_it_sees_who_cannot_meet_it_which_the_leakage_table_says(masks):
    """Centres that it moves away leave no cluster its records."""
    assignment = DistanceConstrained(size_min=2, size_max=100, radius=0.5)
    session = open_session(masks="common", assignment=assignment)
    table = Table(session).play(4)
    with pytest.raises(InfeasibleError):
        table.parties[1].handle(shift_news(table.request(), 1, 2**29, session.agreement.ring))
    for agreed, says in ((open_session(masks=masks, assignment=assignment), True), (open_session(masks=masks), False)):
        assert ("With a radius" in agreed.roles.leakage(agreed.agreed).breaks_if) is says
