"""The card is written from what ran, and says in words what a number alone would hide."""

import math

import pytest

from cloister.privacy.accounting import Accountant
from cloister.privacy.card import make_card
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.privacy.placement import Aggregator, Shared
from cloister.privacy.units import Budget, Sensitivity, Unit

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def release(mechanism, name="round 1"):
    return Release(name=name, mechanism=mechanism, sensitivity=Sensitivity(l1=3, l2_squared=5), entries=4)


def card_of(*releases, budget=BUDGET, placement=None, **options):
    accountant = Accountant(budget)
    for event in releases:
        accountant.charge(event)
    return make_card(
        accountant.spent(),
        budget=budget,
        placement=placement or Aggregator(),
        breaks_if="Nobody.",
        **{"is_simulation": False, **options},
    )


def test_epsilon_is_that_of_the_charged_releases_not_of_the_budget():
    one, two = (card_of(*[release(DiscreteGaussian(sigma=100.0), f"round {i}") for i in range(n)]) for n in (1, 2))
    assert 0 < one.epsilon < two.epsilon < 1.0
    assert two.budget_epsilon == 1.0
    assert [item.rho for item in two.releases] == pytest.approx([5 / 2 / 100**2] * 2)


@pytest.mark.parametrize(
    ("mechanism", "words", "pure"),
    [
        (DiscreteGaussian(sigma=50.0), "discrete Gaussian", False),
        (DiscreteLaplace(scale=50.0), "discrete Laplace", True),
        (DiscreteGaussianSum(sigma=50.0, shares=3), "sum of 3 discrete Gaussians", False),
    ],
)
def test_each_kind_of_noise_is_named_with_its_scale_and_sensitivity(mechanism, words, pure):
    (item,) = card_of(release(mechanism)).releases
    assert (item.noise, item.scale, item.sensitivity_l1) == (words, 50.0, 3)
    assert item.sensitivity_l2 == pytest.approx(math.sqrt(5))
    assert (item.pure_epsilon is not None) is pure


def test_plain_words_say_how_many_times_likelier():
    card = card_of(release(DiscreteLaplace(scale=3.000001)), budget=Budget(epsilon=1.0))
    assert card.plain_words.startswith("Whatever someone does with this result, it is at most 2.72 times as likely")
    assert "but for a chance" not in card.plain_words
    assert "any one client" in card_of(budget=Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)).plain_words


def test_warnings_name_seeds_large_deltas_noise_and_missing_shares():
    assert card_of().warnings == ()
    assert "seed" in card_of(is_simulation=True).warnings[0]
    noisy = release(DiscreteGaussian(sigma=100.0))
    assert "publishes one record" in card_of(noisy, estimated_records=2e6).warnings[0]
    assert not card_of(noisy, estimated_records=5e5).warnings
    assert "mostly noise" in card_of(centre_noise=0.3).warnings[0]
    assert not card_of(centre_noise=0.2).warnings
    shared = Shared(parties=5, colluding_max=3)
    assert "at most 2 colluding parties, not 3" in card_of(placement=shared, shares_missing=1).warnings[0]
    assert not card_of(placement=shared).warnings
