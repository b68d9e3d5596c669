"""A coordinator that tells parties different sums, whose difference would be one party's vector and one share of noise.

Six parties, one may collude. Party 1 is told the sum over all, the others the sum without party 6.
"""

import numpy as np
import pytest
from msgspec import structs

from cloister.aggregation import pack_members
from cloister.aggregation.coordination import introduce
from cloister.aggregation.messages import Attempt, Conclude, OpenTotal, PartyBox, Settle, Total
from cloister.aggregation.own_masks import expand_mask
from cloister.aggregation.seed_agreement import SealedSeed, SealedSeeds
from cloister.aggregation.statements import append_check_words, digest_body, state_attempt, write_words
from cloister.crypto import SeededEntropy, seal_box
from cloister.crypto.sealing import seal_keyed
from cloister.errors import DivergedError, RemoteProtocolError
from cloister.privacy.placement import Shared
from cloister.protocols.multiparty_lloyd.messages import MaskedRound
from tests.protocols.fastlloyd.sessions import FastLloydSession, deal
from tests.sessions import SESSION

KINDS = ["sound", "mna"]
ALL, WITHOUT_SIX = (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5)


def make_session(kind, masks, **options):
    placement = Shared(parties=6, colluding_max=1, quorum=5)
    settings = {"iterations": 3, **({"assignment": "unconstrained"} if kind == "mna" else {})}
    return FastLloydSession(
        kind, deal(parties=6), placement=placement, members_min=5, masks=masks, options=settings, **options
    )


class Liar:
    """A coordinator by hand, which pools every frame."""

    def __init__(self, session, swap_seed_of=None):
        self.session, self.terms = session, session.agreement.sums
        self.parties = {number: session.party(number) for number in session.numbers}
        generator = introduce(self.terms, session=SESSION, steps=1)
        ask = next(generator)
        try:
            while True:
                replies = {n: self.parties[n].handle(request) for n, request in ask.requests.items()}
                if swap_seed_of is not None:
                    replies = {n: self.swap_seed(reply, swap_seed_of, ask.requests[n]) for n, reply in replies.items()}
                ask = generator.send(replies)
        except StopIteration:
            pass

    def swap_seed(self, reply, victim, request):
        """What the first party deals, with another seed for one of the others."""
        if not isinstance(reply, SealedSeeds):
            return reply
        holder = self.parties[1]._introduction._seed_holder
        key = next(key for key in request.keys if key.owner == victim)
        box = seal_box(
            bytes(32),
            sender=holder._key,
            recipient=key.public_key,
            context=(SESSION, "common seed", 1, victim),
            entropy=SeededEntropy(1, "another seed"),
        )
        boxes = [SealedSeed(victim, box) if dealt.recipient == victim else dealt for dealt in reply.boxes]
        return SealedSeeds(tuple(boxes))

    def ask(self, attempt, news, numbers):
        """The answers of these parties, by number; ``news`` is each one's."""
        return {n: self.parties[n].handle(MaskedRound(attempt, news(n))) for n in numbers}

    def total(self, round_, answers, members, number=1, openings=()):
        words = sum(np.frombuffer(answers[n].vector, self.terms.ring.dtype) for n in members)
        return Total(Attempt(round_, number, pack_members(members, 6)), words.tobytes(), openings)


def tell_two_sums_under_common_masks(session):
    """Two rounds; returns the liar, and what each party was told of both."""
    liar = Liar(session)
    answers = liar.ask(Attempt(1, 1, b""), lambda n: (), ALL)
    told = {n: liar.total(1, answers, ALL if n == 1 else WITHOUT_SIX) for n in ALL}
    answers = liar.ask(Attempt(2, 1, b""), lambda n: (told[n],), ALL)
    second = liar.total(2, answers, ALL)
    return liar, told, second


@pytest.mark.parametrize("kind", KINDS)
def test_parties_with_common_masks_notice_in_the_next_round(kind):
    liar, told, second = tell_two_sums_under_common_masks(make_session(kind, "common"))
    for number in ALL:
        before = liar.parties[number].state
        with pytest.raises(DivergedError, match="the same sums before"):
            liar.parties[number].handle(MaskedRound(Attempt(3, 1, b""), (told[number], second)))
        assert liar.parties[number].state is before


