"""Runs of Cloister's protocols: FedDP in our form, and the synopsis, which needs no server data.

Each is a rehearsal: the session's algorithm with its noise and its charges, in one place.
"""

from __future__ import annotations

from cloister.crypto import Stream
from cloister.privacy.samplers import Sampler
from cloister.protocols.feddp import FeddpSettings, rehearse_feddp
from cloister.protocols.synopsis import Settings, rehearse
from cloister.records import FloatArray
from papers.feddp.datasets import CLUSTERS, Study, load_records
from papers.feddp.trials import Trial


def run_cloister(trial: Trial, study: Study, *, sampler: Sampler, stream: Stream) -> FloatArray:
    """Our form of FedDP; the number of records is private."""
    records = load_records(trial.data)
    settings = FeddpSettings(
        clusters=CLUSTERS, dimensions=study.points.shape[1], budget=trial.budget, parties=len(records)
    )
    server = study.frame.to_unit(study.server)
    found = rehearse_feddp(settings, records, server, sampler=sampler, stream=stream)
    return study.frame.to_original(found.finding.centres)


def run_synopsis(trial: Trial, study: Study, *, sampler: Sampler, stream: Stream) -> FloatArray:
    """What Cloister does without server data; the number of records is private."""
    records = load_records(trial.data)
    settings = Settings(clusters=CLUSTERS, dimensions=study.points.shape[1], budget=trial.budget, parties=len(records))
    found = rehearse(settings, records, sampler=sampler, stream=stream)
    return study.frame.to_original(found.finding.centres)
