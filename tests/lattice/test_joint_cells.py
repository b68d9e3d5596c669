"""Joint cells from encryption to answer: sums over records are exact, for two and three holders, any key."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice.decryption import DecryptionGuard, choose_smudge_bits, combine_decryptions, share_decryption
from cloister.lattice.encryption import decrypt
from cloister.lattice.joint_cells import encrypt_indicators, joint_cells
from cloister.lattice.keys import restrict_public_keys, restrict_secret_keys
from cloister.lattice.lwe import LweBatch, rerandomise
from cloister.lattice.product_plan import JointLoad, choose_product_plan
from cloister.lattice.relinearisation import make_relinearisation_key
from cloister.lattice.ring import Ring
from cloister.lattice.slots import encode_weights
from cloister.lattice.weighted_sums import sum_bodies
from tests.lattice.answers import accumulate_masks
from tests.lattice.test_collective import make_holders, make_key
from tests.lattice.test_products import SEED, make_keys

DEGREE = 8192


def draw_cells(counts, records, seed=1):
    """Each holder's cell of each record, and the indicators, zero beyond the records."""
    rng = np.random.default_rng(seed)
    places = [rng.integers(0, count, DEGREE) for count in counts]
    present = np.arange(DEGREE) < records
    return places, [
        ((place == np.arange(count)[:, None]) & present).astype(np.int64)
        for place, count in zip(places, counts, strict=True)
    ]


def answer(plan, cells, public, weights, stream):
    """One sum over all joint cells with weights (cells, N) of the records, re-randomised."""
    final, ring = plan.final, plan.final.ring
    encoded = encode_weights(DEGREE, final.plaintext_modulus, weights)
    every = np.arange(len(weights))
    masks = np.zeros((1, len(final.primes), DEGREE), dtype=np.uint32)
    accumulate_masks(ring, masks, cells.masks, encoded, every, np.zeros_like(every))
    sums = sum_bodies(ring, cells.bodies, encoded, every, secrets=1)[:, 0].astype(np.int64).sum(axis=0)
    batch = LweBatch(
        parameters=final,
        masks=ring.inverse(masks),
        bodies=(sums % np.array(final.primes)).astype(np.uint32)[None],
        mask_of=np.array([0]),
        secret_of=np.array([0]),
    )
    return rerandomise(batch, restrict_public_keys(public, len(final.primes)), stream)


def measure_error(batch, keys, wanted):
    """body - <mask, s> - delta m of a single answer, before any smudge."""
    ring = batch.parameters.ring
    secret = ring.forward(ring.reduce(sum(key.ternary[0].astype(np.int64) for key in keys)))
    phase = ring.inverse(ring.multiply(ring.forward(batch.masks), secret))[:, :, 0]
    rest = ring.subtract(batch.bodies[:, :, None], phase[:, :, None])[:, :, 0]
    return abs(int(ring.to_integers(rest)[0]) - batch.parameters.delta * wanted)


@pytest.mark.parametrize(("counts", "holders"), [((3, 2), 1), ((2, 2, 3), 3)])
def test_sums_over_joint_cells_are_exact_and_their_errors_below_the_bound(counts, holders):
    records = 8000
    load = JointLoad(records=records, cells=counts, sum_max=records * 100, key_holders=holders)
    plan = choose_product_plan(load, smudge_distance_bits=40, smudgers=holders)
    keys, public = make_holders(holders, secrets=1, parameters=plan.parameters)
    stream = Stream.from_seed(5, "joint")
    if holders == 1:
        key = make_relinearisation_key(keys[0], seed=SEED, stream=stream)
    else:
        key = make_key(keys, plan.parameters)
    places, indicators = draw_cells(counts, records)
    batches = [encrypt_indicators(plan, public, holder, part, stream) for holder, part in enumerate(indicators)]
    cells = joint_cells(plan, key, batches)
    assert cells.bodies.shape == (np.prod(counts), 1, plan.levels[-1], DEGREE)
    weights = np.random.default_rng(6).integers(-90, 91, (int(np.prod(counts)), DEGREE))
    joint = np.ravel_multi_index(places, counts)
    wanted = int(weights[joint, np.arange(DEGREE)][:records].sum())
    batch = answer(plan, cells, public, weights, stream)
    error = measure_error(batch, keys, wanted)
    assert error < plan.error_bound < error * 2.0**28
    bits = choose_smudge_bits(error_bound=plan.error_bound, room=plan.flood_reach_max, smudgers=holders)
    shares = [
        share_decryption(key, batch, smudge_bits=bits, stream=stream, guard=DecryptionGuard(), noise=lambda: [11])
        for key in keys
    ]
    assert combine_decryptions(batch, shares) == [wanted + 11 * holders]


def test_every_cell_of_every_record_is_the_product_of_its_indicators():
    plan = choose_product_plan(JointLoad(records=DEGREE, cells=(2, 3), sum_max=DEGREE))
    keys, public = make_keys(plan.parameters)
    stream = Stream.from_seed(5, "joint")
    key = make_relinearisation_key(keys, seed=SEED, stream=stream)
    _, indicators = draw_cells((2, 3), DEGREE)
    batches = [encrypt_indicators(plan, public, holder, part, stream) for holder, part in enumerate(indicators)]
    cells = joint_cells(plan, key, batches)
    with restrict_secret_keys(keys, plan.levels[-1]) as secret:
        plain = decrypt(secret, cells.masks, cells.bodies)[:, 0]
    slots = Ring(DEGREE, (plan.parameters.plaintext_modulus,))
    got = slots.forward(slots.reduce(plain))[:, 0]
    for place, (i, j) in enumerate(product(range(2), range(3))):
        assert np.array_equal(got[place], indicators[0][i] * indicators[1][j])


def test_what_is_not_as_the_plan_says_is_refused_by_name():
    plan = choose_product_plan(JointLoad(records=DEGREE, cells=(2, 2), sum_max=DEGREE))
    keys, public = make_keys(plan.parameters)
    stream = Stream.from_seed(5, "joint")
    key = make_relinearisation_key(keys, seed=SEED, stream=stream)
    _, indicators = draw_cells((2, 2), DEGREE)
    first, second = (encrypt_indicators(plan, public, holder, part, stream) for holder, part in enumerate(indicators))
    fewer = replace(second, masks=second.masks[:1], bodies=second.bodies[:1])
    for batches, holder in (((second, second), 0), ((first, first), 1), ((first, fewer), 1)):
        with pytest.raises(RemoteProtocolError, match=f"column holder {holder}"):
            joint_cells(plan, key, batches)
    with pytest.raises(LocalProtocolError, match="2 holders; got 1"):
        joint_cells(plan, key, [first])
    with pytest.raises(ConfigError, match="0 or 1"):
        encrypt_indicators(plan, public, 0, 2 * indicators[0], stream)
    with pytest.raises(LocalProtocolError, match="indicators must be"):
        encrypt_indicators(plan, public, 0, indicators[0][:1], stream)
