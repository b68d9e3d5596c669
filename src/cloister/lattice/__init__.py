"""Lattice encryption: exact sums of encrypted integers, weighted by plaintexts, in rings of the standard's table.

Reading order, each file on those before it:

* arithmetic: :mod:`~cloister.lattice.primes`, :mod:`~cloister.lattice.ntt` (the transform),
  :mod:`~cloister.lattice.ring`;
* what is secure and what is right: :mod:`~cloister.lattice.standard`, :mod:`~cloister.lattice.sampling`,
  :mod:`~cloister.lattice.noise`, :mod:`~cloister.lattice.parameters`;
* :mod:`~cloister.lattice.keys`, :mod:`~cloister.lattice.encryption`;
* operations: :mod:`~cloister.lattice.inner_product` (weights times records), :mod:`~cloister.lattice.lwe` (answers),
  :mod:`~cloister.lattice.slots` (labels), :mod:`~cloister.lattice.packing` (bytes).

A ciphertext of m is a mask and a body = mask * s + e + delta * m over Z_q[X]/(X^N + 1), with s ternary, e Gaussian and
q a product of primes below 2^27. Theorems, and what is not promised: docs/proofs/lattice.md.
"""

from cloister.lattice.encryption import decrypt, encrypt_public, encrypt_seeded
from cloister.lattice.inner_product import sum_bodies
from cloister.lattice.keys import PublicKeys, SecretKeys, make_public_keys
from cloister.lattice.lwe import (
    LweBatch,
    SmallLweBatch,
    add_error,
    add_plain,
    decrypt_lwe,
    draw_flood,
    rerandomise,
    switch_modulus,
)
from cloister.lattice.noise import (
    choose_switch_bits,
    error_bound,
    flood_reach_max,
    flood_std_max,
    hint_flood_std_min,
    statistical_flood_bits,
)
from cloister.lattice.packing import pack_residues, pack_words, unpack_residues, unpack_words
from cloister.lattice.parameters import Load, Parameters, choose_parameters
from cloister.lattice.ring import Ring
from cloister.lattice.sampling import ERROR_MAX, ERROR_STD, draw_errors, draw_ternary, expand_masks, expand_uniform
from cloister.lattice.slots import SlotCodec
from cloister.lattice.standard import check_security

__all__ = [
    "ERROR_MAX",
    "ERROR_STD",
    "Load",
    "LweBatch",
    "Parameters",
    "PublicKeys",
    "Ring",
    "SecretKeys",
    "SlotCodec",
    "SmallLweBatch",
    "add_error",
    "add_plain",
    "check_security",
    "choose_parameters",
    "choose_switch_bits",
    "decrypt",
    "decrypt_lwe",
    "draw_errors",
    "draw_flood",
    "draw_ternary",
    "encrypt_public",
    "encrypt_seeded",
    "error_bound",
    "expand_masks",
    "expand_uniform",
    "flood_reach_max",
    "flood_std_max",
    "hint_flood_std_min",
    "make_public_keys",
    "pack_residues",
    "pack_words",
    "rerandomise",
    "statistical_flood_bits",
    "sum_bodies",
    "switch_modulus",
    "unpack_residues",
    "unpack_words",
]
