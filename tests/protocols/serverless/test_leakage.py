"""The relay's view says nothing of the vectors; with parties on its side it says the honest members' sum.

Each test has a mutant that it catches; the two weaker protocols (the thesis's literal ring, and the ring with pairwise
pads only) are kept as mutants, with the attacks that break them.
"""

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation.pairwise_pads import PairwisePads
from cloister.crypto import combine_shares
from cloister.protocols.serverless import keyring as keyring_module
from cloister.protocols.serverless.keyring import read_vector
from cloister.protocols.serverless.messages import AddVector, Finish, Total
from cloister.runtime import Fault, FaultKind
from tests.protocols.serverless.sessions import SumSession

ALPHA = 1e-6


def zeros_for_masks(monkeypatch):
    def no_mask(key, length, ring):
        return np.zeros(length, ring.dtype)

    monkeypatch.setattr(keyring_module, "expand_mask", no_mask)


def zeros_for_pads(monkeypatch):
    monkeypatch.setattr(PairwisePads, "pad", lambda self, members, length, *context: np.zeros(length, np.uint32))


def open_boxes(monkeypatch):
    monkeypatch.setattr(keyring_module, "seal_keyed", lambda plaintext, secret, *context: plaintext + bytes(16))
    monkeypatch.setattr(keyring_module, "open_keyed", lambda box, secret, *context: box[:-16])


def constant(*values, length=16):
    """Vectors of one round that hold one number each."""
    return np.array([[[value] * length] for value in values])


def same_distribution(collect, one, other, runs=60):
    """P-value of "the bytes do not depend on the input"."""
    table = np.array(
        [
            np.bincount(np.frombuffer(b"".join(collect(vectors, seed) for seed in seeds), np.uint8), minlength=256)
            for vectors, seeds in ((one, range(runs)), (other, range(runs, 2 * runs)))
        ]
    )
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


# --- the relay alone -------------------------------------------------------------------------------------------------


def boxes_of(value):
    """Every box in a message, however deep."""
    if isinstance(value, tuple):
        return b"".join(boxes_of(item) for item in value)
    return b"".join(
        getattr(value, name) if name == "box" else boxes_of(getattr(value, name))
        for name in getattr(value, "__struct_fields__", ())
    )


def relay_bytes(vectors, seed):
    """All boxes that the relay is given."""
    run, _ = SumSession(vectors, seed=seed).run(record_views=True)
    return b"".join(boxes_of(entry.message) for entry in run.views[0] if entry.step > 4)


ONE, OTHER = constant(1, 2, 3), constant(-70000, 123456, 9)


def test_the_relay_sees_the_same_whatever_the_vectors_are():
    """Not even the sums are equal: the relay learns neither terms nor sum."""
    assert same_distribution(relay_bytes, ONE, OTHER) > ALPHA


def test_a_relay_that_could_read_sums_would_be_caught(monkeypatch):
    zeros_for_masks(monkeypatch)
    zeros_for_pads(monkeypatch)
    open_boxes(monkeypatch)
    assert same_distribution(relay_bytes, ONE, OTHER) < ALPHA


# --- the relay with parties ------------------------------------------------------------------------------------------


def passed_by(roles, number, attempt=1):
    """What a party added in one attempt: what it passed on less what it was given, read with the group's key."""
    ring, terms = roles[0].keyring, roles[0].party._terms
    request, reply = next(
        (r, a) for r, a in roles[number - 1].log if isinstance(r, AddVector) and r.attempt.number == attempt
    )
    sent = read_vector(ring.open(reply.box, "sum", request.attempt, sender=number), terms)
    if request.partial is None:
        return sent
    before = max(role for role in members_of(request.attempt) if role < number)
    return sent - read_vector(ring.open(request.partial, "sum", request.attempt, sender=before), terms)


def members_of(attempt):
    return [number for number in range(1, 9) if attempt.members[0] >> (number - 1) & 1]


def final_total(roles):
    return next(r.news[-1] for r, _ in roles[0].log if isinstance(r, Finish) and r.news)


def strip(added, roles, number, total: Total, coalition):
    """Remove all that the coalition knows from what an honest party added: its revealed mask, its pads with them."""
    attempt, keyring, terms = total.attempt, roles[0].keyring, roles[0].party._terms
    key = next(keyring.open(p.box, "mask key", attempt, sender=number) for p in total.reveals if p.party == number)
    added = added - keyring_module.expand_mask(key, terms.length, terms.ring)
    members = members_of(attempt)
    for member in coalition:
        pads = roles[member - 1].keyring._pads
        stream = pads._keystream(number, terms.length, (attempt.round, attempt.number, len(members), *members))
        added = added - stream if member > number else added + stream
    return added


def known_to_the_others(vectors, seed):
    """What parties 1 and 4 and the relay are left with of the honest parties 2 and 3."""
    _, roles = SumSession(vectors, seed=seed).run()
    total = final_total(roles)
    return [strip(passed_by(roles, number), roles, number, total, (1, 4)) for number in (2, 3)]


