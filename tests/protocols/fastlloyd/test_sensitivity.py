"""What one record changes.

The default stays within what it declares, and so do the published steps without constraints. Those with constraints do
not; a chain of clusters shows by how much.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cloister.errors import ConfigError, InfeasibleError
from cloister.kmeans import ConstrainedExclusive, Unconstrained
from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget, Sensitivity
from cloister.protocols.fastlloyd.attack import build_chain
from cloister.protocols.fastlloyd.offsets import Offsets, measure_contribution
from cloister.protocols.fastlloyd.published import PublishedSettings, plan_published
from cloister.protocols.fastlloyd.published_rules import PostProcessing
from cloister.records import ArrayRecords

GRID = FixedPoint()
# The bounds, the middle, its neighbours on the grid, and anything.
COORDINATES = st.sampled_from([-GRID.scale, GRID.scale, 0, 1, -1]) | st.integers(-GRID.scale, GRID.scale)


FEW, MANY = st.integers(1, 6), st.sampled_from([16, 60])


@st.composite
def neighbours(draw, dimensions=FEW, centres_inside=False):
    """Records, one more, and centres: duplicates, centres on records, and centres at equal distance from one."""
    d, k, n = draw(dimensions), draw(st.integers(1, 4)), draw(st.integers(0, 5))
    rows = draw(arrays(np.int64, (n + 1, d), elements=COORDINATES)) / GRID.scale
    centres = draw(arrays(np.int64, (k, d), elements=COORDINATES)) / GRID.scale
    record = rows[0]
    place = draw(st.sampled_from(["anywhere", "on the record", "twice", "opposite"]))
    if place == "on the record":
        centres[0] = record
    elif place == "twice":
        centres[-1] = centres[0]
    elif place == "opposite" and not centres_inside:
        centres[-1] = 2 * record - centres[0]  # |x - c| is the same for both
    return rows[1:], record, centres


def change(rule, rows, record, centres, *, round_=1, assignment=None, last=None):
    """What the record adds to one party's integers."""
    assignment = assignment or Unconstrained()
    without, present = (
        rule.contribute(ArrayRecords(part.reshape(-1, len(record))), centres, round_, assignment, last)
        for part in (rows, np.vstack([rows, record]))
    )
    return present - without


def is_within(difference, sensitivity):
    """Exactly, in integers."""
    entries = [int(entry) for entry in difference.ravel()]
    return sum(map(abs, entries)) <= sensitivity.l1 and sum(x * x for x in entries) <= sensitivity.l2_squared


# --- the default ----------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(
    neighbours(FEW | MANY),
    st.sampled_from([16, 100, 2**10, 2**16]) | st.integers(8, 2**20),
    st.floats(1e-6, 5.0),
    st.integers(1, 2**16),
)
def test_one_record_adds_its_own_integers_to_one_cluster_within_the_declared_norms(case, scale, radius, weight):
    rows, record, centres = case
    rule = Offsets(dimensions=len(record), radii=(radius,), scale=scale, count_weight=weight, deviation=1.0)
    difference = change(rule, rows, record, centres)
    assert is_within(difference, rule.sensitivity_of(1))
    assert np.count_nonzero(difference.any(axis=1)) == 1  # the weight is there even where the offset is 0
    alone = rule.contribute(ArrayRecords(record[None, :]), centres, 1, Unconstrained())
    assert np.array_equal(difference, alone)  # whatever the others are


@settings(max_examples=200, deadline=None)
@given(neighbours(), st.floats(1e-6, 5.0), st.floats(0.0, 1.0), st.floats(1e-3, 1e9), st.integers(0, 2**32))
def test_radii_that_follow_released_counts_change_no_norm(case, radius, blur, deviation, seed):
    """Whatever was released before: even counts that no records could give."""
    rows, record, centres = case
    d, k = len(record), len(centres)
    rule = Offsets(dimensions=d, radii=(1.0, radius), scale=2**12, count_weight=2**11, deviation=deviation, blur=blur)
    last = np.random.default_rng(seed).integers(-(2**40), 2**40, (k, d + 1)) >> np.arange(k)[:, None] * 9
    difference = change(rule, rows, record, centres, round_=2, last=last)
    assert is_within(difference, rule.sensitivity_of(2))
    assert np.count_nonzero(difference.any(axis=1)) == 1
    assert (rule.find_radii(k, 2, last) >= radius).all()


