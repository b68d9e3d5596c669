"""An active coordinator with up to t parties reads one sum per round, over a quorum; and each rule is needed for it.

All strategies over two attempts, for up to five parties: any two sets of members, and each honest party opens the
first, the second or neither. Whatever is refused is tried as well, and whatever can be restored is asked for.
"""

import itertools

import numpy as np
import pytest

from cloister.aggregation import SumTerms, double_masks, least_quorum, own_masks
from cloister.aggregation import terms as terms_module
from cloister.aggregation.double_masks import DoubleMasks
from cloister.aggregation.messages import Attempt
from cloister.aggregation.own_masks import derive_mask_key, expand_mask
from cloister.aggregation.statements import state_attempt
from cloister.crypto import SeededEntropy
from cloister.errors import ConfigError, RemoteProtocolError
from tests.aggregation.sums import PLACE, SESSION, Coalition, make_masks, make_terms, members_of, vector_of

QUORUMS = [
    (n, q, t) for n in (2, 3, 4, 5) for q in range(2, n + 1) for t in range(n) if 2 * q > n + t and (n, q) != (5, 3)
]
"""All of up to five parties; of five with q = 3, t = 0 a part, below: it has 60,000 strategies."""


def member_sets(parties, quorum):
    numbers = range(1, parties + 1)
    return [set(s) for size in range(quorum, parties + 1) for s in itertools.combinations(numbers, size)]


def stands_for_its_size(members, alike):
    """Whether a set has the first of parties that are all alike: others differ by their numbers only."""
    return [number in members for number in alike] == sorted((number in members for number in alike), reverse=True)


def play(terms, colluders, first, second, choices):
    """One strategy: what the coalition holds after it."""
    coalition = Coalition(terms, colluders)
    attempts = [coalition.attempt(1, first), coalition.attempt(2, second)]
    for party, choice in choices.items():
        steps = {0: "a0 a1", 1: "a0 o0 a1 o1", 2: "a0 a1 o0 o1"}[choice]
        for step in steps.split():
            attempt = attempts[int(step[1])]
            if party in members_of(attempt, terms):
                (coalition.ask if step[0] == "a" else coalition.ask_to_open)(party, attempt)
    for attempt in attempts:
        answered = [party for party in coalition.honest if (party, attempt) in coalition.answers]
        silent = [party for party in answered if (party, attempt) not in coalition.opened]
        for party in answered:
            for asked in (silent, [other for other in silent if other != party]):
                if asked:
                    coalition.ask_to_restore(party, attempt, asked)
    return coalition


def strategies(parties, quorum, colluding, every=1):
    """All strategies up to the numbering of parties: those that collude are the last ones."""
    colluders = range(parties - colluding + 1, parties + 1)
    honest = range(1, parties - colluding + 1)
    sets = member_sets(parties, quorum)
    pairs = itertools.product(
        (s for s in sets if stands_for_its_size(s, honest) and stands_for_its_size(s, colluders)), sets
    )
    choices = list(itertools.product((0, 1, 2), repeat=len(honest)))
    for count, ((first, second), chosen) in enumerate(itertools.product(pairs, choices)):
        if count % every == 0:
            yield colluders, first, second, dict(zip(honest, chosen, strict=True))


def largest_leak(terms, every=1):
    """The most that any strategy reads: sums per round, and by how many honest vectors the smallest is short."""
    most, short = 0, 0
    for colluders, first, second, choices in strategies(terms.parties, terms.members_min, terms.colluding_max, every):
        coalition = play(terms, colluders, first, second, choices)
        readable = coalition.find_readable()
        most = max(most, len(readable))
        for combination in readable:
            honest = sum(abs(weight) > 1e-9 for weight in combination.values())
            short = max(short, terms.members_min - terms.colluding_max - honest)
        if most > 1 or short > 0:
            break
    return most, short


@pytest.mark.parametrize(("parties", "quorum", "colluding"), QUORUMS)
def test_whatever_the_coalition_asks_it_reads_one_sum_over_the_quorum_at_most(parties, quorum, colluding):
    assert 2 * quorum > parties + colluding
    assert largest_leak(make_terms(parties, quorum, colluding)) == (1, 0)


def test_five_parties_of_which_three_are_a_quorum():
    assert largest_leak(make_terms(5, 3), every=11) == (1, 0)


