"""Parameters, letters, leakage rows."""

from __future__ import annotations

from math import prod

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import RemoteProtocolError
from cloister.lattice.parameters import Parameters
from cloister.lattice.slots import SLOT_MODULUS, RlweCiphertext, slot_error_bound
from cloister.privacy.units import Learns
from cloister.protocols.vertical.labels.agreement import (
    choose_flood_bits,
    choose_slot_parameters,
    count_coefficients,
    find_slot_primes,
)
from cloister.protocols.vertical.labels.masking import (
    MaskedLabels,
    draw_pads,
    pack_masked,
    pack_values,
    unmask_labels,
    unpack_blocks,
    unpack_masked,
    unpack_values,
)
from cloister.protocols.vertical.leakage import add_labels, describe_labels, describe_leakage
from tests.protocols.vertical.labels.sessions import Case


@pytest.mark.parametrize(("degree", "count"), [(4096, 4), (8192, 5), (8192, 8)])
def test_primes_for_slots_have_a_product_near_one_and_full_length(degree, count):
    primes = find_slot_primes(degree, count)
    assert len(set(primes)) == count
    assert all(2**26 < prime < 2**27 for prime in primes)
    assert 1 <= prod(primes) % SLOT_MODULUS <= 3


def test_primes_as_they_come_would_not_fit_the_small_ring():
    """Why they are chosen: the error of wrapping around t is 2^16 times as large otherwise."""
    usual = slot_error_bound(Parameters.make(4096, 4, SLOT_MODULUS), 64)
    chosen = slot_error_bound(choose_slot_parameters(cells=64, records=1000, public_key=False), 64)
    assert usual > 2**12 * chosen


@pytest.mark.parametrize("records", [1, 4096, 100_000, 2**32 - 1])
@pytest.mark.parametrize("cells", [2, 64, 1024])
@pytest.mark.parametrize("public_key", [False, True])
def test_every_job_finds_parameters_with_room_for_its_flood(records, cells, public_key):
    parameters = choose_slot_parameters(cells=cells, records=records, public_key=public_key)
    error = slot_error_bound(parameters, cells, public_key=public_key)
    bits = choose_flood_bits(error, degree=parameters.degree, records=records)
    coefficients = count_coefficients(parameters.degree, records)
    assert coefficients >= records
    assert 2.0**bits >= error * 2.0**40 * coefficients
    assert 2.0**bits + error < parameters.delta / 2


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.integers(0, SLOT_MODULUS - 1), max_size=40))
def test_values_survive_packing(values):
    array = np.array(values, dtype=np.int64)
    np.testing.assert_array_equal(unpack_values(pack_values(array), len(values)), array)


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.integers(0, 99), min_size=1, max_size=40), st.binary(min_size=32, max_size=32))
def test_pads_come_off(labels, seed):
    pads = np.concatenate([draw_pads(seed, block, 8) for block in range(5)])[: len(labels)]
    np.testing.assert_array_equal(unmask_labels((np.array(labels) + pads) % SLOT_MODULUS, seed, 8), labels)


def test_masked_blocks_survive_packing_and_damage_is_refused():
    parameters = choose_slot_parameters(cells=2, records=1, public_key=False)
    rng = np.random.default_rng(5)
    shape = (len(parameters.primes), parameters.degree)
    block = RlweCiphertext(
        mask=rng.integers(0, 2**26, shape).astype(np.uint32),
        bodies=rng.integers(0, 2**26, (1, *shape)).astype(np.uint32),
    )
    masked = unpack_masked(pack_masked([block, block], b"s" * 32, parameters))
    assert masked.pad_seed == b"s" * 32
    for read in unpack_blocks(masked.blocks, parameters, 2):
        np.testing.assert_array_equal(read.mask, block.mask)
        np.testing.assert_array_equal(read.bodies, block.bodies)
    assert unpack_masked(pack_masked(None, None, parameters)) == MaskedLabels(None, None)
    with pytest.raises(RemoteProtocolError, match="3 blocks"):
        unpack_blocks(masked.blocks, parameters, 3)
    with pytest.raises(RemoteProtocolError, match="below its prime"):
        unpack_blocks(b"\xff" * len(masked.blocks), parameters, 2)
    with pytest.raises(RemoteProtocolError, match="32 bytes"):
        unpack_masked(msgspec.msgpack.encode(MaskedLabels(None, b"short")))
    for raw in (b"", b"\x00", msgspec.msgpack.encode([b"", b"", b""])):
        with pytest.raises(RemoteProtocolError, match="must be a MaskedLabels"):
            unpack_masked(raw)
    with pytest.raises(RemoteProtocolError, match="plaintext modulus"):
        unpack_values(b"\xff\xff\x01", 1)


def test_the_table_and_the_card_say_who_has_labels():
    table = describe_leakage(Case().agreement())
    told = add_labels(table, ["bank", "telco"])
    assert (told.learns("coordinator", "labels"), told.learns("party", "labels")) == (Learns.NOTHING, Learns.EXACT)
    assert [row for row in told.rows if row.value != "labels"] == list(table.rows)
    assert any("bank, telco only" in row.meaning for row in told.rows)
    text = describe_labels(["bank"])
    assert "bank" in text
    assert "not differentially private" in text
    assert "No budget covers" in text
