"""The page about job files, and the file that ``cloister init`` writes: complete, and as the reader takes them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from cloister.job import Budget
from cloister.job.noise_options import PADS_MOST, default_placement
from cloister.job.options import known_options
from cloister.jobfile import parse_job, parse_setup
from cloister.jobfile.sections import SECTION_KEYS, list_own_sections
from cloister.jobfile.template import TemplateParty, render_template
from cloister.protocols.synopsis.options import SynopsisOptions

PAGE = (Path(__file__).parents[2] / "docs" / "job-file.md").read_text()


def test_a_new_job_file_is_private_and_its_comments_can_be_uncommented() -> None:
    text = render_template(name="new", k=3, columns=["age"], parties=[TemplateParty(name="n", data="n.csv")])
    text = text.replace("= {}", "= { low = 0, high = 1 }")
    job = parse_job(text)
    assert (job.protocol.name, job.budget) == ("synopsis", Budget(epsilon=1.0, delta=1e-6))
    # But for those that exclude others, or need three parties.
    settings = re.compile(r"^# (?!secure|min_parties)(?=\[\w+\]|\w+ = )", re.MULTILINE)
    everything = parse_setup(settings.sub("", text))
    assert everything.own_side("n").ledger == Path("ledgers/n.ledger")
    assert (everything.job.data.records, everything.seed) == (100_000, 7)
    assert everything.job.protocol == SynopsisOptions(placement="shared", colluding_max=1)


def test_the_page_and_a_new_job_file_say_who_adds_the_noise_by_default() -> None:
    said = {2: "local", 3: "shared", PADS_MOST: "shared", PADS_MOST + 1: "aggregator"}
    assert {parties: default_placement(parties) for parties in said} == said
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `placement` |")]
    default = row.split(" | ")[-1]
    assert default.startswith(f"`shared` for 3 to {PADS_MOST} parties")
    assert "`local` for two, `aggregator` for more" in default
    text = render_template(name="new", k=3, columns=["age"], parties=[TemplateParty(name="n", data="n.csv")])
    comment = " ".join(text.replace("#", " ").split())
    assert (
        f'placement = "shared" who adds the noise: every party a share (default for 3 to {PADS_MOST} parties)'
        in comment
    )
    assert '"local", every party all of it (default for two); or "aggregator", the coordinator, which must' in comment


def test_the_documented_jobs_are_complete() -> None:
    jobs = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert [parse_job(text).protocol.name for text in jobs] == ["synopsis", "vertical"]


def test_every_key_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", PAGE))
    for section, keys in SECTION_KEYS.items():
        assert set(keys) <= documented, section
    for section, kind in list_own_sections().items():
        assert {field.name for field in fields(kind)} <= documented, section
    for protocol, options in known_options().items():
        assert set(options.__struct_fields__) - {options.facts.section} <= documented, protocol
