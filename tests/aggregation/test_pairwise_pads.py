"""Pads of all members of a statement add up to zero, and of any other set to noise."""

import itertools

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation.own_masks import expand_mask
from cloister.aggregation.pairwise_pads import PairwisePads
from cloister.errors import LocalProtocolError
from cloister.numeric import RING32, RING64
from tests.aggregation.sums import pair_secret

ALPHA = 1e-6


def make_pads(parties, ring=RING32):
    return {
        i: PairwisePads(number=i, secrets={j: pair_secret(i, j) for j in range(1, parties + 1) if j != i}, ring=ring)
        for i in range(1, parties + 1)
    }


@pytest.mark.parametrize("ring", [RING32, RING64])
@pytest.mark.parametrize("parties", [2, 3, 5])
def test_the_pads_of_any_set_of_members_cancel(parties, ring):
    pads = make_pads(parties, ring)
    for size in range(2, parties + 1):
        for members in itertools.combinations(range(1, parties + 1), size):
            total = sum(pads[i].pad(members, 50, b"statement") for i in members)
            assert total.dtype == ring.dtype
            assert not total.any()


def test_pads_of_different_statements_or_members_do_not_cancel():
    pads = make_pads(3)
    everyone = (1, 2, 3)
    agreed = pads[1].pad(everyone, 400, b"one") + pads[2].pad(everyone, 400, b"one")
    for third in (pads[3].pad(everyone, 400, b"other"), pads[3].pad((1, 3), 400, b"one")):
        assert stats.chisquare(np.bincount((agreed + third).view(np.uint8), minlength=256)).pvalue > ALPHA
    assert not (agreed + pads[3].pad(everyone, 400, b"one")).any()


def test_a_pad_is_uniform_and_another_one_in_each_statement():
    pads = make_pads(3)
    made = [pads[2].pad((1, 2, 3), 4000, statement) for statement in (b"a", b"b")]
    for one in made:
        assert stats.chisquare(np.bincount(one.view(np.uint8), minlength=256)).pvalue > ALPHA
    assert (made[0] == made[1]).mean() < 0.01


def test_a_key_gives_one_mask_in_each_ring():
    assert np.array_equal(expand_mask(b"k" * 32, 8, RING32), expand_mask(b"k" * 32, 8, RING32))
    assert expand_mask(b"k" * 32, 8, RING64).dtype == np.uint64


def test_pads_with_strangers_or_without_ourselves_are_our_own_mistake():
    pads = make_pads(3)
    for members in ((2, 3), (1, 2, 9)):
        with pytest.raises(LocalProtocolError, match="pads must be between us"):
            pads[1].pad(members, 4, b"statement")
