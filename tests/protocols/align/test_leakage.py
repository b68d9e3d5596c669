"""What the coordinator and the parties see says no more than the leakage tables. Each test kills a mutant.

An attack here is a function of one role's (or coalition's) view; it must do no better than chance on the protocol, and
succeed on the mutant.
"""

import numpy as np
import pytest
from scipy import stats

from cloister.crypto import SystemEntropy
from cloister.privacy.units import Learns
from cloister.protocols.align import coordinator as coordinator_module
from cloister.protocols.align import party as party_module
from cloister.protocols.align.coordinator import Matching, match_lists
from cloister.protocols.align.group import ORDER, BlindingKey, hash_to_points
from cloister.protocols.align.terms import LEAKAGE, BlindPart, Delivered, Mode, RingMet, TakePlaces
from tests.protocols.align.sessions import AlignSession, Watched, name_ids

ALPHA = 1e-6


def cut(points):
    return [points[at : at + 32] for at in range(0, len(points), 32)]


def invert(*exponents):
    return BlindingKey.from_exponent(pow(int(np.prod(np.array(exponents, dtype=object))) % ORDER, -1, ORDER))


def delivered_lists(run, parties):
    """The coordinator's view: the lists by owner, fully blinded, under one set of keys."""
    lists = dict.fromkeys(range(1, len(parties) + 1), b"")
    ratios = {e.sender: e.message.ratios for e in run.views[0] if isinstance(e.message, RingMet)}
    for entry in run.views[0]:
        if isinstance(entry.message, Delivered):
            owner = parties[0]._terms.owner_at(entry.sender, len(parties) - 1)
            lists[owner] += entry.message.points
    exponents = {owner: [int.from_bytes(ratios[party][owner - 1], "little") for party in ratios] for owner in lists}
    return {owner: cut(invert(*exponents[owner]).blind(points)) for owner, points in lists.items()}


def coordinator_places(run, number):
    """The places that the coordinator gave a party's list, in the list's order."""
    parts = [entry.message.places for entry in run.views[number] if isinstance(entry.message, TakePlaces)]
    return np.concatenate([np.frombuffer(part.data, dtype="<i8") for part in parts])


# --- what the tables say ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
def test_the_coordinator_learns_sizes_and_overlaps_as_the_table_says(mode):
    sets = [name_ids(range(8)), name_ids(range(5, 11)), name_ids([5, 6, 30])]
    run, parties = AlignSession(sets, mode=mode).run(record_views=True)
    lists = delivered_lists(run, parties)
    assert LEAKAGE[mode].learns("coordinator", "sizes") is Learns.EXACT
    assert [len(points) for points in lists.values()] == [8, 6, 3]
    assert LEAKAGE[mode].learns("coordinator", "overlaps") is Learns.EXACT
    assert len(set(lists[1]) & set(lists[2])) == 3
    assert len(set(lists[1]) & set(lists[2]) & set(lists[3])) == 2


