"""What must hold for ``protocol = "feddp"``: server data, its variants, and what it does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.errors import ConfigError
from cloister.job.problems import KeyedConfigError, check_choice, check_integer, check_text, refuse, show_value
from cloister.privacy.units import Unit
from cloister.protocols.feddp.settings import FEDDP, FeddpKnobs

if TYPE_CHECKING:
    from cloister.job.feddp_section import FeddpSection
    from cloister.job.model import Job

SERVER = "server"
"""What the server's data are called among a job's tables."""
FEDDP_VARIANTS = ("tight", "published")


def refuse_feddp_options(job: Job) -> None:
    """Refuse, for another protocol, what only FedDP-KMeans takes."""
    what_to_do = f'Write protocol.name = "{FEDDP}" to use it, or remove it.'
    if job.data.server is not None:
        refuse(("data", "server"), f"come with the protocol {FEDDP}", job.protocol.name, what_to_do)
    if job.feddp is not None:
        refuse(("feddp",), f"come with the protocol {FEDDP}", job.protocol.name, what_to_do)


def check_feddp(job: Job) -> None:
    """Refuse unknown variants, options that the chosen one does not take, and numbers out of range."""
    protocol, section = job.protocol, job.feddp
    if protocol.variant is not None:
        check_choice(("protocol", "variant"), protocol.variant, FEDDP_VARIANTS)
    if job.data.server is not None:
        check_text(("data", "server"), job.data.server, longest=1000)
        if any(party.data == job.data.server for party in job.parties):
            what_to_do = "Everyone gets the server's data, and nothing protects them: name another table."
            refuse(("data", "server"), "not be a party's own table", show_value(job.data.server), what_to_do)
    if any(party.name == SERVER for party in job.parties):
        what_to_do = "The server's data are called so: choose another name."
        refuse(("parties",), f"not be named {SERVER} with the protocol {FEDDP}", show_value(SERVER), what_to_do)
    published = protocol.variant == "published"
    if published and job.budget is not None and job.budget.unit is Unit.CLIENT and job.data.records is None:
        what_to_do = "How long a client's vectors may be must follow from public values (appendix G.5)."
        refuse(("data", "records"), 'be declared with variant = "published" and unit = "client"', "none", what_to_do)
    if published and protocol.placement not in (None, "aggregator"):
        what_to_do = "The paper's server adds the noise: remove it."
        refuse(
            ("protocol", "placement"),
            'be left out with variant = "published"',
            show_value(protocol.placement),
            what_to_do,
        )
    if section is not None:
        _check_section(job, section, published=published)


def _check_section(job: Job, section: FeddpSection, *, published: bool) -> None:
    """Refuse numbers out of range in [feddp], and what the chosen variant or placement does not take."""
    protocol = job.protocol
    if section.sample is not None:
        least = min(protocol.resolve_min_parties(len(job.parties)), len(job.parties))
        check_integer(("feddp", "sample"), section.sample, least, len(job.parties))
        if protocol.placement not in (None, "aggregator"):
            what_to_do = "Parties' shares of the noise are meant for all of them: remove one of the two."
            refuse(
                ("feddp", "sample"), "be left out where parties add the noise", show_value(section.sample), what_to_do
            )
    if section.lloyd_steps is not None:
        check_integer(("feddp", "lloyd_steps"), section.lloyd_steps, 0, 50)
    try:
        _, options = section.knobs, section.options
    except ConfigError as error:
        raise KeyedConfigError(("feddp",), f"in [feddp] {error}") from None
    if published and section.knobs != FeddpKnobs():
        what_to_do = "The published splits are fixed: remove shares and restarts."
        refuse(("feddp",), 'have no shares or restarts with variant = "published"', "some", what_to_do)
    plain = not (options.simplify or options.clear_only or options.separation or section.sample)
    if published and not plain:
        what_to_do = "The published variant is as printed: remove them."
        refuse(("feddp",), 'have no options with variant = "published" but lloyd_steps', "some", what_to_do)
