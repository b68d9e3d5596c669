"""Options of multiparty Lloyd: the start, the assignment and its limits, the noise."""

from __future__ import annotations

import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, Job, JobParty, make_options
from cloister.kmeans import assignment as assignments


def make_job(name, *, parties=2, **options):
    return Job(
        name="test",
        k=2,
        columns=(Column(name="x", low=0, high=10), Column(name="y", low=14, high=60.5)),
        parties=tuple(JobParty(name=f"p{number}") for number in range(parties)),
        protocol=make_options(name, **options),
        budget=Budget(epsilon=1.0, delta=1e-6) if name == "mask-noise-average" else None,
    )


START = ((1, 15), (2, 60.5))


@pytest.mark.parametrize(
    ("name", "options", "starter"),
    [
        ("naive", {}, "coordinator"),
        ("masked-centroid", {}, "parties"),
        ("masked-centroid", {"start_by": "coordinator"}, "coordinator"),
        ("mask-noise-average", {}, "parties"),
        ("naive", {"initialisation": "given", "start": START}, "parties"),
    ],
)
def test_who_draws_the_start_follows_from_the_protocol(name, options, starter):
    assert make_job(name, **options).protocol.starter == starter


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"initialisation": "given"}, "protocol.start must be a list of 2 rows of 2 numbers"),
        ({"start": START}, 'protocol.start must come with initialisation = "given"'),
        ({"initialisation": "given", "start": START[:1]}, "protocol.start must have clusters.k = 2 rows; got 1"),
        ({"initialisation": "given", "start": ((1, 15), (2,))}, "protocol.start[1] must be a list of 2 numbers"),
        ({"initialisation": "given", "start": ((1, 15), (2, 61))}, "within the bounds of column y, 14 to 60.5"),
        ({"initialisation": "given", "start": START, "start_by": "parties"}, "protocol.start_by must be left out"),
        ({"start_by": "server"}, "protocol.start_by must be one of coordinator, parties"),
        ({"assignment": "constrained"}, "protocol.assignment must be one of constrained-e-exclusive"),
        ({"assignment": "constrained-exclusive", "size_min": 2}, "must come with one of size_max and alpha_max"),
        (
            {"assignment": "constrained-exclusive", "size_min": 2, "alpha_min": 2, "size_max": 3},
            "must come with one of size_min and alpha_min; got both",
        ),
        ({"size_min": 2}, 'assignment = "unconstrained" takes no limits'),
        ({"assignment": "constrained-non-exclusive", "size_min": 2, "radius": 1}, "takes size_min."),
        ({"assignment": "constrained-exclusive", "size_min": 9, "size_max": 2}, "size_min must be at most size_max"),
        (
            {"assignment": "constrained-e-exclusive", "alpha_min": 2, "alpha_max": 2, "memberships_max": 3},
            "protocol.memberships_max must be an integer from 1 to 2; got 3",
        ),
        ({"assignment": "constrained-exclusive", "alpha_min": 0.5, "alpha_max": 2}, "alpha_min must be at least 1"),
        ({"tolerance": 0.1}, "protocol.tolerance must come with the protocol naive; got masked-sum-count"),
        ({"topology": "ring"}, "protocol.topology must come with the protocol fastlloyd or mask-noise-average"),
        ({"noise": "laplace"}, "The protocol masked-sum-count does not take it"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(options, words):
    with pytest.raises(ConfigError) as caught:
        make_job("masked-sum-count", **options)
    assert words in str(caught.value)


@pytest.mark.parametrize("start_by", ["parties", "server"])
def test_naive_parties_share_no_seed_to_draw_a_start_from(start_by):
    with pytest.raises(ConfigError, match="start_by must be one of coordinator"):
        make_job("naive", start_by=start_by)
    assert make_job("naive", start_by="coordinator").protocol.starter == "coordinator"


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, assignments.Unconstrained()),
        (
            {"assignment": "distance-constrained", "alpha_min": 1.5, "size_max": 9, "radius": 0.5},
            assignments.DistanceConstrained(alpha_min=1.5, size_max=9, radius=0.5),
        ),
    ],
)
def test_the_assignment_is_the_one_that_was_named(options, made):
    assert make_job("naive", **options).protocol.make_assignment() == made


