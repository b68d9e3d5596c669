"""The agreement: what is refused before a session, what its digest covers, and that its numbers fit the ring."""

import math
from dataclasses import replace

import pytest

from cloister.errors import ConfigError, TooFewPartiesError
from cloister.lattice.noise import answer_error_bound, flood_reach_max
from cloister.lattice.parameters import check_security
from cloister.privacy.placement import Shared
from cloister.protocols.vertical.noise import STATISTICAL_BITS, ChargedFlood
from tests.protocols.vertical.sessions import CASES, TINY, Session, make_case
from tests.protocols.vertical.tables import mixture

TWO = make_case("two clusters").agreement
COLLECTIVE = make_case("collective").agreement
THRESHOLD = make_case("threshold").agreement


@pytest.mark.parametrize(
    ("base", "changes", "words"),
    [
        (TWO, {"model": "three-party"}, "model must be one of two-party, server-aided, collective"),
        (TWO, {"computing": 3}, "computing must be one of the parties; got 3"),
        (TWO, {"computing": 0}, "computing must be one of the parties; got 0"),
        (TWO, {"encrypted": (1,)}, "encrypted must be 1 different parties other than the computing one"),
        (TWO, {"encrypted": ()}, "encrypted must be 1 different"),
        (TWO, {"key_holders": (1,)}, "key_holders must be 1 of the parties other"),
        (TWO, {"key_holders": (2, 2)}, "key_holders must be 1 of the parties other"),
        (TWO, {"threshold": 1}, "threshold must be left out unless the key is collective"),
        (TWO, {"model": "collective"}, "key holders must be at least two where the key is collective"),
        (COLLECTIVE, {"key_holders": (2,)}, "key_holders must be 2 of the parties"),
        (COLLECTIVE, {"model": "two-party", "key_holders": (2,)}, "parties must be two in a two-party session; got 3"),
        (THRESHOLD, {"threshold": 1}, "threshold must be from 2 to the number of key holders, 3; got 1"),
        (THRESHOLD, {"threshold": 4}, "threshold must be from 2 to"),
        (THRESHOLD, {"threshold": None}, "placement must be shares of noise by 4"),
    ],
)
def test_roles_that_do_not_fit_are_refused(base, changes, words):
    with pytest.raises(ConfigError, match=words):
        replace(base, **changes)


def test_noise_of_too_few_is_refused():
    settings = replace(COLLECTIVE.settings, placement=Shared(parties=2, colluding_max=1))
    with pytest.raises(ConfigError, match="placement must be shares of noise by 3: the computing party and each"):
        replace(COLLECTIVE, settings=settings)


def test_the_digest_is_of_everything_that_is_agreed():
    other = make_case("threshold")
    base = other.agreement
    changed = [
        replace(base, context="other columns"),
        replace(base, directory=base.directory[::-1]),
        replace(base, threshold=3, settings=replace(base.settings, placement=Shared(parties=4, colluding_max=3))),
        replace(base, key_holders=(4, 3, 2)),
        replace(base, settings=replace(base.settings, rounds=3)),
        replace(base, settings=replace(base.settings, knobs=replace(base.settings.knobs, restarts=4))),
        replace(base, settings=replace(base.settings, records=301)),
        replace(base, settings=replace(base.settings, budget=None)),
    ]
    digests = {agreement.digest for agreement in (base, *changed)}
    assert len(digests) == len(changed) + 1
    assert make_case("threshold").agreement.digest == base.digest


def test_parties_that_agreed_to_something_else_do_not_open_the_session():
    one, other = (Session(mixture(60, 2, 2, seed=1), **TINY) for _ in range(2))
    other.agreed = replace(other.agreed, agreement=replace(other.agreement, context="other bounds"))
    with pytest.raises(TooFewPartiesError):
        one.run([one.party(1), other.party(2)])


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_sums_errors_and_floods_fit_the_ring(name, exact):
    agreement = make_case(name, exact=exact).agreement
    parameters, settings = agreement.parameters, agreement.settings
    check_security(agreement.key_parameters.degree, agreement.key_parameters.modulus)
    assert parameters.plaintext_modulus > 2 * settings.sum_max
    if agreement.plan is not None:
        error, smudges = agreement.plan.error_bound, 1 + (agreement.decryptors if agreement.is_collective else 0)
        assert error + smudges * 2.0**agreement.smudge_bits < parameters.delta / 2
        assert 2.0**agreement.smudge_bits >= error * 2**STATISTICAL_BITS
        return
    error, room = answer_error_bound(parameters, agreement.load), flood_reach_max(parameters, agreement.load)
    assert error < parameters.delta / 2
    if isinstance(agreement.flood, ChargedFlood):
        assert agreement.flood.std >= agreement._least_flood_std
        assert 8 * agreement.flood.std < parameters.delta / 2
    else:
        smudges = 1 + (agreement.decryptors if agreement.is_collective else 0)
        assert smudges * 2.0**agreement.smudge_bits <= room
        assert 2.0**agreement.flood.bits >= error * 2**STATISTICAL_BITS * 0.5
    assert math.log2(parameters.plaintext_modulus) < agreement.switch_bits <= 60


@pytest.mark.parametrize("name", CASES)
def test_blocks_and_uploads_cover_every_record_once(name):
    agreement = make_case(name, records=10_001).agreement
    rows = [row for block in range(agreement.blocks) for row in range(10_001)[agreement.records_of(block)]]
    assert rows == list(range(10_001))
    blocks = [block for upload in range(agreement.uploads) for block in agreement.blocks_of(upload)]
    assert blocks == list(range(agreement.blocks))


def test_only_who_encrypts_under_its_own_key_sends_seeds():
    seeded = {name for name in CASES if make_case(name).agreement.is_seeded}
    assert seeded == {name for name in CASES if CASES[name].get("model") is None}


def test_messages_that_would_be_too_long_are_refused_before_anything_is_paid():
    table = mixture(300, 80, 3, seed=1)
    columns = tuple(tuple(range(first, first + 20)) for first in range(0, 80, 20))
    with pytest.raises(ConfigError, match="the largest message must be at most 1024 MiB"):
        Session(table, columns, model="collective", start="random", rounds=1, clusters=100, cells=8)
    with pytest.raises(ConfigError, match="flood_share must be from"):
        Session(table[:, :2], ((0,), (1,)), flood_share=0.0, **TINY)


def test_a_key_holder_admits_as_many_masks_as_a_session_has_numbers():
    agreement = make_case("two clusters").agreement
    assert agreement.answers == sum(agreement.settings.lengths) <= len(agreement.queries) * agreement.longest_answer
    assert agreement.longest_answer >= agreement.settings.clusters * (agreement.settings.dimensions + 1)