@pytest.mark.parametrize("dimensions", [1, 2, 10, 100, 784])
def test_the_declared_norms_are_nearly_reached(dimensions):
    rule = Offsets(dimensions=dimensions, radii=(0.5,), scale=2**16, count_weight=2**15, deviation=1.0)
    corner, middle = np.ones(dimensions), np.zeros((1, dimensions))
    difference = change(rule, middle, corner, middle).astype(float)
    declared = rule.sensitivity_of(1)
    assert np.abs(difference).sum() >= 0.99 * declared.l1
    assert np.square(difference).sum() >= 0.99 * declared.l2_squared


def unclipped(rows, centre, radius, scale):
    return np.rint((rows - centre) * (scale / radius))


def rounded_without_room(rows, centre, radius, scale):
    """Clipped to the scale itself: rounding then passes it."""
    offsets = rows - centre
    lengths = np.maximum(np.linalg.norm(offsets, axis=1, keepdims=True), radius)
    return np.rint(offsets * (scale / lengths))


def excluded(rows, centre, radius, scale):
    """As FastLloyd's second version does: who is further away than the radius is left out."""
    return unclipped(rows, centre, radius, scale - np.sqrt(rows.shape[1]) / 2) * (
        np.linalg.norm(rows - centre, axis=1, keepdims=True) <= radius
    )


def search(step, *, declared=measure_contribution, tries=2000):
    """Whether a random record breaks the declared norms, for some d and scale."""
    rng = np.random.default_rng(0)
    for _ in range(tries):
        d, scale, weight = int(rng.integers(1, 20)), int(rng.integers(8, 64)), int(rng.integers(1, 64))
        record, centre = rng.uniform(-1, 1, (1, d)), rng.uniform(-1, 1, d)
        part = np.append(step(record, centre, rng.uniform(0.1, 2), scale), weight).astype(np.int64)
        if not is_within(part, declared(d, scale, weight)):
            return True
    return False


def forget_count(dimensions, scale, weight):
    return Sensitivity(l1=measure_contribution(dimensions, scale, 0).l1, l2_squared=scale**2)


def test_mutants_of_the_step_are_caught():
    assert search(unclipped)
    assert search(rounded_without_room)
    assert search(excluded, declared=forget_count)
    assert not search(excluded)  # leaving records out instead of shortening them is sound as well


# --- published, without constraints: the claims hold ----------------------------------------------------------------


def plan(preset, *, clusters, dimensions, parties=2, records=100, **options):
    given_options = PublishedSettings(
        preset=preset, records=records, clusters=clusters, dimensions=dimensions, parties=parties, **options
    )
    return given_options, plan_published(given_options, Budget(epsilon=1.0, delta=0.0))


@settings(max_examples=200, deadline=None)
@given(neighbours(), st.sampled_from(["sulloyd", "csulloyd", "mna"]))
def test_published_sums_hold_where_each_record_joins_its_nearest_centre(case, preset):
    rows, record, centres = case
    options, published = plan(preset, clusters=len(centres), dimensions=len(record), assignment="unconstrained")
    assert options.flaw == ""
    difference = change(published.rule, rows, record, centres)
    assert is_within(difference, published.rule.sensitivity_of(1))
    assert np.count_nonzero(difference.any(axis=1)) == 1


@settings(max_examples=200, deadline=None)
@given(neighbours(centres_inside=True), st.sampled_from(["published", "amn"]), st.integers(2, 9))
def test_published_centroids_hold_without_constraints_where_centres_stay_in_the_domain(case, preset, parties):
    """The first record of an empty local cluster moves it by 2B / M at most: B, if there are two parties."""
    rows, record, centres = case
    options, published = plan(
        preset, clusters=len(centres), dimensions=len(record), assignment="unconstrained", parties=parties
    )
    assert options.flaw == ""
    difference = change(published.rule, rows, record, centres)
    assert is_within(difference, published.rule.sensitivity_of(1))
    assert np.count_nonzero(difference.any(axis=1)) <= 1


def test_published_centroids_break_where_centres_may_leave_the_domain():
    """Noise puts a centre at 4; a party without records there stands for it, and its first record pulls it back."""
    post = PostProcessing(centres="none")
    options, published = plan("amn", clusters=1, dimensions=1, assignment="unconstrained", post=post)
    assert options.flaw
    difference = change(published.rule, np.zeros((0, 1)), np.array([-1.0]), np.array([[4.0]]))
    assert np.abs(difference).sum() > 2.4 * published.rule.sensitivity_of(1).l1