def test_what_is_readable_is_the_plain_sum_of_one_attempt():
    """The algebra speaks of the real frames: the pads cancel, the opened masks come off."""
    terms = make_terms(4, 3, 1)
    coalition = play(terms, [4], {1, 2, 3}, {1, 2, 3, 4}, {1: 2, 2: 2, 3: 2})
    (combination,) = coalition.find_readable()
    total = np.zeros(5, dtype=np.uint32)
    scale = next(weight for weight in combination.values() if abs(weight) > 1e-9)
    for (party, attempt), weight in combination.items():
        if abs(weight) > 1e-9:
            assert weight == pytest.approx(scale)
            statement = state_attempt(SESSION, PLACE, attempt)
            words = np.frombuffer(coalition.answers[party, attempt].vector, np.uint32)
            words = words - expand_mask(coalition.true_keys[party, attempt], 5, terms.ring)
            total = total + words + make_masks(terms, 4)._pads._keystream(party, 5, statement) * np.uint32(2**32 - 1)
    assert total[0] == sum(vector_of(party)[0] for party in (1, 2, 3))


# --- the two attacks --------------------------------------------------------------------------------------------------


def tell_halves(terms, colluders):
    """Each half is told that the other has dropped out."""
    return play(terms, colluders, {1, 2, 3, 6}, {4, 5, 6, 3}, {1: 1, 2: 1, 3: 1, 4: 2, 5: 2})


def tell_two_sums(terms, colluders):
    """Party 1 is told the sum over all, the others the sum without the fifth, who is late in the first."""
    choices = {1: 1, 2: 2, 3: 2, 4: 2, 5: 0}
    return play(terms, colluders, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 6}, choices)


@pytest.mark.parametrize("attack", [tell_halves, tell_two_sums])
def test_an_attack_shows_one_sum_at_most(attack):
    for quorum, colluders in ((4, [6]), (5, [6])):
        coalition = attack(make_terms(6, quorum, 1), colluders)
        assert len(coalition.find_readable()) <= 1


def test_pads_alone_give_a_late_party_away():
    """The difference of two sums is the fifth party's vector: one sum more than was paid for."""
    everyone = {1, 2, 3, 4, 5, 6}
    coalition = play(make_terms(6, 5, 1), [6], everyone, everyone - {5}, dict.fromkeys(range(1, 6), 0))
    assert len(coalition.find_readable(own_masks=False)) == 2
    assert coalition.find_readable() == []


def test_pads_alone_give_a_late_party_away_in_the_real_frames(monkeypatch):
    monkeypatch.setattr(double_masks, "expand_mask", lambda key, length, ring: np.zeros(length, ring.dtype))
    assert (late_difference() == vector_of(5)).all()
    monkeypatch.undo()
    assert not (late_difference() == vector_of(5)).all()


def late_difference():
    """All answers to the first attempt less all to the second, check words apart; the sixth party tells its pads."""
    terms = make_terms(6, 4)
    coalition = play(terms, [], {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 6}, {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0})
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
    coalition = play(terms, [5], {1, 5}, {1, 2, 3, 4, 5}, {1: 1, 2: 0, 3: 0, 4: 0})
    return max(3 - sum(abs(w) > 1e-9 for w in combination.values()) for combination in coalition.find_readable())


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
    return [c for c in coalition.find_readable() if any(a.round == 1 and abs(w) > 1e-9 for (_, a), w in c.items())]


def test_a_round_that_was_given_up_stays_closed_whoever_is_restored_later():
    assert open_rounds_without_one_each() == []


def test_secrets_of_a_whole_session_open_rounds_that_were_given_up(monkeypatch):
    monkeypatch.setattr(double_masks, "draw_secret", lambda entropy: own_masks.derive_key(b"s", entropy._label))
    monkeypatch.setattr("tests.aggregation.sums.SeededEntropy", Labelled)
    assert open_rounds_without_one_each() != []


class Labelled:
    """Entropy that tells whose it is."""

    is_simulation = True

    def __init__(self, seed, label):
        self._inner, self._label = SeededEntropy(seed, label), label

    def bytes(self, count):
        return self._inner.bytes(count)


# --- one question, one vector -----------------------------------------------------------------------------------------


def test_a_later_attempt_asks_the_same_question_on_the_same_vector():
    terms = make_terms(3, 3, 1)
    masks, made = make_masks(terms, 1), []

    def make():
        made.append(1)
        return vector_of(1)

    coalition = Coalition(terms)
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
    assert len(set(coalition.true_keys.values())) == 2
    assert derive_mask_key(b"k" * 32, b"one") != derive_mask_key(b"k" * 32, b"other")
