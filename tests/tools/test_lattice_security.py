"""The estimate of a lattice attack: as published for others' parameters, and enough for ours."""

from math import log2, sqrt
from pathlib import Path

import pytest
from tools.lattice_security import estimate_security, main

from cloister.lattice.parameters import MODULUS_BITS_MAX, SECURITY_BITS


@pytest.mark.parametrize(("degree", "centred", "published"), [(1024, 16, 967), (512, 24, 449)])
def test_blocks_are_those_that_new_hope_published(degree, centred, published):
    """Alkim et al. 2016, table 1: NewHope and JarJar, q = 12289, secret and error of variance k / 2."""
    std = sqrt(centred / 2)
    block = estimate_security(degree, log2(12289), secret_std=std, error_std=std).block
    assert abs(block - published) <= 0.01 * published


@pytest.mark.parametrize("degree", MODULUS_BITS_MAX)
def test_the_table_leaves_the_security_that_is_stated(degree):
    bits = MODULUS_BITS_MAX[degree]
    assert estimate_security(degree, bits).table_bits >= SECURITY_BITS
    assert estimate_security(degree, 1.06 * bits).table_bits < SECURITY_BITS  # the estimate can tell
    assert estimate_security(degree, bits).quantum_bits < estimate_security(degree, bits).core_bits


def test_a_larger_ring_or_a_smaller_modulus_is_harder():
    assert estimate_security(4096, 53).block > estimate_security(2048, 53).block > estimate_security(2048, 60).block


def test_it_prints_a_line_for_every_ring_as_it_stands_in_the_proofs(capsys):
    main()
    printed = capsys.readouterr().out.splitlines()
    assert all(any(line.split()[0] == str(degree) for line in printed) for degree in MODULUS_BITS_MAX)
    page = (Path(__file__).parents[2] / "docs" / "proofs" / "lattice.md").read_text(encoding="utf-8")
    assert {line.strip() for line in printed} <= {line.strip() for line in page.splitlines()}
