"""Contents of boxes: read back as written, and whatever else comes is refused with one kind of error."""

from dataclasses import fields, replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import RemoteProtocolError
from cloister.lattice.lwe import LweBatch, SmallLweBatch
from cloister.lattice.parameters import Parameters
from cloister.protocols.vertical.contents import (
    Asked,
    PostedCodebook,
    PostedKeys,
    Prepared,
    decode_asked,
    decode_keys,
    decode_prepared,
    decode_result,
    encode,
    pack_answer,
    pack_codebook,
    pack_result,
    pack_share,
    pack_totals,
    unpack_answer,
    unpack_codebook,
    unpack_result,
    unpack_share,
    unpack_totals,
)
from cloister.protocols.vertical.settings import ALICE
from cloister.protocols.vertical.stated import StatedRound
from cloister.report.sizes import fit_sizes, share_out
from cloister.wire import Array
from tests.protocols.vertical.sessions import CASES, run_case

PARAMETERS = Parameters.make(2048, 2, 2**20)


def residues(*shape, seed=1):
    top = min(PARAMETERS.primes)
    return np.random.default_rng(seed).integers(0, top, shape).astype(np.uint32)


def answer(count=3):
    places = np.arange(count), np.zeros(count, dtype=np.int64)
    return LweBatch(
        parameters=PARAMETERS,
        masks=residues(count, 2, 2048),
        bodies=residues(count, 2),
        mask_of=places[0],
        secret_of=places[1],
    )


def small_answer(count=3, bits=35):
    words = np.random.default_rng(2).integers(0, 2**bits, (count, 2049)).astype(np.uint64)
    return SmallLweBatch(
        parameters=PARAMETERS,
        bits=bits,
        masks=np.ascontiguousarray(words[:, 1:]),
        bodies=np.ascontiguousarray(words[:, 0]),
        mask_of=np.arange(count),
        secret_of=np.zeros(count, dtype=np.int64),
    )


@pytest.mark.parametrize(("batch", "bits"), [(answer(), None), (small_answer(), 35), (small_answer(bits=60), 60)])
def test_answers_come_back_as_they_were(batch, bits):
    raw = pack_answer(batch)
    read = unpack_answer(raw, parameters=PARAMETERS, length=3, bits=bits)
    assert type(read) is type(batch)
    assert np.array_equal(read.masks, batch.masks)
    assert np.array_equal(read.bodies, batch.bodies)
    for wrong in (raw[:-1], raw + b"\0", raw[:16], b""):
        with pytest.raises(RemoteProtocolError):
            unpack_answer(wrong, parameters=PARAMETERS, length=3, bits=bits)
    with pytest.raises(RemoteProtocolError):
        unpack_answer(raw, parameters=PARAMETERS, length=4, bits=bits)


def test_shares_are_for_those_who_made_theirs():
    share = residues(5, 2)
    raw = pack_share(share, PARAMETERS, (4, 2))
    assert np.array_equal(unpack_share(raw, PARAMETERS, length=5, members=(2, 4)), share)
    for members in ((2, 3), (2,), (2, 3, 4), (4, 5)):
        with pytest.raises(RemoteProtocolError):
            unpack_share(raw, PARAMETERS, length=5, members=members)
    for wrong in (raw[:-1], raw + b"\0", b"", b"\xff" * len(raw)):
        with pytest.raises(RemoteProtocolError):
            unpack_share(wrong, PARAMETERS, length=5, members=(2, 4))


@given(st.lists(st.integers(-(2**40), 2**40), max_size=20))
def test_totals_come_back_as_they_were(values):
    totals = np.array(values, dtype=np.int64)
    raw = pack_totals(totals)
    assert len(raw) == 8 * len(values)
    assert np.array_equal(unpack_totals(raw, length=len(values), modulus=2**41), totals)


@pytest.mark.parametrize("value", [2**40 + 1, -(2**40) - 1, 2**63 - 1, -(2**63)])
def test_totals_beyond_the_plaintext_modulus_are_refused(value):
    raw = pack_totals(np.array([0, value], dtype=np.int64))
    with pytest.raises(RemoteProtocolError, match="within the plaintext modulus"):
        unpack_totals(raw, length=2, modulus=2**41)
    with pytest.raises(RemoteProtocolError):
        unpack_totals(raw, length=3, modulus=2**62)


# --- codebooks ---------------------------------------------------------------------------------------------------


def codebooks_of(name, exact):
    completed = run_case(name, exact=exact)
    own = completed.alice.codebooks
    return completed.session.settings, [(ALICE, own.alice), *enumerate(own.holders)]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_codebooks_come_back_as_they_were(name, exact):
    public, books = codebooks_of(name, exact)
    for party, book in books:
        raw = encode(Prepared(pack_codebook(book), None))
        posted = decode_prepared(raw).codebook
        read_back = unpack_codebook(posted, public, party)
        for field in fields(book):
            if field.name != "releases":  # what it was charged for is its maker's business
                assert np.array_equal(getattr(read_back, field.name), getattr(book, field.name))


PUBLIC, BOOKS = codebooks_of("residuals", exact=False)
GOOD = pack_codebook(dict(BOOKS)[0])
REPS, WEIGHTS = (array.to_numpy(np.float64, *array.shape) for array in (GOOD.reps, GOOD.weights))


def changed(**fields):
    return msgspec.structs.replace(GOOD, **fields)


