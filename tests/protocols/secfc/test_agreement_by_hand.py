"""What follows from a SecFC agreement, written a second time: limits, coordinates, bytes, steps."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cloister.errors import ConfigError
from cloister.field import FIELD61, FIELD122
from cloister.field.prime_field import most_bits
from cloister.privacy.units import Budget
from cloister.protocols.secfc.agreement import SecfcAgreement, check_declared

ROOM = 64 * 2**20 - 4096


def agree(*, n=6, k=3, d=4, t=1, **options):
    return SecfcAgreement(
        clusters=k, dimensions=d, privacy=t, directory=tuple(bytes([i] * 32) for i in range(n)), **options
    )


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("clusters", 1, 65535),
        ("rounds_max", 1, 2**19 - 1),
        ("coordinate_bits", 2, 31),
        ("separate_after", 0, 99),
        ("segments", 1, 4),
        ("dimensions", 1, None),
    ],
)
def test_both_ends_of_a_range_are_in_it_and_nothing_beyond(name, least, most):
    base = agree(n=30, separate_after=None) if name != "separate_after" else agree(n=30)
    for value in (least, least if most is None else most):
        assert getattr(replace(base, **{name: value}), name) == value
    for value in (least - 1, least - 1 if most is None else most + 1):
        with pytest.raises(ConfigError, match=rf"{name} must be|segments|at least 1"):
            replace(base, **{name: value})


def test_what_goes_together():
    with pytest.raises(ConfigError, match="records_max must be the number of records with union"):
        agree(union=True)
    with pytest.raises(ConfigError, match="budget must be None unless centres are revealed"):
        agree(budget=Budget(epsilon=1.0, delta=1e-6))
    agree(budget=Budget(epsilon=1.0, delta=1e-6), reveal_centres=True)
    check_declared(10, 10)
    check_declared(10, None)
    with pytest.raises(ConfigError, match=r"data\.records = 9 must be at least"):
        check_declared(10, 9)
    assert agree(union=True, records_max=50).count_rows(7) == 50
    assert agree(records_max=50).count_rows(7) == agree().count_rows(7) == 7
    agree().choose_coding(3)
    with pytest.raises(ConfigError, match="at least clusters"):
        agree().choose_coding(2)


@pytest.mark.parametrize("d", [1, 4, 300])
@pytest.mark.parametrize("records", [5, 10_000, 10**6])
@pytest.mark.parametrize("chosen", ["auto", 2, 9])
def test_coordinates_have_as_many_bits_as_fit(d, records, chosen):
    coding = agree(d=d, coordinate_bits=chosen).choose_coding(records)
    one = most_bits(FIELD61, dimensions=d, records=records)
    two = most_bits(FIELD122, dimensions=d, records=records)
    wanted = chosen if chosen != "auto" else min(one if one >= 10 else two, 17)
    assert coding.bits == wanted
    assert coding.fixed_point.fractional_bits == wanted - 1
    assert coding.field == (FIELD61 if wanted <= one else FIELD122)


@pytest.mark.parametrize(("n", "t", "segments", "k", "d"), [(6, 1, 1, 3, 4), (9, 2, 2, 5, 7)])
@pytest.mark.parametrize("bits", [9, 30])
def test_bytes_of_messages(n, t, segments, k, d, bits):
    agreement = agree(n=n, k=k, d=d, t=t, segments=segments, coordinate_bits=bits, reveal_centres=True)
    coding = agreement.choose_coding(1000)
    word = 8 if coding.field == FIELD61 else 16
    width = math.ceil(d / segments)
    assert (coding.word_bytes, coding.width) == (word, width)
    assert coding.row_bytes == (n - 1) * (word * width + 32)
    assert coding.sum_box_bytes == word * k * width + 16
    assert coding.finish_bytes == 4000 + (segments + t) * (word * k * width + 32)
    assert replace(agreement, reveal_centres=False).choose_coding(1000).finish_bytes == 4000
    assert coding.chunk_rows == 4 * 2**20 // coding.row_bytes
    assert coding.columns_most == ROOM // (word * 1000)
    assert (agreement.replies, agreement.holders) == (2 * segments + 2 * t - 1, segments + t)


def test_messages_fit_to_the_last_byte():
    most = ROOM // 8
    coding = agree(coordinate_bits=2).choose_coding(most)
    assert coding.field == FIELD61
    with pytest.raises(ConfigError, match="must each fit a message"):
        agree(coordinate_bits=2).choose_coding(most + 1)


@pytest.mark.parametrize("separate_after", [None, 0, 3])
@pytest.mark.parametrize("reveal", [False, True])
def test_steps(separate_after, reveal):
    """Three for the seed, the meeting, chunks of shares, two before the rounds, one a labelling, reveal, finish."""
    agreement = agree(separate_after=separate_after, reveal_centres=reveal, rounds_max=10)
    labellings = 11 + (separate_after is not None)
    assert agreement.versions == labellings
    assert agreement.count_steps(5) == 3 + 1 + 5 + 1 + 1 + (labellings - 1) + reveal + 1


def test_noise_is_for_a_record_whose_coordinates_all_move_by_the_whole_range():
    agreement = agree(reveal_centres=True)
    event = agreement.price_noise(Budget(epsilon=1.0, delta=1e-6), 9)
    assert (event.sensitivity.l1, event.sensitivity.l2_squared) == (4 * 2**9, 4 * 2**18)
    assert event.entries == 12
