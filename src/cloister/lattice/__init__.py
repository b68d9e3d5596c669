"""Lattice encryption: exact sums of encrypted integers, weighted by plaintexts, in rings of the standard's table.

Reading order, each file on those before it:

* arithmetic: :mod:`~cloister.lattice.ntt` (the transform), :mod:`~cloister.lattice.ring`;
* what is secure and what is right: :mod:`~cloister.lattice.parameters`, :mod:`~cloister.lattice.sampling`,
  :mod:`~cloister.lattice.noise`;
* :mod:`~cloister.lattice.keys`, :mod:`~cloister.lattice.encryption`, :mod:`~cloister.lattice.packing` (bytes);
* sums: :mod:`~cloister.lattice.weighted_sums` (weights times records), :mod:`~cloister.lattice.lwe` (answers),
  :mod:`~cloister.lattice.slots` (labels);
* products: :mod:`~cloister.lattice.products`, :mod:`~cloister.lattice.relinearisation`,
  :mod:`~cloister.lattice.product_plan`, :mod:`~cloister.lattice.joint_cells`;
* several key holders: :mod:`~cloister.lattice.collective`, :mod:`~cloister.lattice.decryption`,
  :mod:`~cloister.lattice.threshold`.

A ciphertext of m is a mask and a body = mask * s + e + delta * m over Z_q[X]/(X^N + 1), with s ternary, e Gaussian and
q a product of primes below 2^27. Theorems, and what is not promised: docs/proofs/lattice.md.
"""
