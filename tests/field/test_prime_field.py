"""Fields: integers in and out exactly, uniform elements, what a peer may send, and a bound that no data exceeds."""

import itertools
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError, PrecisionError, RemoteProtocolError
from cloister.field import FIELD61, FIELD122, Field, choose_field, largest_distance, largest_sum, most_bits
from cloister.field.prime_field import LARGE_PRIMES
from tests.field.reference import exact_distances

ALPHA = 1e-6
SMALL, SMALL_PAIR = Field(moduli=(97,)), Field(moduli=(13, 11))
FIELDS = (FIELD61, FIELD122, SMALL, SMALL_PAIR)
fields = st.sampled_from(FIELDS)


def is_prime(candidate):
    """Miller and Rabin's test with the first twelve primes, which decides below 3.3e24 (Sorenson and Webster)."""
    odd, twos = candidate - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        power = pow(base, odd, candidate)
        if power not in (1, candidate - 1) and not any(
            (power := power * power % candidate) == candidate - 1 for _ in range(twos - 1)
        ):
            return False
    return True


def test_the_large_moduli_are_the_two_largest_primes_below_2_to_the_61():
    assert tuple(q for q in range(2**61 - 1, 2**61 - 32, -2) if is_prime(q)) == LARGE_PRIMES
    assert (FIELD61.order, FIELD122.order) == (2**61 - 1, (2**61 - 1) * (2**61 - 31))


@pytest.mark.parametrize(
    "moduli", [(), (2**61 - 33,), (91,), (1,), (0,), (2**31 - 1,), (11, 13), (97, 97), (29, 13), (13, 11, 7)]
)
def test_other_moduli_are_refused(moduli):
    with pytest.raises(ConfigError, match="Use FIELD61 or FIELD122"):
        Field(moduli=moduli)


@settings(deadline=None)  # the first call compiles
@given(fields, st.data())
def test_centred_integers_come_back(field, data):
    half = min((field.order - 1) // 2, 2**63 - 1)
    ends = st.sampled_from([-half, -1, 0, 1, half])
    values = np.array(data.draw(st.lists(st.one_of(ends, st.integers(-half, half)), min_size=1, max_size=6)))
    assert (field.decode(field.encode(values)) == values).all()


@settings(deadline=None)  # the first call compiles
@given(fields, st.data())
def test_non_negative_integers_come_back(field, data):
    top = field.order - 1
    values = data.draw(st.lists(st.one_of(st.sampled_from([0, 1, top - 1, top]), st.integers(0, top)), min_size=1))
    decoded = field.decode_distances(field.encode_integers(values), largest=top)
    assert decoded.to_integers().tolist() == values


@pytest.mark.parametrize("field", [SMALL_PAIR, FIELD122])
def test_every_pair_of_residues_at_the_ends_is_joined(field):
    # All pairs of the small field; in the large one those around 0, the smaller prime and the larger.
    p, q = field.moduli
    firsts, seconds = (sorted({x for end in (0, q, p) for x in range(end - 6, end + 6) if 0 <= x < m}) for m in (p, q))
    elements = np.array([(a, b) for a in firsts for b in seconds], dtype=np.uint64).T
    joined = [(int(a) * q * pow(q, -1, p) + int(b) * p * pow(p, -1, q)) % (p * q) for a, b in elements.T]
    assert field.decode_distances(elements).to_integers().tolist() == joined
    centred = [x - p * q if x > p * q // 2 else x for x in joined]
    short = [i for i, x in enumerate(centred) if abs(x) < 2**63]
    assert field.decode(elements[:, short]).tolist() == [centred[i] for i in short]


@settings(deadline=None)  # the first call compiles
@given(fields, st.data())
def test_encoding_keeps_sums_and_multiples(field, data):
    a, b = (np.array(data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3))) for _ in range(2))
    total = field.add([field.encode(a), field.encode(b)])
    scaled = field.scale(field.encode(a), field.encode(b[0]))
    rest = field.encode(a)
    field.deduct(rest, field.encode(b))
    assert (total == field.encode_integers(a.astype(object) + b.astype(object))).all()
    assert (rest == field.encode_integers(a.astype(object) - b.astype(object))).all()
    assert (scaled == field.encode_integers(a.astype(object) * int(b[0]))).all()


def test_adding_does_not_change_the_terms_and_takes_them_one_by_one():
    one = FIELD61.encode(np.array([1, 2]))
    assert FIELD61.add(one for _ in range(3)).tolist() == [[3, 6]]
    assert one.tolist() == [[1, 2]]