@pytest.mark.parametrize("kind", KINDS)
def test_without_check_words_nobody_notices(kind, monkeypatch):
    """The mutant: the session goes on, and the difference of what was told is party 6's vector under one share."""
    monkeypatch.setattr("cloister.aggregation.common_masks.state_attempt", lambda *statement: b"")
    liar, told, second = tell_two_sums_under_common_masks(make_session(kind, "common"))
    for number in ALL:
        liar.parties[number].handle(MaskedRound(Attempt(3, 1, b""), (told[number], second)))
    one, other = (liar.parties[n].state.released_totals[0] for n in (1, 2))
    share = liar.session.duties[6].sampler.drawn[0][1].reshape(one.shape)
    exact = liar.session.agreement.rule.contribute(
        liar.session.record_tables[5], np.array(liar.session.start), 1, liar.session.agreed.assignment
    )
    assert np.array_equal(one - other, exact + share)


@pytest.mark.parametrize("kind", KINDS)
def test_a_last_sum_that_differs_leaves_no_result(kind):
    """The votes on the result notice what no later round can."""
    session = make_session(kind, "common")
    liar, sums = Liar(session), ()
    for round_ in (1, 2):
        answers = liar.ask(Attempt(round_, 1, b""), lambda n: sums[-1:], ALL)  # noqa: B023
        sums = (*sums, liar.total(round_, answers, ALL))
    answers = liar.ask(Attempt(3, 1, b""), lambda n: sums[-1:], ALL)
    last = {n: liar.total(3, answers, ALL if n == 1 else WITHOUT_SIX) for n in ALL}
    votes = tuple(PartyBox(n, liar.parties[n].handle(Settle((last[n],))).box) for n in ALL)
    with pytest.raises(DivergedError, match="ours is that of 1 of 6"):
        liar.parties[1].handle(Conclude((), votes))
    for number in (2, 3, 4, 5, 6):
        liar.parties[number].handle(Conclude((), votes))
        assert liar.parties[number].finished
    assert not liar.parties[1].finished


@pytest.mark.parametrize("kind", KINDS)
def test_under_double_masks_one_of_the_two_sums_is_opened_at_most(kind):
    """Party 1 opens the sum over all; then the sum without party 6 lacks party 1's mask, and cannot be restored."""
    session = make_session(kind, "double")
    liar = Liar(session)
    attempts = Attempt(1, 1, pack_members(ALL, 6)), Attempt(1, 2, pack_members(WITHOUT_SIX, 6))
    first = liar.ask(attempts[0], lambda n: (), ALL)
    body = liar.total(1, first, ALL)
    opened = {1: liar.parties[1].handle(OpenTotal(attempts[0], digest_body(body.body)))}
    with pytest.raises(RemoteProtocolError, match="before one of its round was opened"):
        liar.ask(attempts[1], lambda n: (), [1])
    second = liar.ask(attempts[1], lambda n: (), (2, 3, 4, 5))
    second[1] = first[1]  # the frame of party 1 that was meant for the other attempt
    other = liar.total(1, second, WITHOUT_SIX, number=2)
    for number in (2, 3, 4, 5):
        opened[number] = liar.parties[number].handle(OpenTotal(attempts[1], digest_body(other.body)))
    for total, members in ((body, (1,)), (other, (2, 3, 4, 5)), (other, (1, 2, 3, 4, 5))):
        boxes = tuple(PartyBox(n, opened[n].box) for n in members)
        claimed = Total(total.attempt, total.body, boxes)
        for number in ALL:
            with pytest.raises(RemoteProtocolError):
                liar.parties[number].handle(MaskedRound(Attempt(2, 1, pack_members(ALL, 6)), (claimed,)))
    assert all(len(session.duties[n].charger.spent().releases) == 1 for n in ALL)
    assert all(len(session.duties[n].sampler.drawn) == 1 for n in ALL)


# --- with a party: what it knows makes any total fit ----------------------------------------------------------------


def open_round(liar, round_, numbers, sums):
    """A round as it should be."""
    attempt = Attempt(round_, 1, pack_members(numbers, 6))
    total = liar.total(round_, liar.ask(attempt, lambda n: sums[-1:], numbers), numbers)
    opened = {n: liar.parties[n].handle(OpenTotal(attempt, digest_body(total.body))) for n in numbers}
    return structs.replace(total, openings=tuple(PartyBox(n, reply.box) for n, reply in opened.items()))