def test_noise_options_say_what_is_promised():
    assert make_job("mask-noise-average").protocol.needs_delta
    laplace = make_job("mask-noise-average", noise="laplace", topology="ring", placement="local").protocol
    assert not laplace.needs_delta
    assert laplace.variant_in_words == "in a ring"
    assert make_job("mask-noise-average", noise="laplace", topology="ring", placement="joint").protocol.needs_delta


@pytest.mark.parametrize(
    ("parties", "options", "colluding", "members"),
    [
        (2, {"placement": "shared"}, 1, 2),
        (3, {"placement": "shared"}, 1, 3),
        (5, {"placement": "shared"}, 1, 5),
        (6, {"placement": "shared"}, 1, 5),
        (10, {"placement": "shared"}, 3, 9),
        (10, {"placement": "shared", "colluding_max": 9}, 9, 10),
        (10, {"placement": "shared", "min_parties": 7}, 3, 7),
        (10, {"placement": "local", "topology": "ring"}, 0, 6),
        (10, {"placement": "local"}, 0, 3),
        (10, {"placement": "aggregator"}, 0, 3),
        (2, {}, 0, 2),
        (3, {}, 1, 3),
        (10, {}, 3, 9),
        (300, {}, 99, 299),
        (301, {}, 0, 3),
        (301, {"topology": "ring"}, 100, 300),
    ],
)
def test_a_quorum_is_all_of_a_few_parties_and_all_but_one_of_more(parties, options, colluding, members):
    protocol = make_job("mask-noise-average", parties=parties, **options).protocol
    assert (protocol.resolve_colluding_max(parties), protocol.resolve_min_parties(parties)) == (colluding, members)
    if protocol.resolve_placement(parties) == "shared":
        placement = protocol.make_placement(parties)
        assert placement.honest_min == members - colluding
        assert 2 * placement.members_min > parties + colluding


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mask-noise-average", {"placement": "shared", "min_parties": 3}, "min_parties must be at least 4"),
        ("mask-noise-average", {"placement": "shared", "colluding_max": 4, "min_parties": 5}, "at least 6"),
        ("mask-noise-average", {"min_parties": 3}, "min_parties must be at least 4"),
        (
            "mask-noise-average",
            {"placement": "aggregator", "masks": "double", "min_parties": 3},
            "min_parties must be at least 4",
        ),
        ("masked-sum-count", {"masks": "double", "min_parties": 3}, "min_parties must be at least 4"),
        ("masked-sum-count", {"colluding_max": 1}, 'colluding_max must come with masks = "double"'),
        (
            "mask-noise-average",
            {"topology": "ring", "placement": "local", "masks": "common"},
            'masks must be left out with topology = "ring"',
        ),
    ],
)
def test_sums_of_which_two_could_be_opened_are_refused(name, options, words):
    with pytest.raises(ConfigError) as caught:
        make_job(name, parties=6, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "masks"),
    [
        ("mask-noise-average", {"placement": "shared"}, "double"),
        ("mask-noise-average", {"placement": "shared", "masks": "common"}, "common"),
        ("mask-noise-average", {"placement": "local"}, "common"),
        ("mask-noise-average", {"placement": "local", "topology": "ring"}, "double"),
        ("mask-noise-average", {"placement": "aggregator"}, "common"),
        ("mask-noise-average", {"placement": "aggregator", "masks": "double"}, "double"),
        ("mask-noise-average", {}, "double"),
    ],
)
def test_shared_noise_is_masked_twice_unless_a_job_says_otherwise(name, options, masks):
    assert make_job(name, parties=6, **options).protocol.resolve_masks(6) == masks


@pytest.mark.parametrize(
    ("parties", "star", "ring"),
    [
        (2, "local", "local"),
        (3, "shared", "shared"),
        (300, "shared", "shared"),
        (301, "aggregator", "shared"),
    ],
)
def test_the_parties_add_the_noise_by_default_and_in_a_ring_however_many_they_are(parties, star, ring):
    for topology, placement in (("star", star), ("ring", ring)):
        options = make_job("mask-noise-average", parties=parties, topology=topology).protocol
        assert options.resolve_placement(parties) == placement
        assert options.make_placement(parties).by_coordinator is (placement == "aggregator")
