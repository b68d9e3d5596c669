"""Jobs of FastLloyd: what each variant takes, needs and refuses, with the line and the reason."""

import math

import numpy as np
import pytest

from cloister.errors import ConfigError
from cloister.job import make_options
from cloister.jobfile import parse_setup

JOB = """name = "j"
[clusters]
k = 3
[budget]
epsilon = 1.0
[protocol]
name = "fastlloyd"
{protocol}
{rest}
[columns]
x = {{ low = 0, high = 1 }}
y = {{ low = 0, high = 1 }}
[[parties]]
name = "a"
data = "a.csv"
[[parties]]
name = "b"
data = "b.csv"
[[parties]]
name = "c"
data = "c.csv"
"""
RECORDS = "[data]\nrecords = 300"


def parse_whole(protocol="", rest=""):
    return parse_setup(JOB.format(protocol=protocol, rest=rest), source_name="job.toml")


def parse(protocol="", rest=""):
    return parse_whole(protocol, rest).job


def test_the_shortest_job_is_sound_and_gaussian_with_a_delta_from_public_values():
    job = parse()
    assert (job.protocol.variant, job.protocol.noise_kind) == ("sound", "gaussian")
    assert job.budget.delta == 1e-6
    assert parse(rest="[data]\nrecords = 10000000").budget.delta == 1 / (1e7 * math.log(1e7))


def test_laplace_noise_is_pure():
    assert parse('noise = "laplace"').budget.delta == 0


@pytest.mark.parametrize("variant", ["published", "csulloyd", "sulloyd", "mna", "amn"])
def test_published_variants_need_the_number_of_records(variant):
    job = parse(f'variant = "{variant}"', RECORDS)
    assert job.protocol.noise_kind == "laplace"
    assert job.budget.delta == 0
    with pytest.raises(ConfigError, match=r"data\.records must be declared .* Declare it only where it is public"):
        parse(f'variant = "{variant}"')


