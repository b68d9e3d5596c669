"""What follows from a vertical agreement: floods, rare events, sizes of messages, written a second time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.lattice.ring import PRIME_BITS
from cloister.lattice.sampling import ERROR_STD
from cloister.protocols.vertical.noise import ChargedFlood, bound_errors, least_charged_std
from cloister.protocols.vertical.plan import count_memory
from tests.protocols.vertical.sessions import CASES, make_case


@pytest.mark.parametrize("bodies", [1, 16, 500])
def test_the_errors_of_one_record_are_below_their_bound(bodies):
    """Hsu, Kakade and Zhang: |e|^2 <= s^2 (C + 2 sqrt(C x) + 2 x) but for exp(-x), and |e|_1 <= sqrt(C) |e|."""
    x = 60 * math.log(2)
    wanted = math.sqrt(bodies) * ERROR_STD * math.sqrt(bodies + 2 * math.sqrt(bodies * x) + 2 * x)
    assert bound_errors(bodies) == pytest.approx(wanted)
    least = least_charged_std(bodies=bodies, weight_max=30.0, queries=3, rho=0.01)
    longest = math.ceil(wanted * 30) + 1
    assert least == pytest.approx(longest / math.sqrt(2 * 0.01 / 3), rel=1e-8)
    assert 3 * longest**2 / (2 * least**2) <= 0.01


@pytest.mark.parametrize("name", CASES)
def test_a_charged_flood_is_priced_for_the_longest_row(name):
    agreement = make_case(name).agreement
    if not isinstance(agreement.flood, ChargedFlood):
        return
    settings = agreement.settings
    longest = math.sqrt(1 + 2 * (settings.weight_max + settings.residual_most) ** 2)
    bodies = settings.joint_cells * (1 + (settings.layout.encrypted_count if settings.has_residuals else 0))
    assert agreement.bodies == agreement.flood.bodies == bodies
    passes = settings.rounds_made + (settings.start == "synopsis")
    wanted = least_charged_std(bodies=bodies, weight_max=longest, queries=passes, rho=settings.flood_rho)
    assert agreement._least_flood_std == pytest.approx(wanted)
    assert agreement.flood.std >= wanted


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_rare_events_take_what_is_kept_for_them(name, exact):
    agreement = make_case(name, exact=exact).agreement
    settings = agreement.settings
    if exact:
        assert (agreement.distance_bits, agreement.rare_delta) == (40, 0.0)
        return
    pays = isinstance(agreement.flood, ChargedFlood)
    smudgers = agreement.decryptors if agreement.is_collective else 0
    events = sum(settings.lengths) * (2 + (0 if pays else 1 + smudgers))
    kept = 1e-6 / 16
    assert agreement.distance_bits == max(40, math.ceil(math.log2(events / (kept - 2.0**-60))))
    assert agreement.rare_delta == pytest.approx(events * 2.0**-agreement.distance_bits + pays * 2.0**-60)
    assert agreement.rare_delta <= settings.rare_delta
    assert agreement._failure_bits == agreement.distance_bits + 4
    load = agreement.load
    assert (load.sum_max, load.weight_max) == (settings.sum_max, settings.weight_max)
    assert load.terms == settings.records * agreement.bodies
    assert load.key_holders == len(agreement.key_holders)
    assert load.public_key == (not agreement.is_seeded)
    if agreement.plan is not None:
        joint = agreement.plan.load
        assert joint.cells == tuple(map(settings.cells_of, range(len(agreement.encrypted))))
        assert (joint.records, joint.sum_max, joint.factor_max) == (
            settings.records,
            settings.sum_max,
            settings.weight_max,
        )
        error = math.ceil(math.log2(agreement.plan.error_bound))
        assert agreement.smudge_bits == error + agreement.distance_bits


@pytest.mark.parametrize("records", [300, 20_000])
@pytest.mark.parametrize("name", CASES)
def test_bytes_of_uploads_and_answers(name, records):
    agreement = make_case(name, records=records).agreement
    settings, parameters = agreement.settings, agreement.parameters
    primes, degree = len(parameters.primes), parameters.degree
    assert agreement.blocks == math.ceil(records / degree)
    halves = []
    for holder in range(len(agreement.encrypted)):
        polynomials = agreement.bodies * primes
        if agreement.plan is not None:
            polynomials = settings.cells_of(holder) * agreement.plan.holder_level(holder)
        halves.append(math.ceil(polynomials * degree * PRIME_BITS / 8))
        assert agreement.half_bytes(holder) == halves[-1]
        parts = 1 if agreement.is_seeded else 2
        for upload in range(agreement.uploads):
            sent = len(agreement.blocks_of(upload))
            assert agreement.upload_bytes(holder, upload) == parts * halves[holder] * sent
    block = max(halves) * (1 if agreement.is_seeded else 2)
    assert agreement.blocks_in_upload == max(1, 8 * 2**20 // block)
    assert agreement.uploads == math.ceil(agreement.blocks / agreement.blocks_in_upload)
    longest = settings.clusters * (settings.dimensions + 1)
    if settings.start == "synopsis":
        groups = math.prod(math.prod(settings.groups_of(holder)) for holder in range(len(agreement.encrypted)))
        longest = max(longest, settings.alice_cells * groups)
    assert agreement.longest_answer == longest
    bits = PRIME_BITS * primes if agreement.is_collective else agreement.switch_bits
    answer = longest * degree * bits // 8 * len(agreement.key_holders)
    assert agreement.largest_message_bytes == max(answer, block * agreement.blocks_in_upload * len(agreement.encrypted))
    words = 2 * 4 * primes * degree * agreement.bodies * agreement.blocks
    assert count_memory(agreement) == words + 24 * primes * degree * max(settings.lengths)
    assert agreement.steps == 3 + 1 + len(agreement.schedule)
    assert agreement.queries[-1] == f"Lloyd round {settings.rounds_made}"
    assert len(agreement.queries) == settings.rounds_made + (settings.start == "synopsis")
    rows = np.concatenate([np.arange(records)[agreement.records_of(block)] for block in range(agreement.blocks)])
    assert np.array_equal(rows, np.arange(records))


def test_blocks_are_dealt_out_to_uploads_in_order(monkeypatch):
    agreement = make_case("two clusters", records=20_000).agreement
    monkeypatch.setattr("cloister.protocols.vertical.agreement._UPLOAD_BYTES", 3 * agreement._block_bytes + 1)
    parts = [agreement.blocks_of(upload) for upload in range(agreement.uploads)]
    assert [len(part) for part in parts[:-1]] == [3] * (len(parts) - 1)
    assert len(parts) == math.ceil(agreement.blocks / 3) > 1
    assert [block for part in parts for block in part] == list(range(agreement.blocks))