def forge_total(liar, place, attempt, numbers, seed):
    """A total that fits for whoever stands at this place: made from the seed, which every party knows."""
    terms, masks = liar.terms, liar.parties[6]._introduction.masks
    statement = state_attempt(SESSION, place, attempt)
    length = liar.session.agreement.length
    words = append_check_words(np.zeros(length, terms.ring.dtype), seed, statement, terms.ring)
    words *= np.array(len(numbers), terms.ring.dtype)
    words[:length] = np.arange(length)
    keys = {n: bytes([n]) * 32 for n in numbers}
    for key in keys.values():
        words = words + expand_mask(key, len(words), terms.ring)
    body = write_words(words)
    boxes = (
        PartyBox(n, seal_keyed(key, seed, *masks.context("opening", attempt, n, digest_body(body))))
        for n, key in keys.items()
    )
    return Total(attempt, body, tuple(boxes))


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_last_sum_gives_nobody_another_result(kind):
    """Party 1 is called silent in the last round, and is told a sum that party 6 has made up; it takes it."""
    session = make_session(kind, "double")
    liar, sums = Liar(session), ()
    for round_ in (1, 2):
        sums = (*sums, open_round(liar, round_, ALL, sums))
    true = open_round(liar, 3, (2, 3, 4, 5, 6), sums)
    colluder = liar.parties[6]
    place, seed = colluder._follower.place, colluder._introduction.masks.seed
    forged = forge_total(liar, place, true.attempt, (2, 3, 4, 5, 6), seed)
    news = {n: (sums[-1], forged) if n == 1 else (true,) for n in ALL}
    votes = tuple(PartyBox(n, liar.parties[n].handle(Settle(news[n])).box) for n in ALL)
    assert len({liar.parties[n].state.centres.tobytes() for n in ALL}) == 2
    with pytest.raises(DivergedError, match="ours is that of 1 of 6"):
        liar.parties[1].handle(Conclude((), votes))
    for number in (2, 3, 4, 5):
        liar.parties[number].handle(Conclude((), votes))
    found = {party.centres.tobytes() for party in liar.parties.values() if party.finished}
    assert len(found) == 1
    # Told the true sum now, party 1 keeps to what it has taken, and to its one vote.
    with pytest.raises(DivergedError):
        liar.parties[1].handle(Conclude((true,), votes))
    with pytest.raises(RemoteProtocolError, match="must be asked for its vote once"):
        liar.parties[1].handle(Settle((true,)))


@pytest.mark.parametrize("kind", KINDS)
def test_who_was_away_to_the_end_takes_no_result_that_goes_with_other_sums(kind):
    """The votes are true; the last sum that comes with them is not."""
    session = make_session(kind, "double")
    liar, sums = Liar(session), ()
    for round_ in (1, 2):
        sums = (*sums, open_round(liar, round_, ALL, sums))
    true = open_round(liar, 3, (2, 3, 4, 5, 6), sums)
    colluder = liar.parties[6]
    forged = forge_total(
        liar, colluder._follower.place, true.attempt, (2, 3, 4, 5, 6), colluder._introduction.masks.seed
    )
    votes = tuple(PartyBox(n, liar.parties[n].handle(Settle((true,))).box) for n in (2, 3, 4, 5, 6))
    before = liar.parties[1].state
    with pytest.raises(DivergedError, match="ours is that of 0 of 5"):
        liar.parties[1].handle(Conclude((sums[-1], forged), votes))
    assert liar.parties[1].state is before
    liar.parties[1].handle(Conclude((sums[-1], true), votes))
    assert liar.parties[1].centres.tobytes() == liar.parties[2].state.centres.tobytes()


@pytest.mark.parametrize("masks", ["common", "double"])
def test_parties_that_were_given_different_seeds_read_nothing(masks):
    """A colluding party draws the seed, and seals another one to party 2."""
    session = make_session("sound", masks)
    liar = Liar(session, swap_seed_of=2)
    seeds = {n: liar.parties[n]._introduction.masks.seed for n in ALL}
    assert len({*seeds.values()}) == 2
    if masks == "double":
        total = open_round(liar, 1, ALL, ())
    else:
        total = liar.total(1, liar.ask(Attempt(1, 1, b""), lambda n: (), ALL), ALL)
    attempt = Attempt(2, 1, pack_members(ALL, 6) if masks == "double" else b"")
    for number in ALL:
        with pytest.raises((DivergedError, RemoteProtocolError)):
            liar.parties[number].handle(MaskedRound(attempt, (total,)))
    assert all(len(session.duties[n].charger.spent().releases) == 1 for n in ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_with_double_masks_finds_what_one_with_common_masks_does(kind):
    """The same noise: masks change nothing of the result."""
    centres = []
    for masks in ("common", "double"):
        session = make_session(kind, masks)
        run, parties = session.run()
        assert run.result.members == (ALL,) * 3
        assert run.steps == session.agreement.steps == (3 + 3 + 2 if masks == "common" else 4 + 6 + 2)
        centres += [party.centres.tobytes() for party in parties]
    assert len(set(centres)) == 1