def test_adding_elements_of_other_shapes_is_a_bug_here():
    with pytest.raises(LocalProtocolError, match="one shape"):
        FIELD61.accumulate(FIELD61.zeros(3), FIELD61.zeros(4))


@pytest.mark.parametrize("field", FIELDS)
def test_single_elements_and_gaps_in_arrays_are_handled(field):
    five, seven = field.encode(np.int64(5)), field.encode(np.int64(-7))
    assert five.shape == (field.residues,)
    assert field.decode(field.add([five, seven])) == -2
    assert field.decode(field.scale(five, seven)) == -35
    drawn = [tuple(field.uniform(Stream.from_seed(seed, "one")).tolist()) for seed in range(200)]
    assert len(set(drawn)) > 50
    spread = field.encode(np.arange(12).reshape(3, 4)[:, ::2])
    assert field.decode(field.add([spread[:, ::2], spread[:, ::2]])).tolist() == [[0, 4], [16, 20]]


def test_there_must_be_something_to_add():
    with pytest.raises(LocalProtocolError, match="at least one term"):
        FIELD61.add([])


def test_a_sum_that_no_records_can_have_is_the_peers_fault():
    elements = FIELD122.encode_integers([2**63, 5, -(2**63)])
    with pytest.raises(RemoteProtocolError, match="2 of 3 do not"):
        FIELD122.decode(elements)


@pytest.mark.parametrize("field", FIELDS)
def test_a_distance_beyond_the_bound_is_the_peers_fault(field):
    elements = field.encode_integers([9, 10, 11, field.order - 1])
    assert field.decode_distances(elements[:, :2], largest=10).low.tolist() == [9, 10]
    with pytest.raises(RemoteProtocolError, match="at most 10; 2 of 4 are larger"):
        field.decode_distances(elements, largest=10)


@pytest.mark.parametrize("field", [SMALL, SMALL_PAIR, Field(moduli=(2,)), Field(moduli=(67, 61))])
def test_uniform_elements_have_the_uniform_law(field):
    elements = field.uniform(Stream.from_seed(1, "uniform"), 100, 300)
    assert elements.shape == (field.residues, 100, 300)
    for q, residue in zip(field.moduli, elements, strict=True):
        assert stats.chisquare(np.bincount(residue.ravel().astype(int), minlength=q)).pvalue > ALPHA
        assert residue.max() == q - 1


@pytest.mark.parametrize("field", [FIELD61, FIELD122])
def test_uniform_elements_of_large_fields_fill_their_range(field):
    for q, residue in zip(field.moduli, field.uniform(Stream.from_seed(2, "uniform"), 30000), strict=True):
        assert stats.kstest(residue.astype(float) / q, "uniform").pvalue > ALPHA
        assert stats.chisquare(np.bincount((residue % np.uint64(16)).astype(int))).pvalue > ALPHA


class ScriptedStream:
    """Gives the words it is told to."""

    def __init__(self, words):
        self.left = list(words)

    def words(self, count, dtype):
        head, self.left = self.left[:count], self.left[count:]
        return np.array(head, dtype=dtype)


def test_words_at_or_above_the_prime_are_drawn_again():
    q = 2**61 - 31
    upper = [q, 5, 2**61 - 1, q - 1, q + 3, 0, 7]
    field = Field(moduli=(q,))
    stream = ScriptedStream([(value << 3) | 7 for value in upper])
    assert field.uniform(stream, 4).tolist() == [[5, q - 1, 0, 7]]


@pytest.mark.parametrize(
    "elements",
    [
        np.zeros((1, 2, 3), dtype=np.int64),
        np.zeros((2, 2, 3), dtype=np.uint64),
        np.zeros((1, 3, 2), dtype=np.uint64),
        np.full((1, 2, 3), 2**61 - 1, dtype=np.uint64),
    ],
)
def test_what_is_not_an_element_is_not_accepted(elements):
    with pytest.raises(RemoteProtocolError, match="a reply must be"):
        FIELD61.check_received(elements, (2, 3), what="a reply")


def test_elements_are_accepted_up_to_the_last():
    last = np.array([[2**61 - 2], [2**61 - 32]], dtype=np.uint64)
    assert FIELD122.check_received(last, (1,), what="a reply") is last
    with pytest.raises(RemoteProtocolError, match="below the primes"):
        FIELD122.check_received(last[[0, 0]], (1,), what="a reply")


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
