"""Attacks on FedDP-KMeans (:mod:`~cloister.audit.guided_sessions`); the adversary has the server's data as well."""

from __future__ import annotations

from cloister.audit.adversary import SESSIONS_AT_ONCE, JobUnderAudit
from cloister.audit.claims import Claim
from cloister.audit.guided_sessions import GuidedSessions, choose_units
from cloister.audit.harness import Attack
from cloister.audit.matched_filter import name_entries
from cloister.audit.synopsis_sessions import prepare_synopsis
from cloister.crypto import Identity
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.privacy.accounting import Accountant
from cloister.protocols.feddp import CODEC, bind_server, list_plan
from cloister.protocols.guided_sums import envelope_of
from cloister.simulation.feddp import as_synopsis, make_feddp_agreement, read_server


def prepare_feddp(job: Job, identities: tuple[Identity, ...]) -> JobUnderAudit:
    """Build the attacks on a job of FedDP-KMeans; without server data it is one of the synopsis."""
    server = read_server(job)
    if server is None:
        return prepare_synopsis(as_synopsis(job), identities)
    agreement = make_feddp_agreement(job, tuple(identity.public_bytes for identity in identities), server)
    settings = agreement.settings
    if settings.sample is not None:
        raise ConfigError(
            "a job to be audited must ask all parties in every round; this one has feddp.sample. Remove it."
        )
    plan = list_plan(settings) if settings.variant == "published" else None
    rho = Accountant(settings.budget).would_spend(plan or [envelope_of(settings)]).rho
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=name,
                run=GuidedSessions(
                    job, agreement, identities, rows, pipeline=bind_server(server), codec=CODEC, plan=plan
                ).run,
                labels=tuple(name_entries(settings.slots)),
                most_at_once=SESSIONS_AT_ONCE,
            )
            for name, rows in choose_units(job, settings).items()
        ),
        claim=Claim(epsilon=settings.budget.epsilon, delta=settings.budget.delta, rho=rho),
    )
