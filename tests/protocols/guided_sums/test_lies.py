"""A lying leader is refused and named before anything is paid or drawn; the proper question is answered afterwards."""

import numpy as np
import pytest
from msgspec import structs

from cloister.errors import BudgetError, RemoteProtocolError, TooFewPartiesError
from cloister.privacy.placement import Aggregator, Local, Shared
from cloister.protocols.guided_sums.messages import Lead, Sign
from cloister.protocols.guided_sums.query import Ground, Idle, pose
from cloister.protocols.guided_sums.refinement import Offsets, PackedGuide
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, GuidedSettings
from cloister.protocols.guided_sums.statements import Stated
from cloister.protocols.guided_sums.statistics import Count, Plane
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.report.sizes import fit_sizes
from cloister.wire import Array
from tests.owners import told_to_owner
from tests.protocols.guided_sums.lies import change, encode, every, first, numbers, seal
from tests.protocols.synopsis.sessions import Session
from tests.sessions import Table, blobs, split

POINTS = {d: blobs(400, d, 3, seed=5) for d in (2, 7)}


def reach_round(dimensions, round_, *, placement=None):
    """A session just before a round is answered, and the question of that round."""
    session = Session(split(POINTS[dimensions], 3), placement=placement or Aggregator())
    table, double = Table(session), session.agreement.sums.double
    table.play(3 + double + (2 + double) * (round_ - 1) + 1)
    request = table.request(3)
    forms, party = session.agreed.forms, table.parties[3]
    query = party._statements.open(round_, request.stated)
    return session, table, request, query.question, forms.lengths[round_ - 1]


def state_of(session, party):
    """All that an answer could change: the party's, its books' and its sampler's."""
    duty = session.duties[3]
    fields = (party._answered, party._link, party._left, party._led, party._leader, party._result, party._finished)
    return fields, duty.charger.spent(), len(duty.sampler.drawn)


def refuse(session, party, request, match):
    before = state_of(session, party)
    with pytest.raises(RemoteProtocolError, match=match):
        party.handle(request)
    assert state_of(session, party) == before


def find_round(dimensions, name):
    return 1 + [slot.name for slot in Session(split(POINTS[dimensions], 3)).settings.slots].index(name)


NAMED = "party 1"
QUESTIONS = {
    "another kind": (2, "Lloyd round 1", lambda question: Count(share=4)),
    "a share of nothing": (2, "number of records", lambda question: change(question, "share", 0)),
    "a negative share": (2, "number of records", lambda question: change(question, "share", -1)),
    "more than all there is": (2, "number of records", lambda question: change(question, "share", 2 * BUDGET_UNITS)),
    "more than is left": (2, "Lloyd round 1", lambda question: change(question, "share", BUDGET_UNITS)),
    "a share too small to round": (2, "Lloyd round 1", lambda question: change(question, "share", 2)),
    "a centre outside": (2, "Lloyd round 1", lambda question: change(question, "centres", first(1.01))),
    "a centre that is no number": (2, "Lloyd round 1", lambda question: change(question, "centres", first(np.nan))),
    "a centre without end": (2, "Lloyd round 1", lambda question: change(question, "centres", first(np.inf))),
    "no centres": (2, "Lloyd round 1", lambda question: change(question, "centres", every(lambda x: x[:0]))),
    "too many centres": (
        2,
        "Lloyd round 1",
        lambda question: change(
            change(question, "centres", every(lambda x: np.vstack([x, x]))), "radii", every(lambda x: np.tile(x, 2))
        ),
    ),
    "centres of other columns": (
        2,
        "Lloyd round 1",
        lambda question: change(question, "centres", every(lambda x: x.T)),
    ),
    "a radius of nothing": (2, "Lloyd round 1", lambda question: change(question, "radii", first(0.0))),
    "a negative radius": (2, "Lloyd round 1", lambda question: change(question, "radii", first(-0.3))),
    "an endless radius": (2, "Lloyd round 1", lambda question: change(question, "radii", first(1e10))),
    "fewer radii than centres": (
        2,
        "Lloyd round 1",
        lambda question: change(question, "radii", every(lambda x: x[1:])),
    ),
    "a guide where there is none": (
        2,
        "Lloyd round 1",
        lambda question: structs.replace(question, guide=make_guide(question)),
    ),
    "more cells than the slot": (2, "histogram", lambda question: change(question, "bins", first(10**6))),
    "cells that overflow": (2, "histogram", lambda question: change(question, "bins", every(lambda x: x * 0 + 2**62))),
    "no cells": (2, "histogram", lambda question: change(question, "bins", first(0))),
    "a box without a side": (2, "histogram", lambda question: structs.replace(question, high=question.low)),
    "a box the wrong way round": (2, "histogram", lambda question: change(question, "high", first(-7.9))),
    "a box without end": (2, "histogram", lambda question: change(question, "low", first(-1e300))),
    "a middle outside": (
        7,
        "histogram of distances from the middle",
        lambda question: change(question, "middle", first(-1.5)),
    ),
    "edges that rise": (
        7,
        "histogram of distances from the middle",
        lambda question: change(question, "edges", every(lambda x: x[::-1])),
    ),
    "a radius that is no number": (7, "sums and second moments", lambda question: change(question, "radius", np.nan)),
    "an axis that is too long": (7, "histogram", lambda question: change(question, "plane.axes", first(1.0))),
    "an axis that is no number": (7, "histogram", lambda question: change(question, "plane.axes", first(np.nan))),
    "too many axes": (
        7,
        "histogram",
        lambda question: change(question, "plane.axes", every(lambda x: np.repeat(x, 40, axis=1) / 100)),
    ),
}


