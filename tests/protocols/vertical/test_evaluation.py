"""Alice's work on ciphertexts: decrypted, every sum is the one in the clear, whatever the centres and her columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.protocols.vertical import evaluation
from cloister.protocols.vertical.codebook import Codebook, Codebooks
from cloister.protocols.vertical.evaluation import evaluate_query
from cloister.protocols.vertical.query import HistogramQuery, LloydQuery, round_to_length
from cloister.protocols.vertical.statistics import align_records, exact_total
from tests.protocols.vertical.sessions import Wire, make_case


def bring(name, **options):
    """A session's blocks at Alice, its codebooks, and the key."""
    wire = Wire(make_case(name, exact=True, **options))
    for number in range(wire.session.agreement.uploads):
        wire.receiver.take(wire.upload(number), number)
    return wire


WIRES = {name: bring(name) for name in ("two clusters", "residuals", "Alice has nothing")}
WIRES["server-aided"] = bring("server-aided", residuals=False)
SLOTS = bring("joint, one key")


def check(wire, query, alice_codebook):
    """Compare sums over ciphertexts with those over records."""
    settings, agreement = wire.session.settings, wire.session.agreement
    codebooks = Codebooks(alice=alice_codebook, holders=tuple(wire.codebooks))
    records = align_records(wire.session.table, settings.layout, codebooks)
    masks, bodies = evaluate_query(
        query,
        parameters=agreement.parameters,
        blocks=wire.receiver.blocks,
        alice=records.alice,
        alice_cells=records.alice_cells,
        reps=codebooks.reps,
        residuals=settings.has_residuals,
        in_slots=agreement.plan is not None,
    )
    assert masks.shape == (query.length, len(agreement.parameters.primes), agreement.parameters.degree)
    total = exact_total(query, records, codebooks)
    assert wire.decrypt_sums(masks, bodies) == total.tolist()
    return total


def alice_book(wire, cells, rng):
    columns = len(wire.session.settings.columns_alice)
    reps = rng.uniform(-1, 1, (cells, columns)) if columns else np.zeros((1, 0))
    units = wire.session.settings.units
    return Codebook(reps=reps, units=units, residual_radius=0, variance=0.0, weights=np.ones(len(reps)))


def lloyd_query(wire, rng, *, clusters, radius):
    public = wire.session.settings
    centres = rng.uniform(-1, 1, (clusters, public.dimensions))
    origins = np.rint(centres * public.units).astype(np.int64) if radius else np.zeros(centres.shape, dtype=np.int64)
    codebooks = Codebooks(alice=alice_book(wire, 1, rng), holders=tuple(wire.codebooks))
    offsets = codebooks.reps * public.units - origins[:, None, public.layout.alice_count :]
    return LloydQuery(
        number=1,
        centres=centres,
        origins=origins,
        units=public.units,
        constants=round_to_length(offsets, radius),
        radius_alice=radius,
        radius_encrypted=radius,
        sigma_sum=None,
        sigma_count=None,
    )


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(WIRES)), st.integers(2, 7), st.sampled_from([None, 5, 900]), st.integers(0, 2**32))
def test_a_round_is_the_round_in_the_clear(name, clusters, radius, seed):
    wire, rng = WIRES[name], np.random.default_rng(seed)
    total = check(wire, lloyd_query(wire, rng, clusters=clusters, radius=radius), alice_book(wire, 1, rng))
    assert total[-clusters:].sum() == len(wire.session.table)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(sorted(WIRES)), st.integers(1, 20), st.integers(0, 2**32))
def test_a_histogram_is_the_histogram_in_the_clear(name, cells, seed):
    wire, rng = WIRES[name], np.random.default_rng(seed)
    m = wire.codebooks[0].cells
    _, group_of = np.unique(rng.integers(0, m, m), return_inverse=True)
    book = alice_book(wire, cells, rng)
    total = check(wire, HistogramQuery(alice_cells=book.cells, group_of=group_of, sigma=None), book)
    assert total.sum() == len(wire.session.table)


def test_records_in_slots_give_the_same():
    rng = np.random.default_rng(4)
    for radius in (None, 30):
        check(SLOTS, lloyd_query(SLOTS, rng, clusters=3, radius=radius), alice_book(SLOTS, 1, rng))
    book = alice_book(SLOTS, 6, rng)
    check(SLOTS, HistogramQuery(alice_cells=6, group_of=np.arange(9), sigma=None), book)


def test_several_blocks_the_last_one_short_and_clusters_that_nobody_joins(monkeypatch):
    wire = bring("two blocks, far start")
    assert len(wire.receiver.blocks) == 2
    rng = np.random.default_rng(3)
    query = lloyd_query(wire, rng, clusters=5, radius=200)
    query.centres[3:] = query.centres[0]  # of equal centres the first takes all
    whole = check(wire, query, alice_book(wire, 1, rng))
    assert (whole[-2:] == 0).all()
    monkeypatch.setattr(evaluation, "_PAIRS_AT_ONCE", 3)  # pieces do not change sums
    assert np.array_equal(check(wire, query, alice_book(wire, 1, rng)), whole)


@pytest.mark.parametrize("place", ["first", "last"])
def test_one_record_alone_adds_what_it_should(place):
    """Against a sum written out for one record: all others weigh nothing in the difference."""
    wire = WIRES["residuals"]
    public, rng = wire.session.settings, np.random.default_rng(8)
    query = lloyd_query(wire, rng, clusters=3, radius=None)
    n = len(wire.session.table)
    p = 0 if place == "first" else n - 1
    alice = public.layout.alice_part(wire.session.table)
    moved = alice.copy()
    moved[p] = [0.5, -0.25]
    sums = []
    for columns in (alice, moved):
        masks, bodies = evaluate_query(
            query,
            parameters=wire.session.agreement.parameters,
            blocks=wire.receiver.blocks,
            alice=columns,
            alice_cells=np.zeros(n, dtype=np.int32),
            reps=wire.codebooks[0].reps,
            residuals=True,
        )
        sums.append(np.array(wire.decrypt_sums(masks, bodies)))

    def vector(own):
        cell = wire.cells[0][p]
        seen = np.concatenate([own, wire.codebooks[0].reps[cell]])
        cluster = int(((seen - query.centres) ** 2).sum(axis=1).argmin())
        out = np.zeros(query.length, dtype=np.int64)
        encrypted = np.rint(wire.codebooks[0].reps[cell] * public.units).astype(int) + wire.residuals[0][p]
        out[cluster * 4 : cluster * 4 + 4] = [*np.rint(own * public.units).astype(int), *encrypted]
        out[12 + cluster] = 1
        return out

    assert np.array_equal(sums[1] - sums[0], vector(moved[p]) - vector(alice[p]))


def test_the_wires_cover_what_differs():
    public = {name: wire.session.settings for name, wire in WIRES.items()}
    assert {own.has_residuals for own in public.values()} == {True, False}
    assert {len(own.columns_alice) for own in public.values()} == {0, 1, 2}
    assert {wire.session.agreement.is_seeded for wire in WIRES.values()} == {True, False}
