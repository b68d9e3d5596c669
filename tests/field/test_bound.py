"""The field is large enough for every data set, and no larger bound would be true."""

import itertools
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import ConfigError, PrecisionError
from cloister.field import FIELD61, FIELD122, Field, choose_field, largest_distance, largest_sum, most_bits
from tests.field.reference import exact_distances


@pytest.mark.parametrize(("dimensions", "records", "bits"), [(1, 1, 2), (1, 2, 2), (1, 3, 2), (2, 2, 1), (2, 3, 1)])
def test_the_bound_is_the_maximum_over_all_data_and_all_clusters(dimensions, records, bits):
    half = 2 ** (bits - 1)
    worst, widest = 0, 0
    for data in itertools.product(range(-half, half + 1), repeat=dimensions * records):
        rows = np.array(data).reshape(records, dimensions)
        for labels in itertools.product((0, 1), repeat=records):
            worst = max(worst, *(max(row) for row in exact_distances(rows, labels, 2)))
        widest = max(widest, int(np.abs(rows.sum(axis=0)).max()))
    assert worst == largest_distance(dimensions=dimensions, records=records, bits=bits)
    assert widest == largest_sum(records=records, bits=bits)


def worst_case(dimensions, records, bits):
    """One record at a corner, the others at the opposite one, and these are the cluster."""
    rows = np.full((records, dimensions), 2 ** (bits - 1), dtype=np.int64)
    rows[0] *= -1
    return rows, [1] + [0] * (records - 1)


@pytest.mark.parametrize("field", [FIELD61, FIELD122, Field(moduli=(2**29 - 3,))])
@pytest.mark.parametrize(("dimensions", "records"), [(1, 2), (3, 5), (7, 30)])
def test_the_largest_distance_decodes_and_one_bit_more_would_not(field, dimensions, records):
    bits = most_bits(field, dimensions=dimensions, records=records)
    for extra in (0, 1):
        rows, labels = worst_case(dimensions, records, bits + extra)
        exact = exact_distances(rows, labels, 2)
        largest = largest_distance(dimensions=dimensions, records=records, bits=bits + extra)
        assert max(map(max, exact)) == largest
        decoded = field.decode_distances(field.encode_integers(exact)).to_integers().tolist()
        if not extra:
            assert decoded == exact
            assert choose_field(dimensions=dimensions, records=records, bits=bits, allowed=(field,)) is field
        else:
            assert decoded != exact or 2 * largest_sum(records=records, bits=bits + 1) >= field.order
            with pytest.raises(PrecisionError, match=f"{records} records of {dimensions} .*Use at most {bits} bits"):
                choose_field(dimensions=dimensions, records=records, bits=bits + 1, allowed=(field,))


@given(st.integers(1, 10**4), st.integers(1, 2**32 - 1), st.integers(1, 40))
def test_the_papers_formula_is_enough_and_the_choice_is_exact(dimensions, records, bits):
    needed = log2(dimensions) + 2 * log2(records) + 2 * bits
    distance = largest_distance(dimensions=dimensions, records=records, bits=bits)
    try:
        field = choose_field(dimensions=dimensions, records=records, bits=bits)
    except PrecisionError:
        assert needed > 121.99
        assert distance >= FIELD122.order
    else:
        assert distance < field.order
        assert 2 * largest_sum(records=records, bits=bits) < field.order
        assert field is FIELD61 or needed > 60.99


@given(st.integers(1, 1000), st.integers(1, 10**6), st.sampled_from([FIELD61, FIELD122]))
def test_most_bits_is_where_the_choice_changes(dimensions, records, field):
    bits = most_bits(field, dimensions=dimensions, records=records)
    assert choose_field(dimensions=dimensions, records=records, bits=bits, allowed=(field,)) is field
    assert largest_sum(records=records, bits=bits) < 2**63
    if bits == 63:
        assert records == 1
        return
    with pytest.raises(PrecisionError):
        choose_field(dimensions=dimensions, records=records, bits=bits + 1, allowed=(field,))


def test_a_job_that_needs_two_primes_gets_them():
    # 100 columns on the default grid of 16 fractional bits: 2^6.6 2^28 2^34 > 2^61.
    assert choose_field(dimensions=100, records=16384, bits=17) is FIELD122
    assert choose_field(dimensions=100, records=16384, bits=13) is FIELD61
    assert most_bits(FIELD61, dimensions=100, records=16384) == 13


def test_nothing_fits_is_said_with_the_numbers():
    with pytest.raises(
        PrecisionError, match=r"2\^122\.0, .* 1000000 records of 100 coordinates of 50 bits allow 2\^146"
    ):
        choose_field(dimensions=100, records=10**6, bits=50)
    with pytest.raises(PrecisionError, match="Use fewer columns, or fewer records"):
        choose_field(dimensions=2**61, records=2**32 - 1, bits=1)


@pytest.mark.parametrize("wrong", [{"dimensions": 0}, {"records": 0}, {"bits": 0}, {"records": 2**32}, {"bits": 64}])
def test_sizes_that_are_none_are_refused(wrong):
    with pytest.raises(ConfigError, match="at least 1 column"):
        choose_field(**{"dimensions": 2, "records": 2, "bits": 2, **wrong})