def make_guide(question):
    d = numbers(question.centres).shape[1]
    plane = Plane(origin=Array.of(np.zeros(d)), axes=Array.of(np.eye(d)[:, :1].copy()))
    return PackedGuide(plane=plane, places=None, radius=1.0)


@pytest.mark.parametrize("lie", QUESTIONS)
def test_a_question_that_may_not_be_asked_is_refused_and_the_proper_one_answered(lie):
    dimensions, name, make = QUESTIONS[lie]
    placement = Local(parties=3) if dimensions == 2 else None
    session, table, request, question, room = reach_round(dimensions, find_round(dimensions, name), placement=placement)
    assert not isinstance(question, Idle)
    party = table.parties[3]
    changed = make(question)
    longest, seed = max(room, 4 + len(encode(changed))), party._introduction.masks.seed
    stated = seal(request.attempt.round, encode(changed), longest, seed=seed)
    refuse(session, party, structs.replace(request, stated=stated), NAMED)
    drawn = len(session.duties[3].sampler.drawn)
    table.play(1)  # the proper one
    assert party._answered == request.attempt.round
    assert len(session.duties[3].sampler.drawn) == drawn + (placement is not None)


IDLE = encode(Idle())


def make_envelopes(table, request, question, room):
    """Lies about who says what when; each with what the refusal says."""
    seed, content = table.parties[3]._introduction.masks.seed, encode(question)
    stated = request.stated
    flipped = bytes([stated.box[0] ^ 1]) + stated.box[1:]

    def sealed(round_=request.attempt.round, **options):
        return seal(round_, content, room, **{"seed": seed, **options})

    return {
        "in another's name": (sealed(leader=1, signer=2), "signed by its identity"),
        "of a stranger": (sealed(identities=99), "signed by its identity"),
        "of a party that does not exist": (sealed(named=4), "from 1 to 3"),
        "named after it was signed": (sealed(named=2), "signed by its identity"),
        "of another round": (sealed(request.attempt.round + 1), "signed by its identity|bytes long"),
        "of another session": (sealed(session=bytes(16)), "signed by its identity"),
        "under another seed": (sealed(seed=bytes(32)), "sealed under the secret"),
        "longer than the slot": (seal(request.attempt.round, IDLE, room + 1, seed=seed), "bytes long"),
        "shorter than the slot": (seal(request.attempt.round, IDLE, room - 1, seed=seed), "bytes long"),
        "with a bit flipped": (Stated(1, stated.salt, flipped, stated.signature), "signed by its identity"),
        "with another salt": (Stated(1, bytes(16), stated.box, stated.signature), "signed by its identity"),
        "with a short salt": (Stated(1, b"", stated.box, stated.signature), "bytes long"),
        "without a signature": (Stated(1, stated.salt, stated.box, b""), "bytes long"),
        "that is no question": (seal(request.attempt.round, b"\xc1", room, seed=seed), "must be Offsets or none"),
        "that is cut off": (seal(request.attempt.round, IDLE[:-1], room, seed=seed), "must be Offsets or none"),
        "followed by more": (seal(request.attempt.round, IDLE + b"\1", room, seed=seed), "must be Offsets or none"),
        "padded with something": (
            seal(request.attempt.round, IDLE, room - 1, seed=seed, padding=b"\1"),
            "padded with zeros",
        ),
    }


PLACEMENTS = pytest.mark.parametrize(
    "placement", [Aggregator(), Shared(parties=3, colluding_max=1)], ids=["common masks", "double masks"]
)


@PLACEMENTS
def test_whatever_else_a_leader_or_a_coordinator_sends_is_refused_too(placement):
    session, table, request, question, room = reach_round(2, find_round(2, "Lloyd round 2"), placement=placement)
    for stated, match in make_envelopes(table, request, question, room).values():
        refuse(session, table.parties[3], structs.replace(request, stated=stated), match)
    table.play(1)
    assert table.parties[3]._answered == request.attempt.round


