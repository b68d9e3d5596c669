"""The compiled loops against Python's integers, at the ends of the field and past every lazy reduction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cloister.field.kernels import (
    add_elements,
    expand_distances,
    multiply_rows,
    reduce_signed,
    scale_rows,
    square_rows,
    subtract_elements,
    sum_labelled_rows,
)

MODULI = (2**61 - 1, 2**61 - 31, 2**29 - 3, 97, 2)
moduli = st.sampled_from(MODULI)


@st.composite
def element_arrays(draw, modulus, shape):
    """Elements that are often 0, 1, q - 1 or near a power of two."""
    ends = [0, 1, modulus - 1, modulus // 2, max(modulus - 2, 0)]
    values = st.one_of(st.sampled_from(ends), st.integers(0, modulus - 1))
    return draw(hnp.arrays(np.uint64, shape, elements=values))


def integers(array):
    return array.astype(object)


@settings(deadline=None)  # the first call compiles
@given(moduli, st.integers(1, 12), st.data())
def test_sums_differences_and_multiples(q, size, data):
    a, b = (data.draw(element_arrays(q, size)) for _ in range(2))
    total, rest, scaled = a.copy(), a.copy(), np.empty((1, size), dtype=np.uint64)
    add_elements(total, b, np.uint64(q))
    subtract_elements(rest, b, np.uint64(q))
    scale_rows(a.reshape(1, -1), b[:1], scaled, np.uint64(q))
    assert (integers(total) == (integers(a) + integers(b)) % q).all()
    assert (integers(rest) == (integers(a) - integers(b)) % q).all()
    assert (integers(scaled[0]) == integers(a) * int(b[0]) % q).all()


@settings(deadline=None)  # the first call compiles
@given(moduli, st.integers(1, 5), st.integers(1, 70), st.integers(1, 4), st.data())
def test_a_matrix_product(q, columns, terms, outputs, data):
    rows = data.draw(element_arrays(q, (columns, terms)))
    weights = data.draw(element_arrays(q, (outputs, terms)))
    out = np.zeros((outputs, columns + 3), dtype=np.uint64)
    multiply_rows(rows, weights, out, 2, np.uint64(q))
    assert (integers(out[:, 2:-1]) == integers(weights) @ integers(rows).T % q).all()
    assert not out[:, :2].any()
    assert not out[:, -1].any()


@settings(deadline=None)  # the first call compiles
@given(moduli, st.integers(1, 5), st.integers(1, 70), st.integers(1, 3), st.data())
def test_expanded_distances(q, count, width, k, data):
    rows, factors = data.draw(element_arrays(q, (count, width))), data.draw(element_arrays(q, (k, width)))
    norms = data.draw(element_arrays(q, count))
    norm_factors, offsets = (data.draw(element_arrays(q, k)) for _ in range(2))
    out = np.empty((count, k), dtype=np.uint64)
    expand_distances(rows, norms, factors, norm_factors, offsets, out, np.uint64(q))
    expected = integers(rows) @ integers(factors).T + np.outer(integers(norms), integers(norm_factors))
    assert (integers(out) == (expected + integers(offsets)) % q).all()


@pytest.mark.parametrize("q", MODULI)
@pytest.mark.parametrize("terms", [1, 61, 62, 63, 64, 65, 124, 125, 126, 127, 128, 200])
def test_the_largest_elements_never_overflow_the_lazy_sums(q, terms):
    # All factors q - 1 = -1: every sum is as large as it can be before a reduction.
    rows = np.full((3, terms), q - 1, dtype=np.uint64)
    ends = np.full(3, q - 1, dtype=np.uint64)
    product, distances, norms = (np.empty(shape, dtype=np.uint64) for shape in ((3, 3), (3, 3), 3))
    multiply_rows(rows, rows, product, 0, np.uint64(q))
    expand_distances(rows, ends, rows, ends, ends, distances, np.uint64(q))
    square_rows(rows, norms, np.uint64(q))
    assert set(product.ravel().tolist()) == {terms % q}
    assert set(distances.ravel().tolist()) == {terms % q}  # terms, and one for the norm, and -1
    assert set(norms.tolist()) == {terms % q}


@settings(deadline=None)  # the first call compiles
@given(moduli, st.integers(1, 30), st.integers(1, 4), st.data())
def test_sums_by_label(q, count, width, data):
    rows = data.draw(element_arrays(q, (count, width)))
    labels = data.draw(hnp.arrays(np.int32, count, elements=st.integers(-1, 2)))
    out = np.zeros((3, width), dtype=np.uint64)
    sum_labelled_rows(rows, labels, out, np.uint64(q))
    for h in range(3):
        assert out[h].tolist() == [sum(int(x) for x in column) % q for column in rows[labels == h].T]


@settings(deadline=None)  # the first call compiles
@given(moduli, hnp.arrays(np.int64, 5, elements=st.integers(-(2**63), 2**63 - 1)))
def test_signed_integers_are_reduced(q, values):
    ends = np.array([0, -1, 1, q, -q, q - 1, 1 - q, -(2**63), 2**63 - 1], dtype=np.int64)
    values = np.concatenate([values, ends])
    out = np.empty(values.size, dtype=np.uint64)
    reduce_signed(values, out, np.uint64(q))
    assert out.tolist() == [int(value) % q for value in values]
