"""The joint coin toss: what was committed to is what counts, in whatever order the openings come."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import SeededEntropy
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.lattice.coin_toss import combine_tosses, draw_toss

SESSION = b"session"


def toss_all(count, session=SESSION):
    return [draw_toss(session, number, SeededEntropy(number, "toss")) for number in range(count)]


def combine(tosses, session=SESSION):
    return combine_tosses(session, [toss.commitment for toss in tosses], [toss.opening for toss in tosses])


def test_known_answers():
    def part(tag, raw):
        return tag + len(raw).to_bytes(4, "little") + raw

    openings = [bytes(32), bytes(range(32))]
    numbers = [number.to_bytes(16, "little") for number in range(3)]
    commitments = [
        hashlib.sha256(
            part(b"s", b"coin toss commitment") + part(b"b", SESSION) + part(b"i", numbers[place]) + part(b"b", opening)
        ).digest()
        for place, opening in enumerate(openings)
    ]
    wanted = hashlib.sha256(
        part(b"s", b"coin toss")
        + part(b"b", SESSION)
        + part(b"i", numbers[2])
        + b"".join(part(b"b", opening) for opening in openings)
    ).digest()
    assert combine_tosses(SESSION, commitments, openings) == wanted


def test_every_party_and_the_session_change_the_seed():
    tosses = toss_all(3)
    seeds = {combine(tosses), combine(toss_all(3, b"other"), b"other"), combine(toss_all(2))}
    for number in range(3):
        other = list(tosses)
        other[number] = draw_toss(SESSION, number, SeededEntropy(99, "other"))
        seeds.add(combine(other))
    assert len(seeds) == 6


@given(st.integers(0, 2), st.integers(0, 255))
def test_any_changed_bit_of_an_opening_is_refused_and_the_party_named(number, bit):
    tosses = toss_all(3)
    openings = [toss.opening for toss in tosses]
    changed = bytearray(openings[number])
    changed[bit // 8] ^= 1 << bit % 8
    openings[number] = bytes(changed)
    with pytest.raises(RemoteProtocolError, match=f"party {number}") as caught:
        combine_tosses(SESSION, [toss.commitment for toss in tosses], openings)
    assert bytes(changed).hex() not in str(caught.value)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_are_refused_and_nothing_else_is_raised(commitment, opening):
    with pytest.raises(RemoteProtocolError, match="party 0"):
        combine_tosses(SESSION, [commitment], [opening])


def test_a_copied_commitment_cannot_be_opened_under_another_number():
    first, second = toss_all(2)
    with pytest.raises(RemoteProtocolError, match="party 1"):
        combine_tosses(SESSION, [first.commitment, first.commitment], [first.opening, first.opening])
    with pytest.raises(RemoteProtocolError, match="party 0"):
        combine([second, first])
    with pytest.raises(RemoteProtocolError):
        combine([first, second], b"another session")


def test_openings_wait_for_all_commitments():
    tosses = toss_all(2)
    with pytest.raises(LocalProtocolError, match="1 openings for 2"):
        combine_tosses(SESSION, [toss.commitment for toss in tosses], [tosses[0].opening])
    with pytest.raises(LocalProtocolError):
        combine_tosses(SESSION, [], [])


def test_a_printed_toss_shows_no_opening():
    toss = toss_all(1)[0]
    assert repr(toss.opening) not in repr(toss)
