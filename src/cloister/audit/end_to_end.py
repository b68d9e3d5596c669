"""Attacks on a whole job: real tables, roles, messages, masks and noise; what another party reads is what is judged."""

from __future__ import annotations

from cloister.audit.adversary import JobUnderAudit
from cloister.audit.feddp_sessions import prepare_feddp
from cloister.audit.lloyd_sessions import prepare_lloyd
from cloister.audit.synopsis_sessions import prepare_synopsis
from cloister.audit.vertical_sessions import prepare_vertical
from cloister.crypto import Identity, SeededEntropy
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.secfc_checks import SECFC
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.protocols.vertical.settings import VERTICAL


def prepare_audit(job: Job) -> JobUnderAudit:
    """Build the attacks on a differentially private job.

    Raises
    ------
    ConfigError
        If the job claims nothing.
    """
    if job.budget is None:
        raise ConfigError(
            f"an audit must have a claim to refute; got the protocol {job.protocol.name} without a [budget]. "
            "Audit a differentially private job."
        )
    if job.protocol.name == SECFC:
        raise ConfigError(
            "an audit must have a claim about records added or removed; got secfc, whose noise makes none. "
            "Audit a differentially private job."
        )
    identities = tuple(Identity(SeededEntropy(0, f"identity {party.name}")) for party in job.parties)
    prepares = {SYNOPSIS: prepare_synopsis, FEDDP: prepare_feddp, VERTICAL: prepare_vertical}
    prepare = prepares.get(job.protocol.name, prepare_lloyd)
    return prepare(job, identities)
