"""An active coordinator with up to t parties reads one sum per round, over a quorum; and each rule is needed for it.

All strategies over two attempts, for up to five parties: any two sets of members, each honest party at one of two
places, and opening the first attempt, the second or neither. All over three attempts, from one place. Whatever is
refused is asked for as well, and whatever can be restored.
"""

import itertools

import numpy as np
import pytest

from cloister.aggregation import SumTerms, double_masks, least_quorum, own_masks
from cloister.aggregation import terms as terms_module
from cloister.aggregation.double_masks import DoubleMasks
from cloister.aggregation.messages import Attempt
from cloister.aggregation.own_masks import derive_mask_key, expand_mask
from cloister.errors import ConfigError, RemoteProtocolError
from tests.aggregation import sums
from tests.aggregation.sums import ELSEWHERE, PLACE, Coalition, Parties, make_masks, make_terms, members_of, vector_of

QUORUMS = [(n, q, t) for n in (2, 3, 4, 5) for q in range(2, n + 1) for t in range(q) if 2 * q > n + t]
"""All of up to five parties."""


def play(coalition, sets, choices):
    """One strategy: the attempts are over these sets, and each honest party opens the one chosen for it, if any."""
    attempts = [coalition.attempt(number, members) for number, members in enumerate(sets, start=1)]
    for party, choice in choices.items():
        own = [attempt for attempt, members in zip(attempts, sets, strict=True) if party in members]
        for attempt in own:
            coalition.ask(party, attempt)
            if choice and attempt == attempts[choice - 1]:
                coalition.ask_to_open(party, attempt)
        for attempt in own if choice else ():  # refused
            coalition.ask_to_open(party, attempt)
            coalition.ask(party, attempt)
    for attempt in attempts:
        answered = [party for party in coalition.honest if (party, attempt) in coalition.frames]
        silent = [party for party in answered if (party, attempt) not in coalition.opened]
        for party in answered:
            for asked in (silent, [other for other in silent if other != party]):
                if asked:
                    coalition.ask_to_restore(party, attempt, asked)
    return coalition


def strategies(terms, attempts, places):
    """All strategies up to the numbering of the parties: (sets of members, each party's choice, each party's place).

    A strategy says of each honest party in which attempts it is a member, which of these it opens, and where it stands;
    of the others, in which attempts they are members. Nothing else matters to what is read. A party's answers depend on
    what it was asked itself, and every wish that it refuses is asked last and changes nothing. Votes and shares are
    asked for when all votes are there. To ask for less gives the coalition less. Parties differ by their numbers only,
    which decide the signs of pads, orders and the points of shares: so a strategy is how many parties do what. The
    numbers are turned from one strategy to the next, so that none is always the first.
    """
    memberships = list(itertools.product((False, True), repeat=attempts))
    kinds = [
        (inside, choice, place)
        for inside in memberships
        for choice in (0, *(at for at in range(1, attempts + 1) if inside[at - 1]))
        for place in range(places if any(inside) else 1)
    ]
    others = terms.colluding_max
    combinations = itertools.product(
        itertools.combinations_with_replacement(kinds, terms.parties - others),
        itertools.combinations_with_replacement(memberships, others),
    )
    for turn, (honest, colluding) in enumerate(combinations):
        inside = [*(kind[0] for kind in honest), *colluding]
        counts = [sum(column) for column in zip(*inside, strict=True)]
        if min(counts) < terms.members_min or sum(kind[2] for kind in honest) * 2 > len(honest):
            continue  # too small a set is refused by all; the two places are alike
        turned = [honest[(at + turn) % len(honest)] for at in range(len(honest))]
        inside = [*(kind[0] for kind in turned), *colluding]
        sets = [{number for number, row in enumerate(inside, 1) if row[at]} for at in range(attempts)]
        numbered = dict(enumerate(turned, start=1))
        elsewhere = {number: ELSEWHERE for number, kind in numbered.items() if kind[2]}
        yield sets, {number: kind[1] for number, kind in numbered.items()}, elsewhere


def colluders_of(terms):
    return range(terms.parties - terms.colluding_max + 1, terms.parties + 1)


def largest_leak(terms, attempts=2, places=2):
    """The most that any strategy reads: sums per round, and by how many honest vectors the smallest is short."""
    most, short, parties = 0, 0, Parties(terms)
    for sets, choices, elsewhere in strategies(terms, attempts, places):
        coalition = play(Coalition(terms, colluders_of(terms), parties, elsewhere), sets, choices)
        readable = coalition.find_readable()
        most = max(most, len(readable))
        for combination in readable:
            short = max(short, terms.members_min - terms.colluding_max - len(combination))
            assert len({*combination.values()}) == 1 or most > 1  # a sum, each vector as often as the others
        if most > 1 or short > 0:
            break
    return most, short


@pytest.mark.parametrize(("parties", "quorum", "colluding"), QUORUMS)
def test_whatever_the_coalition_asks_it_reads_one_sum_over_the_quorum_at_most(parties, quorum, colluding):
    assert 2 * quorum > parties + colluding
    assert largest_leak(make_terms(parties, quorum, colluding)) == (1, 0)


