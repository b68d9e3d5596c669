"""The job: what all parties agree on, and one party's own side. It knows no protocol.

Reading order: ``refusals`` (how a broken rule is reported), ``options`` (what a protocol's options are), ``people``
(who takes part), ``model``, ``noise_options`` (what several protocols' options have in common), ``policy`` (what one
party takes part in).
"""

from cloister.job.model import MAX_COUNT, MAX_RECORDS, DataOptions, Job, OwnSide, Setup
from cloister.job.noise_options import NoiseOptions, SumOptions
from cloister.job.options import Facts, Options, make_options
from cloister.job.people import COORDINATOR, JobCoordinator, JobParty
from cloister.job.policy import Policy, check_policy, find_breaches, find_policy
from cloister.privacy.units import Budget

__all__ = [
    "COORDINATOR",
    "MAX_COUNT",
    "MAX_RECORDS",
    "Budget",
    "DataOptions",
    "Facts",
    "Job",
    "JobCoordinator",
    "JobParty",
    "NoiseOptions",
    "Options",
    "OwnSide",
    "Policy",
    "Setup",
    "SumOptions",
    "check_policy",
    "find_breaches",
    "find_policy",
    "make_options",
]
