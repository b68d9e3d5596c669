import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, RemoteProtocolError
from cloister.lattice.packing import pack_residues, pack_words, unpack_residues, unpack_words
from cloister.lattice.parameters import Parameters

PARAMETERS = Parameters.make(2048, 2, 2**16)

words_and_bits = st.integers(1, 64).flatmap(
    lambda bits: st.tuples(st.lists(st.integers(0, 2**bits - 1), max_size=70), st.just(bits))
)


@settings(deadline=None, max_examples=200)
@given(words_and_bits)
def test_words_are_one_long_little_endian_number(case):
    words, bits = case
    array = np.array(words, dtype=np.uint64)
    whole = sum(word << (bits * i) for i, word in enumerate(words))
    raw = pack_words(array, bits)
    assert raw == whole.to_bytes((len(words) * bits + 7) // 8, "little")
    assert np.array_equal(unpack_words(raw, bits, array.shape), array)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60), st.integers(1, 64), st.integers(0, 40))
def test_any_bytes_are_accepted_or_refused(raw, bits, count):
    try:
        words = unpack_words(raw, bits, (count,))
    except RemoteProtocolError:
        return
    assert pack_words(words, bits) == raw  # one way to write each message


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 13823), st.integers(0, 255)), max_size=4), st.integers(0, 2**32))
def test_fuzzed_residues_are_accepted_in_range_or_refused(changes, seed):
    x = np.random.default_rng(seed).integers(0, np.array(PARAMETERS.primes)[:, None], (2, 2048)).astype(np.uint32)
    raw = bytearray(pack_residues(x, PARAMETERS.primes))
    assert len(raw) == 2 * 2048 * 27 // 8
    for place, value in changes:
        raw[place] = value
    try:
        out = unpack_residues(bytes(raw), PARAMETERS, (2, 2048))
    except RemoteProtocolError as error:
        assert not any(str(int(v)) in str(error) for v in x.ravel()[:50] if v > 10**6)
        return
    assert (out < np.array(PARAMETERS.primes, dtype=np.uint32)[:, None]).all()
    assert pack_residues(out, PARAMETERS.primes) == bytes(raw)


@pytest.mark.parametrize("shape", [(3, 2, 2048), (5, 2), (0, 2, 2048)])
def test_residues_go_around(shape):
    prime = np.array(PARAMETERS.primes).reshape(-1, *[1] * (len(shape) - 2)) if len(shape) == 3 else PARAMETERS.primes
    x = np.random.default_rng(1).integers(0, prime, shape).astype(np.uint32)
    assert np.array_equal(unpack_residues(pack_residues(x, PARAMETERS.primes), PARAMETERS, shape), x)


@pytest.mark.parametrize("row", [0, 1])
def test_a_residue_equal_to_its_prime_is_refused_and_one_less_is_not(row):
    for shape, place in (((2, 2048), (row, 77)), ((4, 2), (3, row))):
        x = np.zeros(shape, dtype=np.uint32)
        x[place] = PARAMETERS.primes[row] - 1
        assert np.array_equal(unpack_residues(pack_words(x, 27), PARAMETERS, shape), x)
        x[place] += 1
        with pytest.raises(RemoteProtocolError, match="below its prime"):
            unpack_residues(pack_words(x, 27), PARAMETERS, shape)


def test_other_sizes_and_set_padding_are_refused():
    raw = pack_words(np.arange(5, dtype=np.uint64), 3)
    assert len(raw) == 2
    for wrong in (raw[:-1], raw + b"\0", b""):
        with pytest.raises(RemoteProtocolError, match="must have 2 bytes"):
            unpack_words(wrong, 3, (5,))
    with pytest.raises(RemoteProtocolError, match="last 1 bits must be zero"):
        unpack_words(raw[:1] + bytes([raw[1] | 128]), 3, (5,))


def test_own_mistakes_are_configuration_errors():
    with pytest.raises(ConfigError, match=r"below 2\^3"):
        pack_words(np.array([8], dtype=np.uint64), 3)
    with pytest.raises(ConfigError, match="unsigned"):
        pack_words(np.array([1]), 3)
    for bits in (0, 65):
        with pytest.raises(ConfigError, match="from 1 to 64 bits"):
            pack_words(np.zeros(1, dtype=np.uint64), bits)
    with pytest.raises(ConfigError, match="axis of 2 primes"):
        pack_residues(np.zeros((3, 5), dtype=np.uint32), PARAMETERS.primes)
    with pytest.raises(ConfigError, match="residues must be"):
        unpack_residues(b"", PARAMETERS, (3, 5))
