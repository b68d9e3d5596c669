"""The card is written from what ran, and says in words what a number alone would hide."""

import math

import pytest

from cloister.errors import ConfigError
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import Circumstances, make_card
from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.privacy.placement import Aggregator, Joint, Local, Shared
from cloister.privacy.units import Budget, LeakageTable, Sensitivity, Unit, write_bound

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def release(mechanism, name="round 1"):
    return Release(name=name, mechanism=mechanism, sensitivity=Sensitivity(l1=3, l2_squared=5), entries=4)


def card_of(*releases, budget=BUDGET, placement=None, seeded=False, **known):
    accountant = Accountant(budget)
    for event in releases:
        accountant.charge(event)
    return make_card(
        accountant.spent(),
        budget=budget,
        placement=placement or Local(parties=3),
        leakage=LeakageTable(source="", rows=(), withstands="Nobody learns more.", breaks_if="Nobody."),
        seeded=seeded,
        circumstances=Circumstances(**known),
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
    card = card_of(release(DiscreteLaplace(scale=3.000001)), budget=Budget(epsilon=1.0, delta=0.0))
    assert card.plain_words.startswith("Whatever someone does with this result, it is at most 2.72 times as likely")
    assert "but for a chance" not in card.plain_words
    clients = card_of(budget=Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT))
    assert "any one party had held no records" in clients.plain_words, "who takes part is public"


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (1.1, "at most 3.01 times"),  # 3.004: rounded to 3, it would promise more than holds
        (4.0, "at most 54.6 times"),
        (10.0, "at most 22,027 times"),
        (13.9, "more than a million times"),
        (1e6, "more than a million times"),
    ],
)
def test_plain_words_never_round_down_and_hold_no_powers_of_ten(epsilon, words):
    card = card_of(release(DiscreteLaplace(scale=3 / epsilon * (1 + 1e-12))), budget=Budget(epsilon=epsilon, delta=0.0))
    assert card.epsilon == pytest.approx(epsilon)
    assert words in card.plain_words
    assert "e+" not in " ".join([card.plain_words, *card.warnings])
    assert card.is_weak is (epsilon > 10) is any("No protection is claimed" in warning for warning in card.warnings)
    assert card.private is not card.is_weak


def test_the_two_epsilons_of_pure_releases_are_told_apart():
    budget = Budget(epsilon=1.0, delta=1e-6)
    rounds = [release(DiscreteLaplace(scale=600.0))] * 400
    card = card_of(*rounds, budget=budget, reserved_delta=1e-9)
    pure = sum(one.pure_epsilon for one in card.releases)
    assert pure > 1.9 > 1.0 > card.epsilon
    assert (card.delta, card.budget_delta) == (1e-6 + 1e-9, 1e-6 + 1e-9), "what is kept back counts as spent"
    epsilons = f"{write_bound(card.epsilon, 4)} at delta = 1e-06, and {write_bound(pure, 4)}"
    words = f"{epsilons}, the pure epsilons of all releases added up, at delta"
    assert f"Two epsilons hold: {words} = 1e-09. Of delta, 1e-09 is kept back" in card.how_composed
    few = card_of(*rounds[:2], budget=budget, reserved_delta=1e-9)
    assert few.delta == 1e-9, "pure composition is better, and needs none of delta but that"
    assert "Two epsilons" not in few.how_composed
    assert "at delta = 0" in card_of(*rounds, budget=budget).how_composed
    assert card_of(release(DiscreteGaussian(sigma=50.0))).how_composed == "zCDP: rhos added, converted once"


def test_a_study_promises_nothing_at_all():
    assert "learns more" in card_of().protects_against
    assert card_of(seeded=True).protects_against == "Nobody is protected: the noise came from a seed."


def test_who_could_remove_the_noise_is_said_once():
    assert card_of(placement=Aggregator()).who_could_subtract == "The coordinator, which knows it."
    assert card_of(placement=Local(parties=3)).who_could_subtract.startswith("Nobody")


@pytest.mark.parametrize(
    ("unit", "replaced"), [(Unit.RECORD, "one record replaced"), (Unit.CLIENT, "one party's table")]
)
def test_a_declared_number_of_records_is_priced(unit, replaced):
    noisy = release(DiscreteGaussian(sigma=20.0))
    card = card_of(noisy, budget=Budget(epsilon=1.0, delta=1e-6, unit=unit), declared_records=12_345)
    (warning,) = card.warnings
    dearer = epsilon_of_rho(4 * card.releases[0].rho, 1e-6)
    assert dearer > 1.9 * card.epsilon
    assert f"epsilon is up to {write_bound(dearer)} at delta = 1e-06" in warning
    assert replaced in warning
    assert "12,345" in warning
    flawed = card_of(noisy, declared_records=12_345, flaw="It is proved for other neighbours.").warnings
    assert "and the claimed epsilon is up to" in flawed[1], "no epsilon holds where the guarantee does not"
    pure = card_of(release(DiscreteLaplace(scale=30.0)), budget=Budget(epsilon=1.0, delta=0.0), declared_records=9)
    assert "up to 0.2 at delta = 0" in pure.warnings[0], "pure epsilons double"


def test_warnings_name_seeds_large_deltas_and_noise():
    assert card_of().warnings == ()
    assert "seed" in card_of(seeded=True).warnings[0]
    noisy = release(DiscreteGaussian(sigma=100.0))
    assert "1 / 2,000,000, about the number" in card_of(noisy, estimated_records=2e6).warnings[0]
    assert not card_of(noisy, estimated_records=5e5).warnings
    loose = Budget(epsilon=1.0, delta=0.5, unit=Unit.CLIENT)
    assert "1 / 3, the number of parties" in card_of(noisy, budget=loose, parties=3).warnings[0]
    assert not card_of(noisy, parties=3).warnings
    assert "by 15 % of the column's range" in card_of(centre_noise=0.3).warnings[0]
    assert "fewer rounds" in card_of(centre_noise=0.3).warnings[0]
    (tenth,) = card_of(centre_noise=0.2, remedy="Use more parties.").warnings
    assert tenth.startswith("These centres are mostly noise")
    assert tenth.endswith("by 10 % of the column's range or more. Use more parties.")
    assert not card_of(centre_noise=0.19).warnings
    assert not card_of(placement=Shared(parties=5, colluding_max=3)).warnings
    (lost,) = card_of(estimated_records=-41.0, records_noise=567.0, remedy="Use more parties.").warnings
    assert lost.endswith("the number of records that was released is lost in its own noise, ±600. Use more parties.")


@pytest.mark.parametrize(
    "placement", [Aggregator(), Shared(parties=5, colluding_max=1), Local(parties=2), Joint(parties=3)]
)
def test_a_result_must_never_reach_a_coordinator_that_added_the_noise(placement):
    knows = placement.by_coordinator
    words = "The coordinator adds the noise and knows it: the result must never reach the coordinator"
    warnings = [warning for warning in card_of(placement=placement).warnings if warning.startswith(words)]
    assert len(warnings) == knows
    seeded = card_of(placement=placement, seeded=True).warnings
    assert len(seeded) == 1 + knows, "a study says it, too"


def test_a_unit_may_be_given_by_its_word():
    assert Budget(epsilon=1.0, unit="client") == Budget(epsilon=1.0, unit=Unit.CLIENT)
    assert Budget(epsilon=1.0, unit="client").unit is Unit.CLIENT
    for wrong in ("party", "Client", "", None, 1):
        with pytest.raises(ConfigError, match='unit must be "record", "person" or "client"; got'):
            Budget(epsilon=1.0, unit=wrong)
