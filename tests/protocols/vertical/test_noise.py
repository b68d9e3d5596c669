"""The flood: what it must hide, what it costs, and the bound on a record's errors on which that rests."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.lattice.lwe import LweBatch, decrypt_lwe
from cloister.lattice.sampling import ERROR_STD, draw_errors
from cloister.privacy.costs import rho_of
from cloister.protocols.vertical.evaluation import evaluate_query
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.noise import (
    STATISTICAL_BITS,
    ChargedFlood,
    StatisticalFlood,
    bound_errors,
    least_charged_std,
)
from cloister.protocols.vertical.query import LloydQuery
from tests.lattice.answers import measure_errors
from tests.protocols.vertical.sessions import CASES, make_case, run_case


@pytest.mark.parametrize("bodies", [1, 4, 64, 1024])
def test_no_records_errors_are_longer_than_the_bound(bodies):
    """A hundred thousand records: the bound fails for one of them with a probability of 2^-60."""
    count = min(100_000, 2**22 // bodies)
    errors = draw_errors(Stream.from_seed(1, "errors", bodies), bodies, count)
    lengths = np.abs(errors).sum(axis=0)
    assert lengths.max() <= bound_errors(bodies)
    assert bound_errors(bodies) < 16 * ERROR_STD * bodies + 60  # and it is no wild guess
    if bodies == 1024:
        assert bound_errors(bodies) < 1.6 * lengths.max()


@given(st.integers(1, 2000), st.floats(1.0, 1e4), st.integers(1, 100), st.floats(1e-6, 1.0))
def test_the_least_flood_costs_at_most_its_part_of_the_budget(bodies, weight, queries, rho):
    std = least_charged_std(bodies=bodies, weight_max=weight, queries=queries, rho=rho)
    longest = math.ceil(bound_errors(bodies) * weight)
    assert queries * longest**2 / (2 * std**2) <= rho
    assert queries * (longest + 3) ** 2 / (2 * std**2) > 0.999 * rho or longest < 1000


@pytest.mark.parametrize("name", CASES)
def test_all_prices_of_a_session_fit_the_part_that_is_kept_for_them(name):
    completed = run_case(name)
    agreement = completed.session.agreement
    if not isinstance(agreement.flood, ChargedFlood):
        assert agreement.flood.bits == agreement.smudge_bits
        return
    prices = [agreement.flood.price(query) for query in completed.queries()]
    assert sum(map(rho_of, prices)) <= completed.session.settings.flood_rho
    for query, price in zip(completed.queries(), prices, strict=True):
        assert price.entries == query.length
        assert price.mechanism.sigma == agreement.flood.std


def test_only_one_key_holder_with_its_own_columns_lets_errors_be_charged():
    charged = {name for name in CASES if isinstance(make_case(name).agreement.flood, ChargedFlood)}
    assert charged == {name for name in CASES if CASES[name].get("model") is None}
    assert all(isinstance(make_case(name, exact=True).agreement.flood, StatisticalFlood) for name in CASES)


def errors_in_answer(completed, alice):
    """The errors of the ciphertexts in an answer to the last query, as the key holder reads them; no flood yet."""
    bob, agreement = completed.parties[1], completed.session.agreement
    query = completed.queries()[-1]
    receiver, codebooks = completed.alice._receiver, completed.alice.codebooks
    masks, bodies = evaluate_query(
        query,
        parameters=agreement.parameters,
        blocks=receiver.blocks,
        alice=alice,
        alice_cells=codebooks.alice.assign(alice[:, : codebooks.alice.columns]),
        reps=codebooks.reps,
        residuals=agreement.settings.has_residuals,
    )
    batch = LweBatch(
        parameters=agreement.parameters,
        masks=masks,
        bodies=bodies,
        mask_of=np.arange(query.length),
        secret_of=np.zeros(query.length, dtype=np.int64),
    )
    return np.array(measure_errors(bob._keys, batch, decrypt_lwe(bob._keys, batch)), dtype=float), query


class KeepsItsKey(HolderParty):
    """A holder whose key the test can use in the end."""

    def close(self):
        """Wipe nothing."""


@pytest.mark.parametrize("name", ["two clusters", "residuals"])
def test_one_record_changes_the_errors_by_no_more_than_is_charged_for(name):
    """Sensitivity of the flood: Alice's values of one record go from corner to corner; the rest stays."""
    completed = make_case(name, holder=KeepsItsKey).run()
    flood, alice = completed.session.agreement.flood, completed.alice._columns
    base, query = errors_in_answer(completed, alice)
    assert isinstance(query, LloydQuery)
    limit = 2 * math.sqrt(flood.price(query).sensitivity.l2_squared)  # the record goes and comes again
    longest = 0.0
    for place in range(12):
        for corner in (-1.0, 1.0):
            moved = alice.copy()
            moved[place] = corner
            longest = max(longest, float(np.linalg.norm(errors_in_answer(completed, moved)[0] - base)))
    assert 0 < longest <= limit


def test_a_uniform_flood_is_2_to_the_40_times_the_largest_error():
    agreement = make_case("two clusters", exact=True).agreement
    most = agreement.load.terms * agreement.load.weight_max  # were every error 1
    assert 2**agreement.flood.bits > most
    assert STATISTICAL_BITS == 40
    completed = make_case("two clusters", exact=True, holder=KeepsItsKey).run()
    errors, _ = errors_in_answer(completed, completed.alice._columns)
    assert 0 < np.abs(errors).max() * 2**STATISTICAL_BITS < 2**agreement.flood.bits