@pytest.mark.parametrize(("parties", "quorum", "colluding"), QUORUMS)
def test_three_attempts_show_no_more_than_two(parties, quorum, colluding):
    assert largest_leak(make_terms(parties, quorum, colluding), attempts=3, places=1) == (1, 0)


def test_what_is_readable_is_the_plain_sum_of_one_attempt():
    """The algebra speaks of the real frames: the pads cancel, the opened masks come off."""
    terms = make_terms(4, 3, 1)
    coalition = play(Coalition(terms, [4]), [{1, 2, 3}, {1, 2, 3, 4}], {1: 2, 2: 2, 3: 2})
    (combination,) = coalition.find_readable()
    total = np.zeros(5, dtype=np.uint32)
    assert len(combination) == 3
    for key in combination:
        frame = coalition.frames[key]
        words = np.frombuffer(frame.reply.vector, np.uint32) - expand_mask(frame.mask_key, 5, terms.ring)
        total = total + words + make_masks(terms, 4)._pads._keystream(key[0], 5, frame.statement) * np.uint32(2**32 - 1)
    assert total[0] == sum(vector_of(party)[0] for party in (1, 2, 3))


# --- the two attacks --------------------------------------------------------------------------------------------------


def tell_halves(terms, colluders):
    """Each half is told that the other has dropped out."""
    return play(Coalition(terms, colluders), [{1, 2, 3, 6}, {4, 5, 6, 3}], {1: 1, 2: 1, 3: 1, 4: 2, 5: 2})


def tell_two_sums(terms, colluders):
    """Party 1 is told the sum over all, the others the sum without the fifth, who is late in the first."""
    choices = {1: 1, 2: 2, 3: 2, 4: 2, 5: 0}
    return play(Coalition(terms, colluders), [{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 6}], choices)


@pytest.mark.parametrize("attack", [tell_halves, tell_two_sums])
def test_an_attack_shows_one_sum_at_most(attack):
    for quorum, colluders in ((4, [6]), (5, [6])):
        coalition = attack(make_terms(6, quorum, 1), colluders)
        assert len(coalition.find_readable()) <= 1


def test_pads_alone_give_a_late_party_away(monkeypatch):
    """The difference of two sums is the fifth party's vector: one sum more than was paid for."""
    everyone = {1, 2, 3, 4, 5, 6}

    def ask_all_twice():
        return play(Coalition(make_terms(6, 5, 1), [6]), [everyone, everyone - {5}], dict.fromkeys(range(1, 6), 0))

    assert ask_all_twice().find_readable() == []
    assert not (late_difference() == vector_of(5)).all()
    for module in (double_masks, sums):
        monkeypatch.setattr(module, "expand_mask", lambda key, length, ring: np.zeros(length, ring.dtype))
    assert len(ask_all_twice().find_readable()) == 2
    assert (late_difference() == vector_of(5)).all()


def late_difference():
    """All answers to the first attempt less all to the second, check words apart; the sixth party tells its pads."""
    terms = make_terms(6, 4)
    coalition = play(Coalition(terms), [{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 6}], dict.fromkeys(range(1, 7), 0))
    totals = [np.zeros(1, dtype=np.uint32)] * 2
    for (_, attempt), answer in coalition.answers.items():
        words = np.frombuffer(answer.vector, np.uint32)[:1]
        totals[attempt.number - 1] = totals[attempt.number - 1] + words
    return totals[0] - totals[1]


def test_common_masks_show_every_vector_to_the_coordinator_and_one_party():
    """With shared noise each of them carries one share of it, too little."""
    terms = make_terms(6, 4, masks="common")
    attempt = Attempt(1, 1, b"")
    answers = {n: make_masks(terms, n).answer(attempt, PLACE, lambda n=n: vector_of(n)) for n in range(1, 6)}
    known_by_the_sixth = make_masks(terms, 6)._schedule
    for number, answer in answers.items():
        words = np.frombuffer(answer.vector, np.uint32)
        assert words[0] - known_by_the_sixth.mask_of(1, number, 5)[0] == vector_of(number)[0]


# --- every rule is needed ---------------------------------------------------------------------------------------------


def test_without_the_quorum_two_sums_are_opened(monkeypatch):
    with pytest.raises(ConfigError, match=r"be over at least 4 of them, so that no two sums"):
        make_terms(5, 3, 1)
    assert least_quorum(5, 1) == 4
    monkeypatch.setattr(terms_module, "least_quorum", lambda parties, colluding: 0)
    assert largest_leak(make_terms(4, 2, 0)) != (1, 0)
    assert largest_leak(make_terms(4, 3, 2)) != (1, 0)


def test_a_party_that_opens_twice_shows_two_sums(monkeypatch):
    real = DoubleMasks._open

    def open_and_forget(self, request):
        reply = real(self, request)
        self._progress = "answered"
        return reply

    monkeypatch.setattr(DoubleMasks, "_open", open_and_forget)
    assert largest_leak(make_terms(3, 2, 0))[0] > 1


