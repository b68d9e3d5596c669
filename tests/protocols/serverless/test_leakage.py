"""The relay's view says nothing of the vectors; with parties on its side it says the honest members' sum.

Each test has a mutant that it catches; the two weaker protocols (the thesis's literal ring, and the ring with pairwise
pads only) are kept as mutants, with the attacks that break them.
"""

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation import double_masks as double_module
from cloister.aggregation import unpack_members
from cloister.aggregation.messages import Settle, Total
from cloister.aggregation.own_masks import derive_mask_key, expand_mask
from cloister.aggregation.pairwise_pads import PairwisePads
from cloister.aggregation.statements import digest_body, read_words
from cloister.crypto.secret_sharing import combine_shares
from cloister.numeric import RING32
from cloister.protocols.serverless import masks as masks_module
from cloister.protocols.serverless.messages import AddVector
from cloister.runtime import Fault, FaultKind
from tests.protocols.serverless.sessions import SumSession

ALPHA = 1e-6
RING, WORDS = RING32, 20  # 16 numbers and the check words


def zeros_for_masks(monkeypatch):
    def no_mask(key, length, ring):
        return np.zeros(length, ring.dtype)

    monkeypatch.setattr(double_module, "expand_mask", no_mask)


def zeros_for_pads(monkeypatch):
    monkeypatch.setattr(PairwisePads, "pad", lambda self, members, length, statement: np.zeros(length, np.uint32))


def open_boxes(monkeypatch):
    for module in (double_module, masks_module):
        monkeypatch.setattr(module, "seal_keyed", lambda plaintext, secret, *context: plaintext + bytes(16))
        monkeypatch.setattr(module, "open_keyed", lambda box, secret, *context: box[:-16])


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
        getattr(value, name) if name in ("box", "vote") else boxes_of(getattr(value, name))
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


def asked_in(roles, number, attempt=1):
    """The request and the reply with which a party added in one attempt."""
    return next((r, a) for r, a in roles[number - 1].log if isinstance(r, AddVector) and r.attempt.number == attempt)


def read_box(roles, box, attempt, sender):
    return read_words(roles[0].masks.open(box, "sum", attempt, sender=sender), RING, WORDS)


def passed_by(roles, number, attempt=1):
    """What a party added in one attempt: what it passed on less what it was given, read with the group's key."""
    request, reply = asked_in(roles, number, attempt)
    sent = read_box(roles, reply.box, request.attempt, number)
    if request.partial is None:
        return sent
    before = max(role for role in unpack_members(request.attempt.members, len(roles)) if role < number)
    return sent - read_box(roles, request.partial, request.attempt, before)


def final_total(roles):
    return next(r.news[-1] for r, _ in roles[0].log if isinstance(r, Settle) and r.news)


def strip(added, roles, number, total: Total, coalition):
    """Remove all that the coalition knows from what an honest party added: its opened mask, its pads with them."""
    attempt, masks = total.attempt, roles[0].masks
    box = next(opening.box for opening in total.openings if opening.party == number)
    key = masks.open(box, "opening", attempt, sender=number, detail=digest_body(total.body))
    added = added - expand_mask(key, WORDS, RING)
    for member in coalition:
        others = roles[member - 1].masks
        stream = others._pads._keystream(number, WORDS, others._entered.statement)
        added = added - stream if member > number else added + stream
    return added[:16]


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
    assert not (passed_by(roles, 2)[:16] == 1000).any()
    zeros_for_pads(monkeypatch)
    zeros_for_masks(monkeypatch)
    _, roles = SumSession(vectors).run()
    assert (passed_by(roles, 2)[:16] == 1000).all()


def test_without_pads_the_opened_masks_give_every_party_away(monkeypatch):
    zeros_for_pads(monkeypatch)
    _, roles = SumSession(constant(5, 1000, 24, 7)).run()
    assert (strip(passed_by(roles, 2), roles, 2, final_total(roles), ()) == 1000).all()


# --- late replies ----------------------------------------------------------------------------------------------------

LATE = [Fault(FaultKind.DELAY_REPLY, 4, 4 + 1 + 3)]  # the last of four is late with the sum of the first attempt