def test_published_centroids_break_with_a_single_party():
    options, published = plan("amn", clusters=1, dimensions=1, assignment="unconstrained", parties=1)
    assert options.flaw
    difference = change(published.rule, np.zeros((0, 1)), np.array([-1.0]), np.array([[1.0]]))
    assert np.abs(difference).sum() > 1.9 * published.rule.sensitivity_of(1).l1


# --- published, with constraints: the claims fail -------------------------------------------------------------------

SIZE = 50
ALONG = 2.0**-6  # what the chain loses of 2B


def exceed(preset, *, clusters, dimensions, parties=2, **options):
    """What one record more changes on a chain, over the claimed L1 sensitivity; and in how many clusters."""
    alpha = 1.5 if preset in ("mna", "amn") else 1.25
    given_options, published = plan(
        preset,
        clusters=clusters,
        dimensions=dimensions,
        parties=parties,
        records=math.floor(alpha * clusters * parties * SIZE),
        **options,
    )
    assert given_options.flaw
    reach = given_options.make_radii(1)[0] if given_options.kind == "distance-constrained" else math.inf
    chain = build_chain(clusters, dimensions, size=SIZE, reach=reach)
    rows, record = GRID.quantise(chain.rows), GRID.quantise(chain.record)
    difference = change(published.rule, rows, record, chain.start, assignment=given_options.make_assignment())
    ratio = Fraction(int(np.abs(difference).sum()), published.rule.sensitivity_of(1).l1)
    return float(ratio), np.count_nonzero(difference.any(axis=1))


@pytest.mark.parametrize("clusters", range(2, 9))
@pytest.mark.parametrize(("preset", "dimensions", "parties"), [("published", 2, 2), ("published", 5, 4), ("amn", 2, 3)])
def test_a_chain_of_k_clusters_moves_k_centroids_by_twice_the_claim_each(preset, dimensions, parties, clusters):
    """2 (1 - along) (k - 1 / (size + 1)) by the proof; a few steps of the grid are lost to rounding."""
    ratio, touched = exceed(preset, clusters=clusters, dimensions=dimensions, parties=parties)
    assert touched == clusters
    assert ratio >= 1.9 * clusters
    assert ratio <= 2 * clusters
    assert ratio == pytest.approx(2 * (1 - ALONG) * (clusters - 1 / (SIZE + 1)), rel=0.02)


@pytest.mark.parametrize("clusters", range(2, 9))
@pytest.mark.parametrize("preset", ["csulloyd", "mna"])
def test_a_chain_of_k_clusters_moves_k_sums(preset, clusters):
    """k - 1 clusters gain one record and lose another, the last gains one: 2 d (k - 1) + d + w instead of d + w."""
    d = 2
    weight = (4 * d * 0.225**2) ** (1 / 3)
    ratio, touched = exceed(preset, clusters=clusters, dimensions=d)
    assert touched == clusters
    expected = ((1 - ALONG) * (2 * d * (clusters - 1) + d) + weight) / (d + weight)
    assert ratio == pytest.approx(expected, rel=0.01)
    assert ratio > 1.2 * clusters


@pytest.mark.parametrize("clusters", range(2, 9))
def test_the_distance_constraint_does_not_stop_the_chain(clusters):
    """Its claim, 2 eta_d / c_min, assumes that nobody else is re-assigned. Those who move stay within eta_d."""
    ratio, touched = exceed("published", clusters=clusters, dimensions=2, assignment="distance-constrained")
    assert touched == clusters
    assert ratio > 0.95 * clusters
    small, _ = exceed("published", clusters=clusters, dimensions=2, assignment="distance-constrained", radius=0.3)
    assert small > 0.65 * clusters


@pytest.mark.parametrize("clusters", range(2, 9))
def test_several_memberships_do_not_stop_the_chain(clusters):
    """E = 2, claimed 2B / c_min. All clusters are full but for one place in the last; each record is in one."""
    d, parties, e = 2, 3, 2
    options, published = plan(
        "published",
        clusters=clusters,
        dimensions=d,
        parties=parties,
        records=clusters * parties * SIZE,
        assignment="constrained-e-exclusive",
        memberships_max=e,
        alpha_min=1.03,
        alpha_max=1.0,
    )
    assignment = options.make_assignment()
    assert (assignment.size_min, assignment.size_max) == (SIZE - 1, SIZE)
    chain = build_chain(clusters, d, size=SIZE)
    step = chain.start[1] - chain.start[0]
    rows = chain.rows.copy()
    rows[SIZE - 1 : -1 : SIZE] -= step / 2  # those that move would rather stay: they are pushed out
    rows, record = GRID.quantise(rows[:-1]), GRID.quantise(chain.record)
    difference = change(published.rule, rows, record, chain.start, assignment=assignment)
    assert np.count_nonzero(difference.any(axis=1)) == clusters
    assert np.abs(difference).sum() > 0.93 * 2 / e * clusters * published.rule.sensitivity_of(1).l1


