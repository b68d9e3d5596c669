"""Whole answers for tests: encrypted blocks, weighted sums of them, and the error that a key holder sees."""

from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.lattice.encryption import encrypt_public, encrypt_seeded
from cloister.lattice.keys import SecretKeys, make_public_keys
from cloister.lattice.lwe import LweBatch
from cloister.lattice.parameters import Parameters
from cloister.lattice.sampling import expand_masks
from cloister.lattice.weighted_sums import Products, WeightedSums, mirror_weights, sum_bodies

SEED = b"answers of tests must be 32 long"


@dataclass(frozen=True, kw_only=True)
class Answers:
    batch: LweBatch
    sums: list


def accumulate_masks(ring, total, masks, weights, mask_of, into):
    """Add weights times masks (NTT form) to total (NTT form), in place: the mask half of `WeightedSums`."""
    sums = WeightedSums(ring, len(total))
    count = len(weights)
    products = Products(
        weights=weights,
        row_of=np.arange(count),
        source_of=np.asarray(mask_of, dtype=np.int64),
        first_target=np.arange(count + 1),
        into=np.asarray(into, dtype=np.int64),
        factors=np.ones(count, dtype=np.int64),
    )
    sums.add(np.ascontiguousarray(masks), np.zeros_like(masks), products)
    total[:] = ring.add(total, ring.forward(sums.finish()[0]))


def make_keys(parameters, count=2, seed=1):
    stream = Stream.from_seed(seed, "keys")
    keys = SecretKeys.generate(parameters, count, stream)
    return keys, make_public_keys(keys, seed=SEED, stream=stream)


def make_answers(keys, *, count=4, cells=3, blocks=2, peak=200, message_peak=5, seed=0, public=None):
    """``count`` answers, each over all blocks and cells, a body for each secret."""
    parameters: Parameters = keys.parameters
    ring, degree, secrets = parameters.ring, parameters.degree, keys.count
    rng = np.random.default_rng(seed)
    stream = Stream.from_seed(seed, "answers")
    total = np.zeros((count, len(parameters.primes), degree), dtype=np.uint32)
    bodies = np.zeros((count, secrets, len(parameters.primes)), dtype=object)
    sums = np.zeros((count, secrets), dtype=object)
    mask_of, into = np.tile(np.arange(cells), count), np.repeat(np.arange(count), cells)
    for block in range(blocks):
        messages = rng.integers(-message_peak, message_peak + 1, (cells, secrets, degree))
        weights = rng.choice([-peak, peak], (count * cells, degree)).astype(np.int32)
        if public is None:
            encrypted = encrypt_seeded(keys, messages, seed=SEED, block=block, stream=stream)
            masks = expand_masks(parameters, SEED, block, cells)
        else:
            masks, encrypted = encrypt_public(public, messages, stream)
        accumulate_masks(ring, total, masks, weights, mask_of, into)
        part = sum_bodies(ring, encrypted, weights, mask_of, secrets=secrets)
        for j in range(count * cells):
            bodies[into[j]] += part[j].astype(object)
            sums[into[j]] += (messages[mask_of[j]] * weights[j].astype(np.int64)).sum(axis=-1)
    reduced = bodies.reshape(-1, len(parameters.primes)) % np.array(parameters.primes, dtype=object)
    batch = LweBatch(
        parameters=parameters,
        masks=ring.inverse(total),
        bodies=reduced.astype(np.uint32),
        mask_of=np.repeat(np.arange(count), secrets),
        secret_of=np.tile(np.arange(secrets), count),
    )
    return Answers(batch=batch, sums=[int(x) for x in sums.ravel()])


def measure_errors(keys, batch, sums):
    """What is left of each body when mask and plaintext are taken away, as exact integers."""
    parameters = batch.parameters
    out = []
    for body, a, s, number in zip(batch.bodies, batch.mask_of, batch.secret_of, sums, strict=True):
        mirrored = mirror_weights(keys.ternary[s]).astype(object)
        residues = [
            (int(body[i]) - int((batch.masks[a, i].astype(object) * mirrored).sum()) - parameters.delta * number)
            % prime
            for i, prime in enumerate(parameters.primes)
        ]
        out.append(int(parameters.ring.to_integers(np.array(residues, dtype=np.uint32))))
    return out


def quotient_is_small(parameters, mask, divisor):
    """Whether mask / divisor (both NTT form) has small coefficients: it is u if no error was added to divisor * u."""
    ring = parameters.ring
    rows = zip(divisor, parameters.primes, strict=True)
    inverse = np.array([[pow(int(v), -1, prime) for v in row] for row, prime in rows], dtype=np.uint32)
    quotient = ring.to_integers(np.moveaxis(ring.inverse(ring.multiply(mask, inverse)), -2, -1))
    return max(abs(quotient)) < 1000