@pytest.mark.parametrize("mode", Mode)
def test_a_party_learns_sizes_count_and_its_own_places_as_the_table_says(mode):
    sets = [name_ids(range(8)), name_ids(range(5, 11)), name_ids([5, 6, 30])]
    _, parties = AlignSession(sets, mode=mode).run()
    assert {key: len(points) // 32 for key, points in parties[0].opened.items()} == {(3, 1): 3, (2, 2): 6}
    assert LEAKAGE[mode].learns("party", "places") is Learns.OWN
    assert parties[0].alignment.count == (2 if mode is Mode.INTERSECTION else 12)


def shapes(run, parties):
    """Everything about all views but the bytes: types, orders, lengths."""

    def shape(value):
        if isinstance(value, bytes | str):
            return len(value)
        if isinstance(value, tuple):
            return tuple(shape(item) for item in value)
        fields = getattr(value, "__struct_fields__", None)
        return value if fields is None else (type(value).__name__, *(shape(getattr(value, name)) for name in fields))

    views = {role: [(e.step, e.sender, shape(e.message)) for e in view] for role, view in run.views.items()}
    return views, [{key: len(points) for key, points in party.opened.items()} for party in parties]


@pytest.mark.parametrize("mode", Mode)
def test_equal_sizes_give_messages_of_equal_shape_whatever_the_ids_are(mode):
    """All but the IDs are equal: lengths of lists, and which parties share how many."""
    one = [name_ids(range(8)), name_ids(range(5, 11)), name_ids([5, 6, 30])]
    other = [[b"an ID that is much longer" * 9 + exact_id for exact_id in reversed(ids)] for ids in one]
    seen = [shapes(*AlignSession(sets, mode=mode).run(record_views=True)) for sets in (one, other)]
    assert seen[0] == seen[1]


# --- the coordinator -------------------------------------------------------------------------------------------------


class Unshuffled(Watched):
    """Mutant: its list is in the order of its rows."""

    def _meet(self, request):
        reply = super()._meet(request)
        self._order = np.arange(len(self._exact_ids))
        return reply


def guess_rows(party_class):
    """The coordinator guesses that common IDs stand in their list where they stand in the table: the first ten rows."""
    hits = 0
    for seed in range(30):
        sets = [name_ids(range(20)), name_ids([*range(10), *range(100, 110)])]
        run, parties = AlignSession(sets, seed=seed, party_class=party_class).run(record_views=True)
        lists = delivered_lists(run, parties)
        hits += sum(point in lists[2] for point in lists[1][:10])
    return hits


def test_the_coordinator_does_not_learn_which_rows_are_common():
    # Ten of twenty without replacement: 5 a session, variance 10 (10/20) (10/20) (10/19).
    z = abs(guess_rows(Watched) - 150) / np.sqrt(30 * 10 * 0.25 * 10 / 19)
    assert 2 * stats.norm.sf(z) > ALPHA


def test_a_list_in_the_order_of_its_rows_would_be_caught():
    assert guess_rows(Unshuffled) == 300


def count_known_holders(seeds):
    """The coordinator guesses that its own order is the final one; two parties, no ID common."""
    hits = 0
    for seed in seeds:
        sets = [name_ids(range(10)), name_ids(range(100, 110))]
        run, parties = AlignSession(sets, mode=Mode.UNION, seed=seed).run(record_views=True)
        guessed = set(coordinator_places(run, 1).tolist())
        hits += len(guessed & set(parties[0].alignment.places.tolist()))
    return hits


def test_the_coordinator_does_not_learn_who_holds_the_record_at_a_place():
    z = abs(count_known_holders(range(30)) - 150) / np.sqrt(30 * 10 * 0.25 * 10 / 19)
    assert 2 * stats.norm.sf(z) > ALPHA


def test_places_that_the_parties_do_not_move_would_be_caught(monkeypatch):
    class Still:
        def __init__(self, key):
            self._key = key

        def permutation(self, count):
            return np.arange(count)

    monkeypatch.setattr(party_module, "Stream", Still)
    assert count_known_holders(range(3)) == 30


def dictionary_hits(session):
    """The coordinator, who knows every ID that there may be, tries to recognise points without any party's key."""
    run, parties = session.run(record_views=True)
    candidates = set(cut(BlindingKey.from_exponent(1).blind(hash_to_points(name_ids(range(40))))))
    candidates |= set(cut(hash_to_points(name_ids(range(40)))))
    seen = {point for points in delivered_lists(run, parties).values() for point in points}
    boxes = b"".join(e.message.points for e in run.views[0] if isinstance(e.message, Delivered))
    return len(candidates & (seen | set(cut(boxes))))


def test_the_coordinator_recognises_no_id_and_a_key_that_is_no_secret_would_be_caught(monkeypatch):
    session = AlignSession([name_ids(range(8)), name_ids(range(4, 12))])
    assert dictionary_hits(session) == 0
    monkeypatch.setattr(BlindingKey, "draw", classmethod(lambda cls, entropy: cls.from_exponent(1)))
    assert dictionary_hits(session) == 12


def test_points_of_one_id_differ_between_sessions():
    views = []
    for seed in (1, 2):
        run, parties = AlignSession([name_ids(range(8)), name_ids(range(4, 12))], seed=seed).run(record_views=True)
        seen = {point for points in delivered_lists(run, parties).values() for point in points}
        views.append(seen | {p for party in parties for points in party.opened.values() for p in cut(points)})
    assert not views[0] & views[1]


def test_lists_on_their_way_are_sealed():
    """No point that a party opens is in a message that the coordinator carries."""
    run, parties = AlignSession([name_ids(range(8)), name_ids(range(4, 12)), name_ids(range(3))]).run(record_views=True)
    carried = b"".join(
        e.message.box or b"" for number in (1, 2, 3) for e in run.views[number] if isinstance(e.message, BlindPart)
    )
    opened = [point for party in parties for points in party.opened.values() for point in cut(points)]
    assert len(opened) == 2 * (8 + 8 + 3)
    assert not any(point in carried for point in opened)


# --- parties ---------------------------------------------------------------------------------------------------------


class OneKey(Watched):
    """Mutant: one key for all lists, as in the textbook protocol."""

    def _meet(self, request):
        reply = super()._meet(request)
        self._keys = (self._keys[0],) * self._terms.parties
        return RingMet(reply.elements, (reply.ratios[0],) * self._terms.parties)


def match_as_coalition(coalition, party_class, parties=4):
    """Parties put together all lists that they saw, take their own keys off, and look for points in two lists."""
    sets = [name_ids([*range(5), 100 + number]) for number in range(parties)]
    run, roles = AlignSession(sets, mode=Mode.UNION, party_class=party_class).run()
    assert run.result.count == 5 + parties
    terms = roles[0]._terms
    stripped = {}
    for member in coalition:
        for (owner, hop), points in roles[member - 1].opened.items():
            before = [terms.carrier_at(owner, earlier) for earlier in range(hop)]
            own = [roles[p - 1]._keys[owner - 1].exponent for p in before if p in coalition]
            stripped[member, owner, hop] = (owner, set(cut(invert(*own, 1).blind(points))))
    for member in coalition:  # and their own lists, as they would be without any key
        plain = cut(BlindingKey.from_exponent(1).blind(hash_to_points(sets[member - 1])))
        stripped[member, member, 0] = (member, set(plain))
    views = list(stripped.values())
    return max(
        len(a & b)
        for at, (one, a) in enumerate(views)
        for other, b in views[at + 1 :]
        if one != other and not {one, other} <= set(coalition)
    )


@pytest.mark.parametrize("coalition", [{1}, {1, 2}, {1, 3}, {2, 4}, {1, 2, 3}, {2, 3, 4}])
def test_parties_that_put_their_views_together_match_nothing(coalition):
    assert match_as_coalition(coalition, Watched) == 0


@pytest.mark.parametrize("coalition", [{1, 2}, {1, 3}, {1, 2, 3}, {2, 3, 4}])
def test_one_key_for_all_lists_would_be_caught(coalition):
    assert match_as_coalition(coalition, OneKey) == 5


def by_appearance(lists, mode, stream):
    """Mutant: places in the order in which points first appear, the first list's first."""
    matching = match_lists(lists, mode, stream)
    old = np.concatenate(matching.places)
    _, first = np.unique(old, return_index=True)
    rank = np.empty(matching.count, dtype=np.int64)
    rank[old[np.sort(first)]] = np.arange(matching.count)
    return Matching(places=tuple(rank[p] for p in matching.places), count=matching.count, digest=matching.digest)


def guess_members(seeds):
    """Party 2 guesses that party 1 holds those of its IDs that the coordinator put at places below |S_1|."""
    right = 0
    for seed in seeds:
        sets = [name_ids(range(10)), name_ids(range(5, 15))]
        run, parties = AlignSession(sets, mode=Mode.UNION, seed=seed).run(record_views=True)
        held = [sets[1][row] in sets[0] for row in parties[1]._order]
        right += sum((coordinator_places(run, 2) < 10) == held)
    return right


def test_places_do_not_tell_a_party_who_else_holds_its_ids():
    # 10 guesses a session at places that are a random 10 of 15: right with probability 1/2 by symmetry.
    right = guess_members(range(40))
    assert stats.binomtest(right, 400, 0.5).pvalue > ALPHA


def test_places_in_the_order_of_appearance_would_be_caught(monkeypatch):
    monkeypatch.setattr(coordinator_module, "match_lists", by_appearance)
    assert guess_members(range(3)) == 30


# --- what breaks it --------------------------------------------------------------------------------------------------


def test_the_coordinator_and_a_party_know_who_holds_that_partys_ids():
    """As the table says: this is the coalition that breaks it."""
    sets = [name_ids(range(10)), name_ids(range(5, 15))]
    run, parties = AlignSession(sets, mode=Mode.UNION).run(record_views=True)
    held_by_2 = set(coordinator_places(run, 2).tolist())  # the coordinator's
    mine = dict(zip(parties[0]._order.tolist(), coordinator_places(run, 1).tolist(), strict=True))  # party 1's
    assert {row for row, place in mine.items() if place in held_by_2} == set(range(5, 10))
    assert "coordinator and any one party" in LEAKAGE[Mode.UNION].breaks_if


# --- the order of a list ------------------------------------------------------------------------------------------


def record_orders(monkeypatch, seed):
    """In which order each party hashes the rows of its own list; entropy is the system's, not the seed's."""
    rows = {}
    real = party_module.hash_to_points

    def keep(ids):
        rows.setdefault(len(rows), [int(exact_id.rpartition(b"-")[2]) for exact_id in ids])
        return real(ids)

    session = AlignSession([name_ids(range(40))] * 3, part_elements=64, seed=seed)
    monkeypatch.setattr(party_module, "hash_to_points", keep)
    parties = [session.party(number, entropy=SystemEntropy()) for number in session.numbers]
    session.run(parties)
    monkeypatch.setattr(party_module, "hash_to_points", real)
    return list(rows.values())


def test_every_party_sends_its_list_in_an_order_of_its_own_that_changes_from_run_to_run(monkeypatch):
    """In the table's order, whoever blinds it next would know which row each place of the result came from."""
    orders = record_orders(monkeypatch, 7) + record_orders(monkeypatch, 7)
    assert len(orders) == 6
    assert all(sorted(order) == list(range(40)) for order in orders)
    assert len({tuple(order) for order in [*orders, list(range(40)), sorted(range(40), reverse=True)]}) == 8
    for order in orders:
        assert sum(place == row for place, row in enumerate(order)) < 10


@pytest.mark.parametrize("mutant", [np.arange, lambda count: np.random.default_rng(0).permutation(count)])
def test_mutants_with_a_public_order_are_noticed(monkeypatch, mutant):
    class Public:
        def __init__(self, key):
            pass

        def permutation(self, count):
            return mutant(count)

    monkeypatch.setattr(party_module, "Stream", Public)
    orders = record_orders(monkeypatch, 7)
    assert len({tuple(order) for order in orders}) == 1
