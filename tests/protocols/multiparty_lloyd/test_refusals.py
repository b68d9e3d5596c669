"""What a party and a coordinator of Lloyd's rounds refuse; a refusal changes nothing, and the true request is answered.

Two rounds of three parties, exact and with shares of noise, under common and double masks. Before each true request the
second party is told all lies about rounds, sums and votes.
"""

import numpy as np
import pytest
from msgspec import structs

from cloister.aggregation.messages import (
    Answered,
    Attempt,
    Conclude,
    MeetPeers,
    OpenTotal,
    RestoreMasks,
    Settle,
)
from cloister.aggregation.seed_agreement import OpenSession, Ready, ShareSeed
from cloister.errors import ConfigError, DivergedError, LocalProtocolError, RemoteProtocolError, TooFewPartiesError
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.placement import Joint, Shared
from cloister.protocols.multiparty_lloyd.coordinator import coordinate
from cloister.protocols.multiparty_lloyd.messages import LocalUpdate, MaskedRound, NaiveFinish, NaiveRound
from cloister.protocols.multiparty_lloyd.party import LloydParty, LloydState
from cloister.records import ArrayRecords
from cloister.wire import Array
from tests.protocols.fastlloyd.sessions import FastLloydSession
from tests.protocols.multiparty_lloyd.sessions import make_session, split
from tests.sessions import SESSION, Table, blobs

POINTS = split(blobs(60, 2, 2, seed=3), 3)
ROUNDS, LIAR = 2, 2


def exact(**options):
    return make_session(records=POINTS, clusters=2, iterations=ROUNDS, members_min=3, **options)


def noisy(masks):
    placement = Shared(parties=3, colluding_max=1)
    return FastLloydSession(placement=placement, masks=masks, members_min=3, options={"iterations": ROUNDS})


KINDS = {
    "exact, common": exact,
    "exact, double": lambda: exact(masks="double", colluding_max=1),
    "noisy, common": lambda: noisy("common"),
    "noisy, double": lambda: noisy("double"),
}


def state_of(session, party):
    """All that a request could change."""
    follower, masks, duty = party._follower, party._introduction.masks, session.duties.get(LIAR)
    centres = party.state.centres
    return (
        (party._answered, party._voted, party._finished, follower.taken, follower._link),
        None if centres is None else centres.tobytes(),
        len(party.state.released_totals),
        {name: value for name, value in vars(masks or party).items() if name in ("_entered", "_progress", "_answered")},
        None if duty is None else (duty.charger.spent(), len(duty.sampler.drawn)),
    )


def lies_about_news(news):
    """Sums that are missing, twice, out of order, or changed where parties notice it."""
    yield from ((), news[:-1], (*news, *news[-1:]), news[::-1])
    for total in news:
        body = total.body[:-1] + bytes([total.body[-1] ^ 1])  # a check word
        yield (*news[:-1], structs.replace(total, body=body))
        yield (*news[:-1], structs.replace(total, attempt=structs.replace(total.attempt, number=2)))
        yield (*news[:-1], structs.replace(total, attempt=structs.replace(total.attempt, members=b"\x03")))