@PLACEMENTS
def test_a_second_question_in_one_round_is_refused(placement):
    """In whatever attempt: with common masks there is one, with double masks a later one asks the same question."""
    session, table, request, question, room = reach_round(2, find_round(2, "Lloyd round 1"), placement=placement)
    party, attempt, double = table.parties[3], request.attempt, session.agreement.sums.double
    table.play(1)
    other = encode(change(question, "centres", every(lambda x: -x)))
    again = seal(attempt.round, other, room, seed=party._introduction.masks.seed)
    another = structs.replace(request, stated=again)
    once = "an attempt must be later" if double else "of a round after .* in one attempt"
    refuse(session, party, request, once)
    refuse(session, party, another, once)
    refuse(session, party, structs.replace(another, link=party._link), once)
    later = structs.replace(another, attempt=structs.replace(attempt, number=attempt.number + 1))
    refuse(session, party, later, "must ask the same question" if double else once)
    refuse(session, party, structs.replace(later, link=party._link), "must ask the same question" if double else once)


def test_a_later_attempt_of_the_same_question_is_the_same_vector_paid_for_once():
    session, table, request, _, _ = reach_round(
        2, find_round(2, "Lloyd round 1"), placement=Shared(parties=3, colluding_max=1)
    )
    party = table.parties[3]
    table.play(1)
    before = state_of(session, party)
    later = structs.replace(request, attempt=structs.replace(request.attempt, number=request.attempt.number + 1))
    party.handle(later)
    assert state_of(session, party) == before


def test_a_leader_states_one_question_a_round_whatever_it_is_told():
    """Two totals of one round would show a difference; two questions would let parties answer different ones."""
    _, table, _, _, _ = reach_round(2, 2)
    leader = table.parties[1]
    past = table.parties[1]._leader.totals
    with pytest.raises(RemoteProtocolError, match="What was stated stands"):
        leader.handle(Lead(2, ()))
    table.play(1)
    lead = table.request(1)
    table.play(1)
    with pytest.raises(RemoteProtocolError, match="What was stated stands"):
        leader.handle(lead)
    assert len(leader.released_totals) == len(past) + 1


RESULTS = {
    "a centre outside": ("centres", first(1.5)),
    "a centre that is no number": ("centres", first(np.nan)),
    "centres of other columns": ("centres", every(lambda x: x.T)),
    "the sizes of too few clusters": ("sizes", fit_sizes(np.ones(1), np.ones(1))),
    "a noise that is no number": ("centre_noise", first(np.nan)),
    "a negative noise": ("centre_noise", first(-0.1)),
    "a noise beyond the range": ("centre_noise", first(1.5)),
    "the noise of other columns": ("centre_noise", every(lambda x: x.T)),
    "negative rounds": ("rounds", -1),
}


@pytest.mark.parametrize("lie", RESULTS)
def test_a_result_out_of_range_is_refused_and_the_proper_one_signed(lie):
    session = Session(split(POINTS[2], 3))
    rounds = len(session.settings.slots)
    table = Table(session).play(3 + 2 * rounds + 1)
    request, party = table.request(3), table.parties[3]
    assert isinstance(request, Sign)
    question = party._statements.open(rounds + 1, request.stated).question
    changed, room = change(question, *RESULTS[lie]), session.agreed.forms.lengths[-1]
    stated = seal(rounds + 1, encode(changed), room, seed=party._introduction.masks.seed)
    refuse(session, party, structs.replace(request, stated=stated), NAMED)
    table.play(2)
    assert party.finished
    assert np.isfinite(party.centres).all()


def spend_all(settings, stream):
    """A leader's algorithm that asks a third of all there is in every round of Lloyd's algorithm."""
    asking = run_synopsis(settings, stream)
    query = next(asking)
    while True:
        total = yield query_of(settings, query) if isinstance(query.question, Offsets) else query
        try:
            query = asking.send(total)
        except StopIteration as stop:
            return stop.value


def query_of(settings, query):
    question = structs.replace(query.question, share=BUDGET_UNITS // 3)
    return pose(Ground(settings=settings), query.name, question)


def test_a_leader_may_spend_the_budget_as_it_likes_and_no_more(monkeypatch):
    """Its own questions are answered as long as they are paid for; then all refuse, and the session ends."""
    session = Session(split(POINTS[2], 3))
    parties = [session.party(1, algorithm=spend_all), session.party(2), session.party(3)]
    with pytest.raises(TooFewPartiesError):
        session.run(parties)
    spent = [duty.charger.spent() for duty in session.duties.values()]
    assert all(0 < one.epsilon <= session.settings.budget.epsilon for one in spent)
    assert all(party._left >= 0 for party in parties)
    monkeypatch.setattr(GuidedSettings, "purse", 2**70)  # mutant: nobody looks what is left
    session = Session(split(POINTS[2], 3))
    parties = [session.party(1, algorithm=spend_all), session.party(2), session.party(3)]
    with told_to_owner(BudgetError):  # the books still do
        session.run(parties)