def test_non_exclusive_clusters_all_swap_a_record():
    """Each takes its c_min nearest: one record more takes the furthest one's place in all k, 2B away. Claimed: k B."""
    clusters, d = 5, 2
    options, published = plan(
        "published", clusters=clusters, dimensions=d, records=1000, assignment="constrained-non-exclusive"
    )
    size = options.make_assignment().size_min
    rows = np.vstack([np.zeros((size - 1, d)), np.full((1, d), 1.0)])
    record = np.full(d, -1 + 2.0**-10)
    difference = change(published.rule, rows, record, np.zeros((clusters, d)), assignment=options.make_assignment())
    assert np.count_nonzero(difference.any(axis=1)) == clusters
    assert np.abs(difference).sum() > 1.9 * published.rule.sensitivity_of(1).l1


def test_one_mean_alone_moves_by_nearly_twice_the_claim():
    """C records at -B and one more at B: the mean moves by 2B / (C + 1), claimed is B / C."""
    options, published = plan("published", clusters=1, dimensions=1, records=math.floor(1.25 * 2 * SIZE))
    rows, record = np.full((SIZE, 1), -1.0), np.array([1.0])
    difference = change(published.rule, rows, record, np.zeros((1, 1)), assignment=options.make_assignment())
    claimed = published.rule.sensitivity_of(1).l1
    assert np.abs(difference).sum() == pytest.approx(2 * SIZE / (SIZE + 1) * claimed, rel=0.01)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32), st.booleans())
def test_with_one_column_all_moves_together_are_at_most_twice_the_claim(clusters, seed, at_minimum):
    """Optimal clusters are intervals, and one record more moves all borders one way: the moves add up to 2B."""
    rng = np.random.default_rng(seed)
    size = 6
    rows = GRID.quantise(rng.choice([-1.0, 1.0, *rng.uniform(-1, 1, 8)], (clusters * size + (not at_minimum) * 2, 1)))
    record, centres = GRID.quantise(rng.uniform(-1, 1, 1)), np.sort(rng.uniform(-1, 1, (clusters, 1)), axis=0)
    _, published = plan("published", clusters=clusters, dimensions=1, records=int(1.25 * clusters * 2 * size))
    assignment = ConstrainedExclusive(size_min=size, size_max=size + 3)
    difference = change(published.rule, rows, record, centres, assignment=assignment)
    assert np.abs(difference).sum() <= 2 * published.rule.sensitivity_of(1).l1


def test_a_record_less_can_make_the_constraints_impossible():
    """With k c_min records the party answers; with one less it cannot: that tells neighbours apart with certainty."""
    options, published = plan("published", clusters=3, dimensions=2, records=math.floor(1.25 * 3 * 2 * SIZE))
    chain = build_chain(3, 2, size=SIZE)
    assignment = options.make_assignment()
    assert published.rule.contribute(ArrayRecords(chain.rows), chain.start, 1, assignment).shape == (3, 2)
    with pytest.raises(InfeasibleError):
        published.rule.contribute(ArrayRecords(chain.rows[:-1]), chain.start, 1, assignment)


@pytest.mark.parametrize("rho", [0.225, 1e-9])
def test_counts_are_summed_whatever_part_of_the_budget_they_get(rho):
    """A weight below half a step of the grid would be none."""
    settings = PublishedSettings(preset="sulloyd", records=100, clusters=2, dimensions=2, parties=2, rho=rho)
    assert plan_published(settings, Budget(epsilon=1.0, delta=0.0)).rule.count_weight >= 1


def test_clusters_of_at_least_no_record_are_refused():
    """A centroid is divided by the least size: it is never 0, not even where there are no records."""
    with pytest.raises(ConfigError, match="must not be empty"):
        PublishedSettings(preset="csulloyd", records=0, clusters=2, dimensions=2, parties=2)
