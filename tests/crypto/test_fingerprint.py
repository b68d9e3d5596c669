"""Identities as text: exactly one text for each key, and a wrong letter is noticed."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import Identity, SystemEntropy, read_fingerprint, write_fingerprint
from cloister.errors import ConfigError

KEYS = st.binary(min_size=32, max_size=32)


@given(KEYS)
def test_a_text_stands_for_its_key(key):
    text = write_fingerprint(key)
    assert text.startswith("ed25519:")
    assert len(text) == 64
    assert read_fingerprint(text) == key


def test_every_wrong_letter_and_every_swap_of_two_neighbours_is_noticed():
    text = write_fingerprint(Identity(SystemEntropy()).public_bytes)
    for place in range(len(text)):
        for letter in string.ascii_lowercase + string.digits + " -ABS":
            if letter != text[place]:
                with pytest.raises(ConfigError):
                    read_fingerprint(text[:place] + letter + text[place + 1 :])
        swapped = text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
        if swapped != text:
            with pytest.raises(ConfigError):
                read_fingerprint(swapped)


@given(KEYS, st.sampled_from(["", " ", "\n", "=", "a"]))
def test_a_text_that_is_longer_or_upper_case_is_another_text(key, tail):
    text = write_fingerprint(key)
    for other in (
        text.upper(),
        text[8:],
        text[:-1],
        text.replace("s", "ſ"),
        *([text + tail, tail + text] if tail else []),
    ):
        if other != text:
            with pytest.raises(ConfigError):
                read_fingerprint(other)


def test_a_message_quotes_nothing():
    with pytest.raises(ConfigError) as error:
        read_fingerprint("ed25519:hunter2")
    assert "hunter2" not in str(error.value)