def lies_about(request, members):
    """What may not be asked in place of a request."""
    nothing = (OpenSession(b"job"), MeetPeers(()), ShareSeed(()), NaiveRound(1, Array.of(np.zeros((2, 2)))))
    votes = () if not isinstance(request, Conclude) else request.votes[:2]
    yield from (*nothing, NaiveFinish(Array.of(np.zeros((2, 2)))), Conclude((), votes))
    if isinstance(request, MaskedRound):
        attempt = request.attempt
        yield from (
            structs.replace(request, attempt=structs.replace(attempt, round=one)) for one in (attempt.round + 1, 9)
        )
        yield structs.replace(request, attempt=structs.replace(attempt, members=b"\xff"))
        yield Settle(request.news)
        yield from (
            structs.replace(request, news=news) for news in lies_about_news(request.news) if news != request.news
        )
    if isinstance(request, Settle):
        late = Attempt(ROUNDS + 1, 1, members)
        yield from (MaskedRound(late, request.news), MaskedRound(structs.replace(late, round=1), request.news))
        yield from (Settle(news) for news in lies_about_news(request.news) if news != request.news)
    if isinstance(request, Conclude):
        yield from (Settle(()), MaskedRound(Attempt(ROUNDS, 2, members), ()), Conclude((), request.votes[::-1]))
    if isinstance(request, OpenTotal):
        yield from (RestoreMasks(request.attempt, b"\x01", (), ()), Settle(()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_lie_is_refused_and_the_true_request_answered(kind):
    session = KINDS[kind]()
    table = Table(session).play(4 if session.agreement.sums.double else 3)
    party, lies = table.parties[LIAR], 0
    members = b"\x07" if session.agreement.sums.double else b""
    while not table.coordinator.finished:
        request = table.request(LIAR)
        for lie in lies_about(request, members):
            before = state_of(session, party)
            with pytest.raises((RemoteProtocolError, DivergedError)):
                party.handle(lie)
            assert state_of(session, party) == before, lie
            lies += 1
        table.play(1)
    assert lies > 40
    with pytest.raises(RemoteProtocolError, match="a finished session takes no more requests"):
        party.handle(Settle(()))
    _, honest = KINDS[kind]().run()
    assert party.centres.tobytes() == honest[0].centres.tobytes()
    if session.duties:
        assert [len(duty.sampler.drawn) for duty in session.duties.values()] == [ROUNDS] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_is_not_answered_after_the_vote(kind):
    """Else a party could be asked for another sum than its vote says."""
    session = KINDS[kind]()
    double = session.agreement.sums.double
    table = Table(session).play((4 if double else 3) + (1 + double) * ROUNDS)
    party, request = table.parties[LIAR], table.request(LIAR)
    assert isinstance(request, Settle)
    party.handle(request)
    before = state_of(session, party)
    for round_ in (ROUNDS, ROUNDS + 1):
        for number in (1, 2):
            with pytest.raises(RemoteProtocolError, match=f"the round must be from {ROUNDS} to {ROUNDS}"):
                party.handle(MaskedRound(Attempt(round_, number, b"\x07" if double else b""), ()))
    with pytest.raises(RemoteProtocolError, match="must be asked for its vote once"):
        party.handle(request)
    assert state_of(session, party) == before


def test_the_coordinators_first_centres_come_and_are_inside():
    table = Table(exact(start_by="coordinator")).play(3)
    party, request = table.parties[LIAR], table.request(LIAR)
    with pytest.raises(RemoteProtocolError, match="must bring the coordinator's centres"):
        party.handle(structs.replace(request, start=None))
    with pytest.raises(RemoteProtocolError, match="must lie inside the public bounds"):
        party.handle(structs.replace(request, start=Array.of(np.full((2, 2), 1.5))))
    assert party.state.centres is None
    party.handle(request)


def test_in_the_clear_rounds_rise_and_centres_are_inside():
    table = Table(make_session("naive", records=POINTS, clusters=2, iterations=ROUNDS))
    party, centres = table.parties[LIAR], Array.of(np.zeros((2, 2)))
    for early in (NaiveRound(1, centres), NaiveFinish(centres)):
        with pytest.raises(RemoteProtocolError, match="out of turn"):
            party.handle(early)
    with pytest.raises(RemoteProtocolError, match="must have the digest of ours"):
        party.handle(OpenSession(b"another job"))
    with pytest.raises(RemoteProtocolError, match="out of turn"):
        party.handle(NaiveRound(1, centres))
    table.play(2)
    for wrong in (NaiveRound(1, centres), NaiveRound(ROUNDS + 1, centres)):
        with pytest.raises(RemoteProtocolError, match="the round must be from 2 to 2"):
            party.handle(wrong)
    for request in (NaiveRound(2, Array.of(np.full((2, 2), 1.5))), NaiveFinish(Array.of(np.full((2, 2), -1.5)))):
        with pytest.raises(RemoteProtocolError, match="must lie inside the public bounds"):
            party.handle(request)
    assert party._answered == 1
    with pytest.raises(LocalProtocolError, match="must be finished"):
        _ = party.centres
    table.play(2)
    assert party.finished
    with pytest.raises(RemoteProtocolError, match="a finished session takes no more requests"):
        party.handle(NaiveFinish(centres))


# --- the coordinator --------------------------------------------------------------------------------------------------


def test_in_the_clear_updates_that_no_records_could_give_do_not_count():
    session = make_session("naive", records=POINTS, clusters=2, iterations=ROUNDS)
    table = Table(session).play(1)
    ask = table.coordinator.ask
    true = np.array([[0, 0, 1], [0, 0, 2]])
    ask.check(1, LocalUpdate(Array.of(true.ravel())))
    for wrong in (
        Answered(b""),
        LocalUpdate(Array.of(true.ravel()[1:])),
        LocalUpdate(Array.of(-true.ravel())),
        LocalUpdate(Array.of(np.array([2**16 + 1, 0, 1, 0, 0, 0]))),
        LocalUpdate(Array.of(np.array([0, 0, 10_001, 0, 0, 0]))),
    ):
        with pytest.raises(RemoteProtocolError):
            ask.check(1, wrong)


@pytest.mark.parametrize("at", [0, 1])
def test_in_the_clear_too_few_parties_end_the_session(at):
    session = make_session("naive", records=POINTS, clusters=2, iterations=ROUNDS, members_min=3)
    table = Table(session).play(at)
    table.deliver(1, table.parties[1].handle(table.request(1)))
    with pytest.raises(TooFewPartiesError):
        table.coordinator.close_step()


def test_noise_that_nobody_around_a_coordinator_would_add_seats_nobody():
    joint = FastLloydSession(noise="laplace", placement=Joint(parties=3), members_min=3)
    assert isinstance(joint.plan.targets[0], DiscreteLaplace)
    with pytest.raises(ConfigError, match="joint noise must be sampled by the parties in a ring"):
        joint.party(1)
    state = LloydState(agreement=joint.agreement, records=ArrayRecords(POINTS[0]), duty=joint.duties[1])
    with pytest.raises(ConfigError, match="joint noise must be sampled by the parties in a ring"):
        LloydParty(seat=joint.seat(1), agreement=joint.agreement, state=state)
    with pytest.raises(ConfigError, match="joint noise must be sampled by the parties in a ring"):
        coordinate(joint.agreement, entropy=joint.seat(1).entropy, session=SESSION)
    with pytest.raises(ConfigError, match="must have a noise duty if and only if"):
        coordinate(exact().agreement, entropy=joint.seat(1).entropy, session=SESSION, duty=joint.duties[1])


def test_a_reply_of_another_kind_does_not_count():
    table = Table(exact()).play(3)
    for wrong in (Ready(), LocalUpdate(Array.of(np.zeros(6, dtype=np.int64)))):
        with pytest.raises(RemoteProtocolError, match="must answer with Answered"):
            table.coordinator.ask.check(1, wrong)