@pytest.mark.parametrize(
    ("protocol", "rest", "words"),
    [
        ('variant = "fast"', "", "job.toml:8: protocol.variant must be one of amn, csulloyd, mna, published, sound"),
        ('assignment = "constrained-exclusive"', "", "job.toml:8: protocol.assignment must be left out with the sound"),
        ("alpha_min = 1.25", "", "protocol.alpha_min must be left out with the sound variant"),
        ("memberships_max = 2", "", "protocol.memberships_max must be left out with the sound"),
        ('postprocess = ["none", "none", "fold"]', "", "protocol.postprocess must be left out with the sound"),
        ("rho = 0.2", "", "protocol.rho must be left out with the sound variant"),
        (
            "size_min = 3",
            "",
            "protocol.size_min must come with the protocol naive, masked-sum-count or",
        ),
        ("norm_bound = 1.0", "", "protocol.norm_bound must come with the protocol mask-noise-average"),
        ("radius = 0.0", "", "job.toml:8: protocol.radius must be at least 1e-06"),
        ("tolerance = 0.1", "", "protocol.tolerance must come with the protocol naive"),
        ('variant = "mna"\nnoise = "gaussian"', RECORDS, "protocol.noise must be left out with variant"),
        ('variant = "mna"\nalpha_min = 0.5', RECORDS, "protocol.alpha_min must be at least 1"),
        ('variant = "sulloyd"\nalpha_min = 1.5', RECORDS, "protocol.alpha_min must come with an assignment that takes"),
        ('variant = "mna"\nradius = 0.5', RECORDS, "protocol.radius must come with an assignment that takes it"),
        ('variant = "mna"\nassignment = "constrained-e-exclusive"', RECORDS, "protocol.memberships_max must be given"),
        ('variant = "mna"\npostprocess = ["fold"]', RECORDS, "protocol.postprocess must be a list of 3"),
        ('variant = "mna"\npostprocess = ["fold", "none", "flip"]', RECORDS, "protocol.postprocess[2] must be one of"),
        ('variant = "amn"\npostprocess = ["fold", "none", "fold"]', RECORDS, 'must begin with "none", "none"'),
        ('variant = "amn"\nrho = 0.2', RECORDS, "protocol.rho must be left out with variant"),
        ('variant = "mna"\nrho = 2.0', RECORDS, "protocol.rho must be greater than 0 and at most 1"),
        ('variant = "mna"', "[data]\nrecords = 2", "data.records must be at least clusters.k"),
        (
            'variant = "mna"',
            RECORDS + '\n[ledger]\npath = "ledgers"',
            "ledger must be left out where the guarantee",
        ),
        ('topology = "tree"', "", "protocol.topology must be one of ring, star"),
        ('topology = "ring"\nplacement = "aggregator"', "", 'protocol.placement must be "local", "shared" or "joint"'),
        ('topology = "ring"\nplacement = "joint"', "", 'protocol.placement must come with noise = "laplace"'),
        ('placement = "joint"\nnoise = "laplace"', "", 'protocol.placement must come with topology = "ring"'),
        ('topology = "ring"\nplacement = "local"\nstart_by = "coordinator"', "", "protocol.start_by must be"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(protocol, rest, words):
    with pytest.raises(ConfigError) as caught:
        parse(protocol, rest)
    assert words in str(caught.value)


@pytest.mark.parametrize(("part", "colluding"), [(0.5, 1), (0.3, 2)])
def test_an_honest_part_says_how_many_may_collude(part, colluding):
    job = parse(f'placement = "shared"\nhonest_fraction = {part}')
    assert job.protocol.resolve_colluding_max(3) == colluding


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (
            'placement = "shared"\nhonest_fraction = 0.9',
            "protocol.honest_fraction must leave from 1 to 2 of 3 parties",
        ),
        ('placement = "shared"\nhonest_fraction = 1.5', "protocol.honest_fraction must be greater than 0 and less"),
        ('placement = "shared"\nhonest_fraction = 0.5\ncolluding_max = 1', "must be left out with honest_fraction"),
        (
            'placement = "local"\nhonest_fraction = 0.5',
            'protocol.honest_fraction must come with placement = "shared"; got "local"',
        ),
        ('placement = "aggregator"\ncolluding_max = 1', 'protocol.colluding_max must come with placement = "shared"'),
    ],
)
def test_an_honest_part_that_does_not_fit_is_refused(protocol, words):
    with pytest.raises(ConfigError) as caught:
        parse(protocol)
    assert words in str(caught.value)


@pytest.mark.parametrize("variant", ["published", "csulloyd", "sulloyd", "mna", "amn"])
def test_published_variants_keep_the_coordinators_noise_of_their_texts_but_in_a_ring(variant):
    options = parse(f'variant = "{variant}"', RECORDS).protocol
    assert (options.resolve_placement(3), options.resolve_masks(3)) == ("aggregator", "common")
    options = parse(f'variant = "{variant}"\ntopology = "ring"', RECORDS).protocol
    assert (options.resolve_placement(3), options.resolve_masks(3)) == ("shared", "double")


def test_an_honest_part_is_not_rounded_to_more_honest_parties_than_were_said():
    """0.28 * 25 is 7.000000000000001 in doubles: eight honest parties would be relied on."""
    options = make_options("fastlloyd", placement="shared", honest_fraction=0.28)
    assert options.resolve_colluding_max(25) == 18


@pytest.mark.parametrize("variant", ["published", "amn"])
def test_a_ledger_is_refused_wherever_the_guarantee_fails(variant):
    options = f'variant = "{variant}"\nassignment = "unconstrained"\npostprocess = ["none", "none", "none"]'
    with pytest.raises(ConfigError, match="ledger must be left out where the guarantee"):
        parse(options, RECORDS + '\n[ledger]\npath = "ledgers"')
    assert keeps_ledgers(parse_whole(options.replace('"none"]', '"fold"]'), RECORDS + '\n[ledger]\npath = "ledgers"'))


def keeps_ledgers(setup):
    return all(setup.own_side(party.name).ledger is not None for party in setup.job.parties)


def test_a_start_may_be_an_array():
    rows = np.array([[0.1, 0.2], [0.3, 0.4]])
    assert make_options("fastlloyd", initialisation="given", start=rows).start == ((0.1, 0.2), (0.3, 0.4))


def test_sulloyd_keeps_its_promise_so_it_may_have_a_ledger():
    assert keeps_ledgers(parse_whole('variant = "sulloyd"', RECORDS + '\n[ledger]\npath = "ledgers"'))


@pytest.mark.parametrize("key", ["variant = 'sound'", "rho = 0.2", "postprocess = ['none', 'none', 'fold']"])
def test_other_protocols_do_not_take_what_is_fastlloyds(key):
    text = JOB.format(protocol=key, rest="").replace("fastlloyd", "mask-noise-average")
    with pytest.raises(ConfigError, match=r"must come with the protocol .*fastlloyd"):
        parse_setup(text.replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6"))


def test_the_synopsis_does_not_take_joint_noise():
    text = JOB.format(protocol="placement = 'joint'", rest="").replace('"fastlloyd"', '"synopsis"')
    with pytest.raises(ConfigError, match=r"protocol\.placement must be one of aggregator, local, shared"):
        parse_setup(text)