@pytest.mark.parametrize(
    "posted",
    [
        changed(reps=Array.of(REPS[:-1])),
        changed(reps=Array.of(REPS[:, :1])),
        changed(reps=Array.of(REPS + 2.0**-20)),
        changed(reps=Array.of(REPS + 2)),
        changed(reps=Array.of(REPS * np.nan)),
        changed(reps=Array.of(REPS.astype(np.float32))),
        changed(weights=Array.of(WEIGHTS * 0)),
        changed(weights=Array.of(-WEIGHTS)),
        changed(weights=Array.of(WEIGHTS[:-1])),
        changed(weights=Array.of(WEIGHTS * np.inf)),
        changed(variance=-1.0),
        changed(variance=float("inf")),
        changed(variance=float("nan")),
        changed(residual_radius=None),
        changed(residual_radius=0.5),
        changed(residual_radius=float(PUBLIC.residual_most + 1)),
        changed(bins=()),
        changed(bins=(4, 1)),
        changed(bins=(2, 2, 1)),
        changed(bins=(60000, 60000)),
    ],
    ids=range(20),
)
def test_a_codebook_that_was_not_agreed_on_is_refused(posted):
    unpack_codebook(decode_prepared(encode(Prepared(GOOD, None))).codebook, PUBLIC, 0)
    with pytest.raises(RemoteProtocolError):
        unpack_codebook(decode_prepared(encode(Prepared(posted, None))).codebook, PUBLIC, 0)


def test_residuals_that_nobody_has_are_refused():
    public, books = codebooks_of("two clusters", exact=False)
    posted = pack_codebook(dict(books)[0])
    for radius in (None, 1.0):
        with pytest.raises(RemoteProtocolError, match="at most 0 units"):
            unpack_codebook(msgspec.structs.replace(posted, residual_radius=radius), public, 0)


def test_the_length_of_a_codebook_does_not_depend_on_its_numbers():
    lengths = {
        len(encode(changed(residual_radius=radius, variance=variance)))
        for radius in (0.0, 1.0, 127.0, 128.0, 70_000.0)
        for variance in (0.0, 0.5, 1e-9)
    }
    assert len(lengths) == 1


# --- the result ---------------------------------------------------------------------------------------------------

FOUND = run_case("residuals").alice.finding
TOTALS = np.arange(3)
RESULT = pack_result(TOTALS, FOUND)


def test_a_result_comes_back_as_it_was():
    posted = decode_result(encode(RESULT))
    assert np.array_equal(unpack_totals(posted.totals, length=3, modulus=18), TOTALS)
    found = unpack_result(posted, PUBLIC)
    for field in fields(FOUND):
        assert np.array_equal(getattr(found, field.name), getattr(FOUND, field.name))


@pytest.mark.parametrize(
    "change",
    [
        {"centres": FOUND.centres[:-1]},
        {"centres": FOUND.centres[:, :1]},
        {"centres": FOUND.centres * 0},
        {"centres": FOUND.centres + 2},
        {"centres": FOUND.centres * np.nan},
        {"sizes": fit_sizes(np.ones(1), np.ones(1))},
        {"sizes": share_out(np.ones(PUBLIC.clusters), np.ones(PUBLIC.clusters))},
        {"centre_noise": FOUND.centre_noise[:-1]},
        {"centre_noise": FOUND.centre_noise - 1},
        {"centre_noise": FOUND.centre_noise * np.nan},
        {"centre_noise": FOUND.centre_noise + 1},
        {"centre_noise": None},
    ],
    ids=range(12),
)
def test_a_result_out_of_range_is_refused(change):
    raw = encode(pack_result(TOTALS, replace(FOUND, **change)))
    with pytest.raises(RemoteProtocolError):
        unpack_result(decode_result(raw), PUBLIC)


# --- whatever comes ----------------------------------------------------------------------------------------------

RAWS = {
    "prepared": encode(Prepared(GOOD, b"c" * 32)),
    "keys": encode(PostedKeys(b"s" * 32, b"bodies", None)),
    "answer": pack_answer(small_answer(1)),
    "large answer": pack_answer(answer(1)),
    "asked": encode(Asked(StatedRound(1.0, 2.0, 3.0, 4.0), b"answer")),
    "result": encode(RESULT),
    "totals": pack_totals(np.arange(6)),
    "share": pack_share(residues(5, 2), PARAMETERS, (2, 3)),
}


def read(kind, raw):
    match kind:
        case "prepared":
            posted = decode_prepared(raw).codebook
            if posted is not None:
                assert isinstance(posted, PostedCodebook)
                unpack_codebook(posted, PUBLIC, 0)
        case "keys":
            decode_keys(raw)
        case "asked":
            decode_asked(raw)
        case "result":
            unpack_result(decode_result(raw), PUBLIC)
        case "answer":
            unpack_answer(raw, parameters=PARAMETERS, length=1, bits=35)
        case "large answer":
            unpack_answer(raw, parameters=PARAMETERS, length=1, bits=None)
        case "totals":
            unpack_totals(raw, length=6, modulus=2**31)
        case "share":
            unpack_share(raw, PARAMETERS, length=5, members=(2, 3))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(RAWS)), st.data())
def test_any_bytes_are_accepted_or_refused_with_one_error(kind, data):
    raw = bytearray(RAWS[kind])
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3))
    raw = bytes(raw[cut:]) if data.draw(st.booleans()) else bytes(raw) + b"\0" * cut
    try:
        read(kind, raw)
    except RemoteProtocolError:
        return


@given(st.sampled_from(sorted(RAWS)), st.binary(max_size=300))
def test_random_bytes_raise_nothing_else(kind, raw):
    try:
        read(kind, raw)
    except RemoteProtocolError as error:
        assert raw not in str(error).encode() or len(raw) < 4
