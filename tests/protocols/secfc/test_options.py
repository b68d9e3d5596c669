"""Jobs of SecFC: codes that fit the parties, and what does not belong."""

import pytest

from cloister.errors import ConfigError
from cloister.jobfile.reader import parse_setup
from cloister.protocols.secfc.options import SecfcOptions

JOB = """name = "j"
[clusters]
k = 3
[protocol]
name = "secfc"
{protocol}
{rest}
[columns]
x = {{ low = 0, high = 1 }}
y = {{ low = 0, high = 1 }}
"""


def parse(protocol="", rest="", parties=5):
    sections = "".join(f'[[parties]]\nname = "p{i}"\ndata = "p{i}.csv"\n' for i in range(parties))
    return parse_setup(JOB.format(protocol=protocol, rest=rest) + sections, source_name="job.toml")


@pytest.mark.parametrize("parties", range(3, 40))
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_the_default_privacy_fits_whenever_something_does(parties, segments):
    privacy = SecfcOptions(segments=segments).resolve_privacy(parties)
    fits = 2 * privacy + 2 * segments - 1 <= parties
    assert fits or 2 + 2 * segments - 1 > parties
    assert privacy >= 1


def test_a_job_without_options_takes_a_third():
    assert parse().job.protocol.resolve_privacy(5) == 1
    assert parse(parties=10).job.protocol.resolve_privacy(10) == 4
    assert parse("segments = 2").job.protocol.resolve_privacy(5) == 1
    assert parse("privacy = 2").job.protocol.resolve_privacy(5) == 2


@pytest.mark.parametrize(
    ("protocol", "rest", "parties", "words"),
    [
        ("", "", 2, "parties must be at least 3 with the protocol secfc"),
        ("privacy = 3", "", 5, "job.toml:6: protocol.privacy must be so small that 2 privacy + 2 segments - 1"),
        ("privacy = 3", "", 5, "privacy is at most 2"),
        ("segments = 2\nprivacy = 1", "", 4, "there must be at least 5 parties"),
        ("segments = 3", "", 9, "protocol.segments must be an integer from 1 to 2"),
        ("ring = 32", "", 5, "The protocol secfc does not take it"),
        ("fractional_bits = 8", "", 5, "The protocol secfc does not take it"),
        ("coordinate_bits = 40", "", 5, "protocol.coordinate_bits must be an integer from 2 to 31"),
        ("separate_after = 100", "", 5, "protocol.separate_after must be an integer from 0 to 99"),
        ('placement = "local"', "", 5, "The protocol secfc does not take it"),
        ('initialisation = "random"', "", 5, "The protocol secfc does not take it"),
        ("", "[budget]\nepsilon = 1.0\ndelta = 0", 5, "budget.delta must be greater than 0 with this noise of secfc"),
        ("", '[budget]\nepsilon = 1.0\n[ledger]\npath = "l"', 5, "ledger must be left out with the protocol secfc"),
        ("", '[budget]\nepsilon = 1.0\nunit = "client"', 5, "budget.unit must be"),
        ("", '[data]\nid = "x"', 5, "data.id must not be a column that is clustered"),
        ("", "[data]\nid = 7", 5, "data.id must be printable text"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(protocol, rest, parties, words):
    with pytest.raises(ConfigError) as caught:
        parse(protocol, rest, parties)
    assert words in str(caught.value)


@pytest.mark.parametrize(("key", "rest"), [("privacy = 1", ""), ("segments = 1", ""), ("", '[data]\nid = "i"')])
def test_other_protocols_do_not_take_what_is_secfcs(key, rest):
    text = JOB.format(protocol=key, rest=rest).replace('"secfc"', '"masked-sum-count"')
    sections = "".join(f'[[parties]]\nname = "p{i}"\ndata = "p{i}.csv"\n' for i in range(3))
    with pytest.raises(ConfigError, match="must come with the protocol secfc"):
        parse_setup(text + sections)


def test_files_of_an_earlier_alignment_are_given_by_all_and_with_the_id_column():
    def parse_files(rest, parties):
        text = JOB.format(protocol="", rest=rest)
        for i in range(3):
            text += f'[[parties]]\nname = "p{i}"\ndata = "p{i}.csv"\n'
            text += f'alignment = "p{i}.json"\n' if i in parties else ""
        return parse_setup(text, folder="here")

    setup = parse_files('[data]\nid = "i"', (0, 1, 2))
    assert str(setup.own_side("p1").alignment) == "here/p1.json"
    with pytest.raises(ConfigError, match=r"parties\[1\]\.alignment must be given for every party or for none"):
        parse_files('[data]\nid = "i"', (0, 2))
    with pytest.raises(ConfigError, match=r"data\.id must be given with alignments"):
        parse_files("", (0, 1, 2))
