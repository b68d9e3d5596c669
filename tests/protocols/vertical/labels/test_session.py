"""Labels are what Alice would decide if she knew the cells, in every model; whoever lacks the grant lacks a part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError, TooFewPartiesError
from cloister.lattice.encryption import decrypt
from cloister.lattice.keys import SecretKeys, make_public_keys
from cloister.lattice.slots import SLOT_MODULUS
from cloister.protocols.vertical import agreement as vertical_agreement
from cloister.protocols.vertical.evaluation import Block
from cloister.protocols.vertical.labels import masking
from cloister.protocols.vertical.labels import party as party_module
from cloister.protocols.vertical.labels.agreement import choose_slot_parameters
from cloister.protocols.vertical.labels.masking import unpack_masked
from cloister.protocols.vertical.messages import Done, Turn
from tests.protocols.vertical.labels.sessions import Case

ALPHA = 1e-6
CASES = {
    "two parties, the computing one is granted": Case(granted=(1,)),
    "two parties, the key holder is granted": Case(granted=(2,), columns=((1,), (0,)), cells=(16,)),
    "two parties, both": Case(granted=(2, 1)),
    "the key holder has no columns": Case(
        columns=((0,), (1,), ()), cells=(5,), key_holder=3, granted=(2, 1), model="server-aided"
    ),
    "joint cells of two, a third is granted": Case(
        columns=((1,), (0,), (2,)), cells=(3, 4), key_holder=2, granted=(3,), model="server-aided"
    ),
    "joint cells of three, the computing one has no columns": Case(
        columns=((), (0,), (2,), (1,)), cells=(2, 3, 2), key_holder=4, granted=(2, 4), model="server-aided"
    ),
    "one record": Case(records=1, granted=(1, 2)),
    "a hundred clusters": Case(clusters=100, granted=(1, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_granted_parties_get_the_labels_exactly_and_others_none(name):
    case = CASES[name]
    them, _ = case.run()
    for party in them:
        assert party.finished
        if party.number in case.granted:
            np.testing.assert_array_equal(party.exact_labels, case.wanted)
        else:
            with pytest.raises(LocalProtocolError, match="granted"):
                _ = party.exact_labels


def test_several_blocks_in_several_uploads(monkeypatch):
    monkeypatch.setattr(vertical_agreement, "_UPLOAD_BYTES", 1)  # one block in each
    case = Case(records=9000, cells=(4,), granted=(2, 1))
    assert case.agreement().uploads == 3
    them, _ = case.run()
    for party in them:
        np.testing.assert_array_equal(party.exact_labels, case.wanted)


@pytest.mark.parametrize("name", list(CASES)[:6])
def test_letters_go_to_granted_parties_and_the_key_holder_only(name):
    case = CASES[name]
    them, run = case.run(record_views=True)
    schedule = case.agreement().schedule
    sent = {}
    for entry in run.views[0]:
        if isinstance(entry.message, Done):
            for letter in entry.message.letters:
                sent.setdefault(schedule[letter.stage].kind, set()).add((letter.sender, letter.recipient))
    assert sent["upload"] == {(holder, 1) for holder in case.encrypted}
    assert sent["mask"] == {(1, to) for to in {case.key_holder, *case.granted} - {1}}
    assert sent.get("decrypt", set()) == {(case.key_holder, to) for to in case.granted if to != case.key_holder}
    # A letter that is not sent cannot be read: what else a party sees are public keys, in posts.
    for party in them:
        seen = [entry.message for entry in run.views[party.number] if isinstance(entry.message, Turn)]
        assert {schedule[post.stage].kind for turn in seen for post in turn.posts} <= {"keys"}


@pytest.mark.parametrize("granted", [(1,), (2,), (1, 2)])
def test_only_the_granted_get_the_seed_of_the_pads(granted, monkeypatch):
    seeds = []
    pack = party_module.pack_masked

    def spy(blocks, pad_seed, parameters):
        raw = pack(blocks, pad_seed, parameters)
        seeds.append(unpack_masked(raw).pad_seed)
        return raw

    monkeypatch.setattr(party_module, "pack_masked", spy)
    Case(granted=granted).run()
    assert [seed is not None for seed in seeds] == [2 in granted]


def test_what_the_key_holder_decrypts_is_uniform_and_says_nothing_of_the_labels(monkeypatch):
    decrypted = []
    unmasked = party_module.decrypt_masked

    def spy(keys, masked):
        decrypted.append(unmasked(keys, masked))
        return decrypted[-1]

    monkeypatch.setattr(party_module, "decrypt_masked", spy)
    case = Case(granted=(1,), records=4000, clusters=2)
    case.run()
    (values,) = decrypted
    wanted = case.wanted
    assert 0.1 < wanted.mean() < 0.9
    for part in (values[:4000][wanted == 0], values[:4000][wanted == 1], values[4000:]):  # the last hold no record
        bins = np.bincount(part * 8 // SLOT_MODULUS, minlength=8)
        assert chisquare(bins).pvalue > ALPHA
    assert not np.array_equal(values[:4000] % 2, wanted)


def test_pads_differ_between_sessions_and_blocks_and_cover_all_residues():
    first = masking.draw_pads(b"a" * 32, 0, 8192)
    assert not np.array_equal(first, masking.draw_pads(b"b" * 32, 0, 8192))
    assert not np.array_equal(first, masking.draw_pads(b"a" * 32, 1, 8192))
    assert 0 <= first.min() < 160
    assert SLOT_MODULUS - 160 < first.max() < SLOT_MODULUS


@pytest.mark.parametrize("name", list(CASES)[2:6])
def test_the_error_that_the_key_holder_reads_is_the_flood(name, monkeypatch):
    """2^40 times what the ciphertexts' own errors can be, for all coefficients of the session together."""
    case = CASES[name]
    agreement = case.agreement()
    seen = []

    def keep(keys, masked):
        ring, delta = keys.parameters.ring, keys.parameters.delta
        noisy = ring.subtract(masked.bodies, ring.inverse(ring.multiply(masked.mask[None], keys.ntt)))
        plain = decrypt(keys, masked.mask[None], masked.bodies[None])[0]
        errors = ring.subtract(noisy, ring.scale(ring.reduce(plain), ring.residues_of(delta)))
        seen.extend(ring.to_integers(np.moveaxis(errors, -2, -1)).ravel())
        return unmasked(keys, masked)

    unmasked = party_module.decrypt_masked
    monkeypatch.setattr(party_module, "decrypt_masked", keep)
    case.run()
    assert len(seen) == agreement.block_records
    assert 2.0**agreement.smudge_bits >= agreement.error_bound * 2.0**40 * len(seen)
    largest = max(map(abs, seen))
    assert 0.99 * 2.0**agreement.smudge_bits < largest < agreement.parameters.delta / 2
    eighths = [(error + 2**agreement.smudge_bits) * 4 // 2**agreement.smudge_bits for error in seen]
    assert chisquare(np.bincount(np.clip(eighths, 0, 7), minlength=8)).pvalue > ALPHA


def test_masks_are_fresh_whatever_the_labels_are():
    """Labels of 0 in empty ciphertexts: without re-randomisation the mask would be 0, and the key holder knew it."""
    stream = Stream.from_seed(4, "labels test")
    parameters = choose_slot_parameters(cells=1, records=5, public_key=False)
    keys = SecretKeys.generate(parameters, 1, stream)
    public = make_public_keys(keys, seed=stream.bytes(32), stream=stream)
    zeros = np.zeros((1, len(parameters.primes), parameters.degree), dtype=np.uint32)
    block = Block(masks=zeros, bodies=zeros)
    labels, pads = np.zeros((1, 5), dtype=np.int16), np.arange(parameters.degree, dtype=np.int64)
    first, second = (
        masking.mask_labels(block, labels, pads, public=public, flood_bits=80, stream=stream) for _ in range(2)
    )
    assert np.count_nonzero(first.mask) > 0.99 * first.mask.size
    assert np.count_nonzero(first.mask == second.mask) < 50
    np.testing.assert_array_equal(masking.decrypt_masked(keys, first), pads)


def test_parties_with_other_centres_or_cells_do_not_open_the_session():
    case = Case()
    ours = case.agreement()
    for changed in (
        case.agreement(centres=case.terms["centres"] + 0.01),
        case.agreement(reps=(case.terms["reps"][0][::-1],)),
        case.agreement(granted=(1, 2)),
    ):
        assert changed.digest != ours.digest or changed.bind(b"session") != ours.bind(b"session")
        with pytest.raises(TooFewPartiesError):
            case.run(agreements=[ours, changed])


def test_the_digest_says_nothing_of_centres_and_cells():
    """The relay knows it, and could test guesses."""
    case = Case()
    ours = case.agreement()
    assert case.agreement(centres=case.terms["centres"] + 0.01).digest == ours.digest
    assert case.agreement(reps=(case.terms["reps"][0][::-1],)).digest == ours.digest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"granted": ()}, "granted to some"),
        ({"granted": (1, 1)}, "each once"),
        ({"granted": (3,)}, "granted to some"),
        ({"reps": (np.zeros((4, 1)),)}, "cells in its own columns"),
        ({"reps": (np.zeros((0, 2)),)}, "cells in its own columns"),
        ({"reps": ()}, "cells in its own columns"),
        ({"centres": np.zeros((4, 2))}, "centres must have the shape"),
    ],
)
def test_agreements_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        Case(changes=changes).agreement()


def test_a_collective_key_is_refused():
    case = Case(columns=((0,), (1,), (2,)), cells=(2, 2))
    with pytest.raises(ConfigError, match="server-aided"):
        case.agreement(model="collective", key_holders=(2, 3))