def test_shares_for_what_one_has_not_opened_show_two_sums(monkeypatch):
    def restore_anything(self, progress, attempt=None):
        return real(self, "answered" if progress == "opened" and self._progress == "answered" else progress, attempt)

    real = DoubleMasks._require
    monkeypatch.setattr(DoubleMasks, "_require", restore_anything)
    monkeypatch.setattr(DoubleMasks, "_check_votes", lambda self, votes, entered: None)
    assert largest_leak(make_terms(4, 3, 0)) != (1, 0)


def test_shares_without_the_votes_of_a_quorum_show_two_sums(monkeypatch):
    monkeypatch.setattr(DoubleMasks, "_check_votes", lambda self, votes, entered: None)
    assert largest_leak(make_terms(4, 3, 0)) != (1, 0)


def test_as_many_shares_as_may_collude_show_two_sums(monkeypatch):
    monkeypatch.setattr(SumTerms, "restorers", property(lambda terms: max(1, terms.colluding_max)))
    assert largest_leak(make_terms(4, 3, 1)) != (1, 0)


def test_a_sum_without_ourselves_or_over_too_few_is_not_answered(monkeypatch):
    coalition = Coalition(make_terms(5, 4, 1), [5])
    assert not coalition.ask(1, coalition.attempt(1, {2, 3, 4, 5}))
    assert not coalition.ask(1, coalition.attempt(1, {1, 2, 3}))
    monkeypatch.setattr(DoubleMasks, "_read_members", lambda self, attempt: tuple(members_of(attempt, self._terms)))
    assert largest_leak_of_small_sums() > 0


def largest_leak_of_small_sums():
    """How many honest vectors the smallest readable sum is short of, where a sum over two is answered."""
    terms = make_terms(5, 4, 1)
    coalition = play(Coalition(terms, [5]), [{1, 5}, {1, 2, 3, 4, 5}], {1: 1, 2: 0, 3: 0, 4: 0})
    return max(3 - len(combination) for combination in coalition.find_readable())


# --- secrets of several attempts --------------------------------------------------------------------------------------


def open_rounds_without_one_each():
    """Round 1 is given up after all have answered; then each round restores the mask of another party, and the first
    round's sums are read again. Four parties, t = 1, q = 3.
    """
    coalition = Coalition(make_terms(4, 3, 1), [4])
    everyone = {1, 2, 3, 4}
    for party in coalition.honest:
        coalition.ask(party, coalition.attempt(1, everyone))
    for round_, silent in ((2, 1), (3, 2), (4, 3)):
        attempt = coalition.attempt(1, everyone, round_)
        for party in coalition.honest:
            assert coalition.ask(party, attempt)
        others = [party for party in coalition.honest if party != silent]
        for party in others:
            assert coalition.ask_to_open(party, attempt)
        for party in others:
            assert coalition.ask_to_restore(party, attempt, [silent])
    return [combination for combination in coalition.find_readable() if any(a.round == 1 for _, a in combination)]


def test_a_round_that_was_given_up_stays_closed_whoever_is_restored_later():
    assert open_rounds_without_one_each() == []


def test_secrets_of_a_whole_session_open_rounds_that_were_given_up(monkeypatch):
    monkeypatch.setattr(double_masks, "draw_secret", lambda entropy: own_masks.derive_key(b"s", entropy.label))
    assert open_rounds_without_one_each() != []


# --- one question, one vector -----------------------------------------------------------------------------------------


def test_a_later_attempt_asks_the_same_question_on_the_same_vector():
    terms = make_terms(3, 3, 1)
    masks, made = make_masks(terms, 1), []

    def make():
        made.append(1)
        return vector_of(1)

    coalition = Coalition(terms)
    with pytest.raises(RemoteProtocolError, match=r"must have us among|must be over at least"):
        masks.answer(coalition.attempt(1, {2, 3}), PLACE, make)
    assert made == []  # nothing is charged for what is refused
    masks.answer(coalition.attempt(1, {1, 2, 3}), PLACE, make)
    first = masks._entered.vector
    other = type(PLACE)(link=PLACE.link, subject=b"another")
    with pytest.raises(RemoteProtocolError, match="must ask the same question"):
        masks.answer(coalition.attempt(2, {1, 2, 3}), other, make)
    masks.answer(coalition.attempt(2, {1, 2, 3}), PLACE, make)
    assert len(made) == 1
    assert masks._entered.vector is first
    for number in (1, 2):
        with pytest.raises(RemoteProtocolError, match="must be later than attempt 2"):
            masks.answer(coalition.attempt(number, {1, 2, 3}), PLACE, make)


def test_own_masks_differ_from_attempt_to_attempt():
    coalition = Coalition(make_terms(3, 2))
    for number in (1, 2):
        coalition.ask(1, coalition.attempt(number, {1, 2, 3}))
    assert len({frame.mask_key for frame in coalition.frames.values()}) == 2
    assert derive_mask_key(b"k" * 32, b"one") != derive_mask_key(b"k" * 32, b"other")
