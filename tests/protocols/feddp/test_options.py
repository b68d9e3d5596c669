"""The options of FedDP-KMeans in a job: read from a file, and refused where they would be wrong or ignored."""

from __future__ import annotations

import pytest

from cloister.errors import ConfigError
from cloister.job import Budget, make_options
from cloister.jobfile import parse_job, parse_setup
from cloister.privacy.units import Unit
from cloister.protocols.feddp.options import ExtraSteps, FeddpKnobs, FeddpOptions, FeddpSection, Separation

TEXT = """
name = "with-server"
[protocol]
name = "feddp"
{protocol}
[clusters]
k = 3
[columns]
x0 = {{ low = -1, high = 1 }}
x1 = {{ low = -1, high = 1 }}
[data]
{data}
[budget]
epsilon = 1.0
{budget}
{feddp}
[[parties]]
name = "a"
data = "a.csv"
[[parties]]
name = "{other}"
data = "b.csv"
"""


def write(protocol="", data="", budget="", feddp="", other="b"):
    return TEXT.format(protocol=protocol, data=data, budget=budget, feddp=feddp, other=other)


def test_a_job_file_says_everything():
    job = parse_job(
        write(
            'variant = "published"',
            'server = "server.csv"\nrecords = 100',
            'unit = "client"',
            "[feddp]\nlloyd_steps = 2",
        )
    )
    assert (job.data.server, job.data.records) == ("server.csv", 100)
    assert job.protocol == FeddpOptions(variant="published", section=FeddpSection(lloyd_steps=2))
    assert job.protocol.variant_in_words == "as published"
    assert job.budget == Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)


def test_nothing_needs_to_be_said():
    job = parse_job(write())
    assert job.protocol == make_options("feddp") == FeddpOptions()
    assert (job.protocol.variant, job.protocol.variant_in_words) == ("tight", "")
    assert FeddpSection().knobs == FeddpKnobs()
    assert FeddpSection().extra_steps == ExtraSteps()


def test_every_key_of_the_section_reaches_the_knobs_and_steps():
    section = FeddpSection(restarts=3, moment_share=0.3, simplify=True, weight_min=0.1, sigma_max=0.2)
    assert section.knobs == FeddpKnobs(restarts=3, moment_share=0.3)
    separation = Separation(weight_min=0.1, sigma_max=0.2)
    assert section.extra_steps == ExtraSteps(simplify=True, separation=separation)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol": 'variant = "sound"'}, r"job:5: protocol\.variant must be one of published, tight; got \"sound\""),
        ({"protocol": "iterations = 3"}, r"protocol\.iterations must come with the protocol"),
        ({"protocol": 'placement = "joint"'}, r"protocol\.placement must be one of"),
        ({"protocol": 'variant = "published"', "budget": 'unit = "client"'}, r"data\.records must be declared with"),
        ({"protocol": 'variant = "published"', "feddp": "[feddp]\nsimplify = true"}, "no keys but lloyd_steps"),
        ({"protocol": 'variant = "published"', "feddp": "[feddp]\nrestarts = 500"}, "no keys but lloyd_steps"),
        ({"protocol": 'variant = "published"\nplacement = "local"'}, r"placement must be left out with variant"),
        ({"feddp": "[feddp]\nsample = 1"}, r"job:\d+: feddp\.sample must be an integer from 2 to 2; got 1"),
        ({"feddp": "[feddp]\nsample = 3"}, r"feddp\.sample must be an integer from 2 to 2; got 3"),
        (
            {"protocol": 'placement = "local"', "feddp": "[feddp]\nsample = 2"},
            r"feddp\.sample must be left out where parties add the noise",
        ),
        ({"feddp": "[feddp]\nlloyd_steps = 51"}, r"job:\d+: feddp\.lloyd_steps must be an integer from 0 to 50"),
        ({"feddp": "[feddp]\nweight_min = 0.1"}, r"job:\d+: feddp\.weight_min must be given together"),
        ({"feddp": "[feddp]\nsigma_max = 0"}, r"feddp\.sigma_max must be greater than 0 and at most 2; got 0"),
        ({"feddp": "[feddp]\nmoment_share = 2.0"}, r"feddp\.moment_share must be from 0\.0001 to 0\.9; got 2\.0"),
        ({"feddp": "[feddp]\nsimplify = 1"}, r"feddp\.simplify must be true or false; got 1"),
        ({"feddp": "[feddp]\nsample = 'two'"}, r"feddp\.sample must be an integer"),
        ({"feddp": "[feddp]\nshare = 1"}, r"feddp\.share must be a known key"),
        ({"budget": "delta = 0"}, r"budget\.delta must be greater than 0"),
        ({"other": "server"}, r"parties\[1\]\.name must not be server with the protocol feddp"),
    ],
)
def test_refused_jobs(given, message):
    with pytest.raises(ConfigError, match=message):
        parse_job(write(**given))


def test_other_protocols_take_no_server_data():
    for given in ({"data": 'server = "q.csv"'}, {"feddp": "[feddp]\nsample = 2"}):
        text = write(**given).replace('name = "feddp"', 'name = "synopsis"')
        with pytest.raises(ConfigError, match="must come with the protocol feddp"):
            parse_job(text)


def test_a_partys_own_table_is_no_server_data():
    with pytest.raises(ConfigError, match=r"job:\d+: data\.server must not be a party's own table; got \"b\.csv\""):
        parse_setup(write(data='server = "b.csv"'))