def test_relay_and_all_but_two_learn_the_sum_of_the_two():
    second, third = known_to_the_others(constant(5, 1000, 24, 7), seed=3)
    assert (second + third == 1024).all()
    assert not (second == 1000).any()


def test_relay_and_all_but_two_learn_nothing_but_the_sum_of_the_two():
    def second_party(vectors, seed):
        return known_to_the_others(vectors, seed)[0].tobytes()

    assert same_distribution(second_party, constant(5, 1000, 24, 7), constant(5, 0, 1024, 7)) > ALPHA


def test_the_literal_ring_gives_a_party_away_to_its_neighbours(monkeypatch):
    """Thesis 7.3.1 as printed: what a party sent less what it received is its vector."""
    vectors = constant(5, 1000, 24, 7)
    _, roles = SumSession(vectors).run()
    assert not (passed_by(roles, 2) == 1000).any()
    zeros_for_pads(monkeypatch)
    zeros_for_masks(monkeypatch)
    _, roles = SumSession(vectors).run()
    assert (passed_by(roles, 2) == 1000).all()


def test_without_pads_the_revealed_masks_give_every_party_away(monkeypatch):
    zeros_for_pads(monkeypatch)
    _, roles = SumSession(constant(5, 1000, 24, 7)).run()
    assert (strip(passed_by(roles, 2), roles, 2, final_total(roles), ()) == 1000).all()


# --- late replies ----------------------------------------------------------------------------------------------------

LATE = [Fault(FaultKind.DELAY_REPLY, 4, 5 + 1 + 3)]  # the last of four is late with the sum of the first attempt


def late_difference(vectors, seed):
    """Relay and party 1 read the late sum over all four and take from it the sum over the three others."""
    run, roles = SumSession(vectors, seed=seed).run(faults=LATE)
    assert run.result.members == ((1, 2, 3),)
    assert run.result.attempts == (2,)
    late = sum(passed_by(roles, number) for number in (1, 2, 3, 4))
    own_mask = expand_own(roles[0], 1)
    return late - own_mask - vectors[:3, 0].sum(axis=0).astype(np.uint32), roles


def expand_own(role, attempt):
    request = next(r for r, _ in role.log if isinstance(r, AddVector) and r.attempt.number == attempt)
    key = role.keyring.own_mask_key(request.attempt)
    return keyring_module.expand_mask(key, role.party._terms.length, role.party._terms.ring)


def test_a_late_sum_stays_closed():
    def difference(vectors, seed):
        return late_difference(vectors, seed)[0].tobytes()

    assert same_distribution(difference, constant(5, 6, 7, 1000), constant(5, 6, 7, -4)) > ALPHA


def test_with_pads_alone_a_late_sum_gives_the_late_party_away(monkeypatch):
    zeros_for_masks(monkeypatch)
    assert (late_difference(constant(5, 6, 7, 1000), seed=1)[0] == 1000).all()


def test_members_min_parties_and_the_relay_can_open_a_late_sum():
    """The stated limit: so many shares restore a mask secret."""
    left, roles = late_difference(constant(5, 6, 7, 1000), seed=1)
    terms = roles[0].party._terms
    attempt = next(r.attempt for r, _ in roles[3].log if isinstance(r, AddVector))
    for owner in (2, 3, 4):
        holders = [number for number in (1, 2, 3) if number != owner][:2]
        secret = combine_shares({number: roles[number - 1].keyring._kept_shares[owner] for number in holders})
        key = roles[0].keyring.mask_key_of(owner, secret, attempt)
        left = left - keyring_module.expand_mask(key, terms.length, terms.ring)
    assert (left == 1000).all()


def test_pads_and_masks_are_fresh_in_every_round_and_attempt():
    """Also the attempts' numbers count, not their members only: rounds 1 and 2 have the same."""
    vectors = np.repeat(constant(5, 6, 7, 1000), 2, axis=1)
    _, roles = SumSession(vectors).run(faults=LATE)
    keyring, terms = roles[1].keyring, roles[1].party._terms
    pads, masks = [], []
    for request, _ in roles[1].log:
        if isinstance(request, AddVector):
            attempt, members = request.attempt, members_of(request.attempt)
            mask = keyring_module.expand_mask(keyring.own_mask_key(attempt), terms.length, terms.ring)
            masks.append(mask.tobytes())
            pads.append((keyring.blind(attempt, members, terms.length) - mask).tobytes())
    assert len(masks) == 3
    assert len(set(masks) | set(pads)) == 6


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_party_receives_no_array_in_the_clear(number):
    """Every vector that a party is handed is in a box that opens to a blinded sum."""
    vectors = constant(5, 1000, 24)
    run, roles = SumSession(vectors).run(record_views=True)
    terms = roles[0].party._terms
    for entry in run.views[number]:
        if isinstance(entry.message, AddVector) and entry.message.partial is not None:
            attempt = entry.message.attempt
            partial = roles[0].keyring.open(entry.message.partial, "sum", attempt, sender=number - 1)
            so_far = vectors[: number - 1, 0].sum(axis=0)
            assert not (terms.ring.decode(read_vector(partial, terms)) == so_far).any()
