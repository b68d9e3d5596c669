"""Placements: what the honest holders add is what is charged, and less than it is not enough."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.privacy.costs import pure_epsilon_of, rho_of, size_gaussian_share
from cloister.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteLaplace,
    PolyaDifference,
    Release,
    compute_variance,
)
from cloister.privacy.placement import Aggregator, Joint, Local, Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, LeakageTable, Sensitivity
from tests.privacy.distributions import ALPHA, battery, convolve, pmf

LAPLACE = DiscreteLaplace(scale=3.0)
GAUSSIAN = DiscreteGaussian(sigma=4.0)
TARGETS = [LAPLACE, GAUSSIAN]
PLACEMENTS = [Shared(parties=n, colluding_max=t) for n, t in [(2, 0), (2, 1), (3, 1), (5, 2), (8, 1), (8, 7)]]
ENTRIES = 200_000
REACH = 200


def draw_shares(placement, target, count):
    """What ``count`` holders add together, each with a sampler of its own."""
    noise = placement.mechanism_for_share(target)
    seed = Stream.from_seed(5, "shares", repr(placement), repr(target))
    return sum(SimulationSampler(seed.child("holder", i)).draw(noise, ENTRIES) for i in range(count))


def release_of(mechanism, l1=1, l2_squared=1, entries=1):
    return Release(
        name="test", mechanism=mechanism, sensitivity=Sensitivity(l1=l1, l2_squared=l2_squared), entries=entries
    )


@pytest.mark.parametrize(
    ("placement", "masked_twice", "removers"),
    [
        (Aggregator(), False, "the coordinator"),
        (Local(parties=3), False, "nobody"),
        (Shared(parties=6, colluding_max=2), True, "any 3 parties, in part"),
        (Shared(parties=6, colluding_max=2), False, "the coordinator with any one party, in part"),
        (Shared(parties=6, colluding_max=0), True, "each party, its own share"),
        (Shared(parties=2, colluding_max=1), False, "nobody"),  # each adds all of it
        (Joint(parties=3), True, "whoever deals the randomness, with any one party"),
    ],
    ids=str,
)
def test_who_could_take_noise_away_is_named(placement, masked_twice, removers):
    assert placement.name_removers(masked_twice=masked_twice) == removers


def steepest_step(probabilities):
    """The largest |ln P[x] - ln P[x + 1]|: the epsilon at sensitivity 1, read off the distribution itself."""
    middle = probabilities[REACH - 60 : REACH + 61]  # farther out the cut-off at REACH shows
    return np.abs(np.diff(np.log(middle))).max()


class TestShared:
    @pytest.mark.parametrize("target", TARGETS, ids=str)
    @pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
    def test_the_honest_shares_have_the_distribution_that_is_charged(self, placement, target):
        samples = draw_shares(placement, target, placement.honest_min)
        assert battery(samples, pmf(placement.released_mechanism(target), REACH)) > ALPHA

    @pytest.mark.parametrize("target", TARGETS, ids=str)
    @pytest.mark.parametrize("placement", [p for p in PLACEMENTS if p.honest_min > 1], ids=str)
    def test_one_honest_share_less_does_not(self, placement, target):
        samples = draw_shares(placement, target, placement.honest_min - 1)
        assert battery(samples, pmf(placement.released_mechanism(target), REACH)) < ALPHA

    @pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
    def test_laplace_shares_give_pure_privacy_up_to_the_last_allowed_dropout_and_not_beyond(self, placement):
        share = pmf(placement.mechanism_for_share(LAPLACE), REACH)
        promised = pure_epsilon_of(release_of(LAPLACE))
        for dropped in range(placement.colluding_max + 1):
            assert steepest_step(convolve([share] * (placement.parties - dropped))) <= promised + 1e-9
        if placement.honest_min > 1:
            assert steepest_step(convolve([share] * (placement.honest_min - 1))) > promised * 1.01

    @pytest.mark.parametrize("target", TARGETS, ids=str)
    @pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
    def test_dropouts_leave_at_least_the_variance_wanted(self, placement, target):
        share = compute_variance(placement.mechanism_for_share(target))
        assert placement.honest_min * share >= compute_variance(target) * (1 - 1e-12)
        assert (placement.honest_min - 1) * share < compute_variance(target)
        assert placement.total_variance(target) == pytest.approx(placement.parties * share)
        assert np.var(draw_shares(placement, target, placement.parties)) == pytest.approx(
            placement.total_variance(target), rel=0.03
        )

    def test_laplace_is_charged_as_it_was_wanted_and_gaussian_as_the_sum_it_is(self):
        placement = Shared(parties=5, colluding_max=2)
        assert placement.released_mechanism(LAPLACE) == LAPLACE
        assert placement.mechanism_for_share(LAPLACE) == PolyaDifference(scale=3.0, shares=3)
        released = placement.released_mechanism(GAUSSIAN)
        assert isinstance(released, DiscreteGaussianSum)
        assert released.shares == 3
        assert placement.mechanism_for_share(GAUSSIAN) == DiscreteGaussian(sigma=released.sigma)

    @pytest.mark.parametrize("target", TARGETS, ids=str)
    def test_if_all_others_collude_each_adds_the_full_noise(self, target):
        placement = Shared(parties=4, colluding_max=3)
        assert placement.mechanism_for_share(target) == placement.released_mechanism(target) == target

    def test_no_accountant_takes_a_single_share(self):
        share = Shared(parties=5, colluding_max=2).mechanism_for_share(LAPLACE)
        for cost in (rho_of, pure_epsilon_of):
            with pytest.raises(LocalProtocolError, match="PolyaDifference"):
                cost(release_of(share))

    def test_shares_of_shares_are_refused(self):
        with pytest.raises(ConfigError, match="shared out again"):
            Shared(parties=3, colluding_max=2).mechanism_for_share(DiscreteGaussianSum(sigma=1.0, shares=2))

    @pytest.mark.parametrize(("parties", "colluding_max"), [(1, 0), (0, 0), (3, 3), (3, -1)])
    def test_impossible_numbers_are_refused(self, parties, colluding_max):
        with pytest.raises(ConfigError):
            Shared(parties=parties, colluding_max=colluding_max)

    def test_the_card_names_the_numbers_and_who_is_not_kept_out(self):
        placement = Shared(parties=5, colluding_max=2)
        assert "5 parties" in placement.who_adds
        assert "any 3" in placement.who_adds
        assert "Up to 2" in placement.who_could_subtract
        assert "only against receivers that add none" in Shared(parties=5, colluding_max=0).who_could_subtract


class TestGaussianShares:
    @given(
        sigma=st.floats(min_value=0.05, max_value=2.0**40),
        shares=st.integers(min_value=1, max_value=300),
        vector=st.lists(st.integers(min_value=-(2**20), max_value=2**20), min_size=1, max_size=8).filter(any),
        zeros=st.integers(min_value=0, max_value=10**9),
    )
    def test_together_they_cost_at_most_what_was_wanted(self, sigma, shares, vector, zeros):
        share = size_gaussian_share(sigma, shares)
        norms = {"l1": sum(map(abs, vector)), "l2_squared": sum(x * x for x in vector), "entries": len(vector) + zeros}
        released = DiscreteGaussianSum(sigma=share, shares=shares)
        assert rho_of(release_of(released, **norms)) <= rho_of(release_of(DiscreteGaussian(sigma=sigma), **norms))

    @given(sigma=st.floats(min_value=0.05, max_value=2.0**40), shares=st.integers(min_value=1, max_value=300))
    def test_are_between_the_ideal_share_and_the_whole(self, sigma, shares):
        assert sigma / math.sqrt(shares) * (1 - 1e-15) <= size_gaussian_share(sigma, shares) <= sigma

    @pytest.mark.parametrize(("sigma", "shares"), [(4.0, 4), (1e4, 100), (2.0**40, 7)])
    def test_are_ideal_where_they_are_not_small(self, sigma, shares):
        assert size_gaussian_share(sigma, shares) == pytest.approx(sigma / math.sqrt(shares), rel=1e-11)

    def test_a_hair_less_costs_more(self):
        share = size_gaussian_share(2.0, 4)
        release = release_of(DiscreteGaussianSum(sigma=share * (1 - 1e-6), shares=4))
        assert rho_of(release) > rho_of(release_of(DiscreteGaussian(sigma=2.0)))


class TestAggregatorAndLocal:
    @pytest.mark.parametrize("target", TARGETS, ids=str)
    def test_the_aggregator_adds_the_noise_once(self, target):
        placement = Aggregator()
        assert placement.mechanism_for_share(target) == placement.released_mechanism(target) == target
        assert placement.total_variance(target) == compute_variance(target)
        assert placement.who_could_subtract == "The coordinator, which knows it."

    @pytest.mark.parametrize("target", TARGETS, ids=str)
    def test_locally_each_adds_all_and_is_charged_for_its_own(self, target):
        placement = Local(parties=6)
        assert placement.mechanism_for_share(target) == placement.released_mechanism(target) == target
        assert placement.total_variance(target) == 6 * compute_variance(target)
        assert np.var(draw_shares(placement, target, 6)) == pytest.approx(placement.total_variance(target), rel=0.03)
        assert "6 parties" in placement.who_adds

    def test_local_noise_needs_a_party(self):
        with pytest.raises(ConfigError, match="at least 1"):
            Local(parties=0)


class TestJoint:
    @pytest.mark.parametrize("parties", [2, 3, 50])
    def test_there_is_one_noise_however_many_parties(self, parties):
        placement = Joint(parties=parties)
        assert placement.released_mechanism(LAPLACE) == LAPLACE
        assert placement.total_variance(LAPLACE) == compute_variance(LAPLACE)

    def test_no_holder_draws_anything_alone(self):
        with pytest.raises(ConfigError, match="drew alone"):
            Joint(parties=3).mechanism_for_share(LAPLACE)

    @pytest.mark.parametrize("target", [GAUSSIAN, DiscreteGaussianSum(sigma=1.0, shares=2)], ids=str)
    @pytest.mark.parametrize("ask", ["mechanism_for_share", "released_mechanism", "total_variance"])
    def test_only_laplace_noise_is_sampled_jointly(self, ask, target):
        with pytest.raises(ConfigError, match=f"must be DiscreteLaplace; got {type(target).__name__}"):
            getattr(Joint(parties=3), ask)(target)

    @pytest.mark.parametrize("parties", [1, 0, -1])
    def test_one_party_alone_is_refused(self, parties):
        with pytest.raises(ConfigError, match="at least 2"):
            Joint(parties=parties)

    def test_the_card_names_the_coalitions(self):
        placement = Joint(parties=5)
        assert "5 parties" in placement.who_adds
        assert "4 of the 5" in placement.who_could_subtract
        assert "dealt" in placement.who_could_subtract


ALL = [Aggregator(), Local(parties=4), Shared(parties=4, colluding_max=2), Joint(parties=4)]


def answers(ask):
    return [ask(placement) for placement in ALL]


class TestWhatFollowsForAProtocol:
    def test_who_draws(self):
        assert answers(lambda p: p.by_coordinator) == [True, False, False, False]
        assert answers(lambda p: p.each_party_draws) == [False, True, True, False]
        assert answers(lambda p: p.sampled_jointly) == [False, False, False, True]

    def test_how_many_must_be_in_a_sum(self):
        assert answers(lambda p: p.members_min) == [1, 1, 4, 1]
        assert Shared(parties=4, colluding_max=1, quorum=3).members_min == 3

    def test_another_number_of_parties(self):
        scaled = [Aggregator(), Local(parties=9), Shared(parties=9, colluding_max=2), Joint(parties=9)]
        assert answers(lambda p: p.scaled_to(9)) == scaled
        some = Shared(parties=6, colluding_max=1, quorum=5)
        assert some.scaled_to(9) == Shared(parties=9, colluding_max=1, quorum=8)

    @pytest.mark.parametrize("placement", ALL[1:], ids=str)
    def test_noise_placed_for_other_parties_is_refused(self, placement):
        placement.check_parties(4)
        with pytest.raises(ConfigError, match="among all 5 parties; got a placement for 4"):
            placement.check_parties(5)

    def test_the_aggregator_serves_any_number_of_parties(self):
        Aggregator().check_parties(5)

    @pytest.mark.parametrize("placement", ALL, ids=str)
    def test_noise_stays_within_its_bound(self, placement):
        assert placement.bound_noise(LAPLACE) == int(90 * placement.total_variance(LAPLACE) ** 0.5) + 1

    def test_only_joint_noise_keeps_back_some_delta(self):
        budget = Budget(epsilon=1.0, delta=1e-6)
        assert answers(lambda p: p.reserve_delta(budget, 10))[:3] == [budget] * 3
        left = Joint(parties=4).reserve_delta(budget, 10)
        assert (left.epsilon, left.delta) == (1.0, 1e-6 - 1e-6 / 1024)
        with pytest.raises(ConfigError, match=r"delta must be at least 3\.1e-20 with joint noise"):
            Joint(parties=4).reserve_delta(Budget(epsilon=1.0, delta=1e-21), 10)

    def test_which_coalition_breaks_it(self):
        star = answers(lambda p: p.breaks_if(masked_twice=False))
        double = answers(lambda p: p.breaks_if(masked_twice=True))
        for words, text in zip(("knows the noise", "No coalition", "unmask", "dealt"), star, strict=True):
            assert words in text
        assert [a == b for a, b in zip(star, double, strict=True)] == [True, True, False, True]
        assert "any one party" in star[2]
        assert "any one party" not in double[2]

    def test_who_may_collude_in_the_words_of_the_model_that_is_proved(self):
        double = answers(lambda p: p.withstands(masked_twice=True, middleman="relay"))
        assert double[0].startswith(
            "Semi-honest parties, however many collude, learn nothing of the others {limit}, as"
        )
        assert double[1] == "All others together, an active relay among them, learn nothing of a party {limit}."
        assert double[2] == (
            "An active relay together with up to 2 of the 4 parties learns nothing of the others {limit}."
        )
        assert double[3].startswith("Semi-honest parties, up to 3 of the 4 together, or the semi-honest relay alone")
        star = answers(lambda p: p.withstands(masked_twice=False))
        assert [("active" in text, "follows the protocol" in text) for text in star] == [
            (False, True),
            (True, False),
            (False, True),
            (False, False),
        ]
        table = LeakageTable(source="", rows=(), withstands=double[2], breaks_if="")
        assert table.claim(0.5) == (
            "An active relay together with up to 2 of the 4 parties learns nothing of the others beyond epsilon 0.5."
        )

    def test_only_the_numbers_enter_digests(self):
        assert answers(lambda p: msgspec.msgpack.decode(msgspec.msgpack.encode(p))) == [
            {},
            {"parties": 4},
            {"parties": 4, "colluding_max": 2, "quorum": None},
            {"parties": 4},
        ]


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteGaussian(sigma=0.4),
        DiscreteGaussian(sigma=1.999),
        DiscreteGaussian(sigma=2.0),
        DiscreteGaussianSum(sigma=0.7, shares=3),
        DiscreteLaplace(scale=0.2),
        DiscreteLaplace(scale=6.0),
        PolyaDifference(scale=3.0, shares=3),
    ],
    ids=str,
)
def test_variances_are_those_of_the_exact_probabilities(noise):
    x = np.arange(-300, 301)
    assert compute_variance(noise) == pytest.approx(pmf(noise, 300) @ (x * x), rel=1e-9)