def late_difference(vectors, seed):
    """Relay and party 1 read the late sum over all four and take from it the sum over the three others."""
    run, roles = SumSession(vectors, seed=seed, colluding_max=1).run(faults=LATE)
    assert run.result.members == ((1, 2, 3),)
    assert run.result.attempts == (2,)
    late = sum(passed_by(roles, number) for number in (1, 2, 3, 4))
    return (late - own_mask(roles, 1))[:16] - vectors[:3, 0].sum(axis=0).astype(np.uint32), roles


SECRETS: dict[int, list[bytes]] = {}


@pytest.fixture(autouse=True)
def know_secrets(monkeypatch):
    """Remember the secrets of all masks that were drawn, by party, in the order of attempts."""
    SECRETS.clear()
    real = double_module.DoubleMasks.blind

    def blind(self, vector):
        reply = real(self, vector)
        SECRETS.setdefault(self._seat.number, []).append((self._entered.mask_secret, self._entered.statement))
        return reply

    monkeypatch.setattr(double_module.DoubleMasks, "blind", blind)


def own_mask(roles, number, attempt=1):
    return expand_mask(derive_mask_key(*SECRETS[number][attempt - 1]), WORDS, RING)


def test_a_late_sum_stays_closed():
    def difference(vectors, seed):
        SECRETS.clear()
        return late_difference(vectors, seed)[0].tobytes()

    assert same_distribution(difference, constant(5, 6, 7, 1000), constant(5, 6, 7, -4)) > ALPHA


def test_with_pads_alone_a_late_sum_gives_the_late_party_away(monkeypatch):
    zeros_for_masks(monkeypatch)
    vectors = constant(5, 6, 7, 1000)
    _, roles = SumSession(vectors, seed=1, colluding_max=1).run(faults=LATE)
    late = sum(passed_by(roles, number) for number in (1, 2, 3, 4))
    assert (late[:16] - vectors[:3, 0].sum(axis=0).astype(np.uint32) == 1000).all()


def test_more_parties_than_may_collude_and_the_relay_open_a_late_sum():
    """The stated limit: their shares restore a mask's secret, each of them without asking anybody."""
    left, roles = late_difference(constant(5, 6, 7, 1000), seed=1)
    attempt = asked_in(roles, 4)[0].attempt
    for owner in (2, 3, 4):
        dealt = {share.party: share for share in asked_in(roles, owner)[1].shares}
        shares = {}
        for holder in [number for number in (1, 2, 3) if number != owner][:2]:
            sealed = type(dealt[holder])(owner, dealt[holder].box)
            shares[holder] = roles[holder - 1].masks._shares.open(sealed, attempt)
        assert combine_shares(shares) == SECRETS[owner][0][0]
        left = left - own_mask(roles, owner)[:16]
    assert (left == 1000).all()


def test_pads_and_masks_are_fresh_in_every_round_and_attempt(monkeypatch):
    """Also the attempts' numbers count, not their members only: rounds 1 and 2 have the same."""
    pads = []
    real = PairwisePads.pad

    def pad(self, *asked):
        made = real(self, *asked)
        pads.append((self._number, made.tobytes()))
        return made

    monkeypatch.setattr(PairwisePads, "pad", pad)
    vectors = np.repeat(constant(5, 6, 7, 1000), 2, axis=1)
    _, roles = SumSession(vectors).run(faults=LATE)
    masks = [own_mask(roles, 2, attempt).tobytes() for attempt in (1, 2, 3)]
    assert len({*masks, *(made for number, made in pads if number == 2)}) == 6


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_party_receives_no_array_in_the_clear(number):
    """Every vector that a party is handed is in a box that opens to a masked sum."""
    vectors = constant(5, 1000, 24)
    run, roles = SumSession(vectors).run(record_views=True)
    for entry in run.views[number]:
        if isinstance(entry.message, AddVector) and entry.message.partial is not None:
            partial = read_box(roles, entry.message.partial, entry.message.attempt, number - 1)
            so_far = vectors[: number - 1, 0].sum(axis=0)
            assert not (RING.decode(partial)[:16] == so_far).any()
