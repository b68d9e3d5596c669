"""Attacks on a synopsis (:mod:`~cloister.audit.guided_sessions`)."""

from __future__ import annotations

from cloister.audit.adversary import SESSIONS_AT_ONCE, JobUnderAudit
from cloister.audit.claims import Claim
from cloister.audit.guided_sessions import GuidedSessions, choose_units
from cloister.audit.harness import Attack
from cloister.audit.matched_filter import name_entries
from cloister.crypto import Identity
from cloister.job import Job
from cloister.privacy.accounting import Accountant
from cloister.protocols.guided_sums import envelope_of
from cloister.protocols.synopsis import CODEC
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.simulation.synopsis import make_synopsis_agreement


def prepare_synopsis(job: Job, identities: tuple[Identity, ...]) -> JobUnderAudit:
    """Build the attacks on a job of the synopsis."""
    agreement = make_synopsis_agreement(job, tuple(identity.public_bytes for identity in identities))
    settings = agreement.settings
    spent = Accountant(settings.budget).would_spend([envelope_of(settings)])
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=name,
                run=GuidedSessions(job, agreement, identities, rows, pipeline=run_synopsis, codec=CODEC).run,
                labels=tuple(name_entries(settings.slots)),
                most_at_once=SESSIONS_AT_ONCE,
            )
            for name, rows in choose_units(job, settings).items()
        ),
        claim=Claim(epsilon=settings.budget.epsilon, delta=settings.budget.delta, rho=spent.rho),
    )
