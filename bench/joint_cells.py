"""What joint cells of three encrypted column holders cost: one block of 8192 records, CPU seconds, one core.

Run: python bench/joint_cells.py [cells of each holder] [key holders] [bits of statistical flooding, 0 for none]
"""

import sys
import time

import numpy as np

from cloister.crypto import Stream
from cloister.lattice.collective import (
    RelinearisationHolder,
    add_round_shares,
    combine_public_shares,
    combine_relinearisation_key,
    make_public_share,
)
from cloister.lattice.joint_cells import encrypt_indicators, joint_cells
from cloister.lattice.keys import SecretKeys
from cloister.lattice.product_plan import DEGREE, JointLoad, choose_product_plan
from cloister.lattice.relinearisation import make_relinearisation_key
from cloister.lattice.slots import encode_weights
from cloister.lattice.weighted_sums import Products, WeightedSums

SEED = bytes(32)
RECORDS = 100_000


def timed(function, *arguments):
    """Return a second call's result and CPU seconds: the first one compiles."""
    function(*arguments)
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def make_keys(plan, holders, stream):
    parameters = plan.parameters
    keys = [SecretKeys.generate(parameters, 1, stream) for _ in range(holders)]
    public = combine_public_shares(parameters, SEED, [make_public_share(key, seed=SEED, stream=stream) for key in keys])
    if holders == 1:
        return public, make_relinearisation_key(keys[0], seed=SEED, stream=stream)
    parts = [RelinearisationHolder(key, seed=SEED, stream=stream) for key in keys]
    first = add_round_shares(parameters, [part.share_first() for part in parts])
    second = add_round_shares(parameters, [part.share_second(first) for part in parts])
    return public, combine_relinearisation_key(parameters, first, second)


def main():
    count, holders, distance_bits = map(int, sys.argv[1:]) if len(sys.argv) == 4 else (8, 1, 0)
    load = JointLoad(records=RECORDS, cells=(count,) * 3, sum_max=RECORDS * 256, key_holders=holders)
    plan = choose_product_plan(load, smudge_distance_bits=distance_bits, smudgers=holders)
    stream = Stream.from_seed(1, "bench")
    public, key = make_keys(plan, holders, stream)
    places = np.random.default_rng(1).integers(0, count, (3, 1, DEGREE))
    indicators = (places == np.arange(count)[:, None]).astype(np.int64)
    uploads, encrypt_s = [], 0.0
    for holder in range(3):
        batch, seconds = timed(encrypt_indicators, plan, public, holder, indicators[holder], stream)
        uploads.append(batch)
        encrypt_s += seconds
    cells, products_s = timed(joint_cells, plan, key, uploads)
    products = count**2 + count**3
    every = np.arange(count**3)
    weights = np.random.default_rng(2).integers(-256, 257, (count**3, DEGREE))
    encoded, encode_s = timed(encode_weights, DEGREE, plan.final.plaintext_modulus, weights)
    terms = Products(
        weights=encoded,
        row_of=every,
        source_of=every,
        first_target=np.arange(len(every) + 1),
        into=np.zeros_like(every),
        factors=np.ones_like(every),
    )
    _, sum_s = timed(lambda: WeightedSums(plan.final.ring, 1).add(cells.masks, cells.bodies[:, 0], terms))
    print(f"primes {len(plan.parameters.primes)}, levels {plan.levels}, t = {plan.parameters.plaintext_modulus}")
    print(f"encrypt          {1e3 * encrypt_s / (3 * count):8.2f} ms a cell")
    print(f"joint cells      {products_s:8.2f} s for {products} products, {1e3 * products_s / products:.2f} ms each")
    print(f"memory           {(cells.masks.nbytes + cells.bodies.nbytes) / 1e6:8.0f} MB for the block")
    print(f"relin. key       {key.bodies.size * 27 / 8e6:8.2f} MB for the bodies, and as much for masks without a seed")
    print(f"one sum over all cells: encode {encode_s:.3f} s, add up {sum_s:.3f} s")


if __name__ == "__main__":
    main()
