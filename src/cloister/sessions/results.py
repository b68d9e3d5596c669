"""From what a session produced to a `Result`: the same for a simulation and for one party of a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.job import Job
from cloister.privacy.units import Noisy, name_role
from cloister.protocol import Explanation, Finding
from cloister.protocols.align.alignment import Alignment
from cloister.report.labels import PartyLabels
from cloister.report.result import Learned, PartyTraffic, Result, Spread
from cloister.report.sizes import name_counted
from cloister.runtime import Traffic
from cloister.sessions.tables import OwnTable


def make_result(
    job: Job, explanation: Explanation, finding: Finding, traffic: Mapping[str, Traffic], **rest: Any
) -> Result:
    """Make a result.

    Parameters
    ----------
    job, explanation, finding
        What was agreed, what the reader must know, and what was found.
    traffic
        Of each party whose traffic is known, by name.
    rest
        The fields that tell how it was made.
    """
    scale = finding.scale
    lengths = job.scale_to_original(np.ones(job.dimensions)) if scale is None else scale.lengths
    return Result(
        name=job.name,
        protocol=job.protocol.name,
        variant=job.protocol.variant_in_words,
        columns=job.columns,
        centres=job.to_original(finding.centres) if scale is None else scale.to_original(finding.centres),
        rounds=finding.rounds,
        parties=tuple(_describe_traffic(name, one) for name, one in traffic.items()),
        leakage=_list_learned(explanation),
        withstands="" if explanation.card else explanation.leakage.withstands,
        breaks_if=explanation.leakage.breaks_if,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        cloister_version=version("cloister"),
        fractional_bits=job.protocol.grid.fractional_bits
        if explanation.fractional_bits is None
        else explanation.fractional_bits,
        ring_bits=explanation.ring_bits,
        card=explanation.card,
        sizes=name_counted(finding.sizes, "records" if job.budget is None else job.budget.counted),
        centre_noise=None if finding.centre_noise is None else finding.centre_noise * lengths,
        scale=None if scale is None else Spread(centre=scale.centre, spread=scale.spread),
        curve=finding.curve,
        codebooks=finding.codebooks,
        **rest,
    )


def describe_alignment(job: Job, *, is_aligned: bool, by_session: bool) -> tuple[str, ...]:
    """Say how the records came into a common order, where they needed one."""
    if by_session:
        return (
            "IDs were first aligned privately: docs/align.md says who learned what from that. Its messages are not "
            "counted in the traffic.",
        )
    if not is_aligned and job.protocol.facts.split == "columns":
        return ("The job says that all tables have their rows in the same order; nothing can check that.",)
    return ()


def name_labels(
    job: Job, party: str, table: OwnTable, alignment: Alignment | None, labels: NDArray[np.int64]
) -> PartyLabels:
    """Put one party's labels into the order of its table, each with its ID or row."""
    rows = np.arange(len(labels)) if alignment is None else alignment.rows
    order = np.argsort(rows, kind="stable")
    own_rows = rows[order].tolist()
    cells = None if table.table is None else table.table.id_cells
    keys: list[object] = [row + 1 for row in own_rows] if cells is None else [cells[row] for row in own_rows]
    return PartyLabels(party=party, key_name=job.data.id or "row", keys=keys, labels=labels[order])


def _describe_traffic(name: str, traffic: Traffic) -> PartyTraffic:
    return PartyTraffic(
        name=name,
        bytes_sent=traffic.bytes_sent,
        bytes_received=traffic.bytes_received,
        messages_sent=traffic.messages_sent,
        messages_received=traffic.messages_received,
        rounds_missed=traffic.steps_missed,
    )


def _list_learned(explanation: Explanation) -> tuple[Learned, ...]:
    """Put the leakage table into words, one line per role and degree."""
    noise = Noisy.PRIVATE if explanation.card is None else explanation.card.noisy
    rows = []
    for (role, learns), group in groupby(explanation.leakage.rows, key=lambda row: (row.role, row.learns)):
        name = name_role(role, explanation.middleman)
        what = "; ".join(row.meaning for row in group)
        rows.append(Learned(role=name, what=what, how=learns.in_words(noise)))
    note = f"public; see {explanation.leakage.source}"
    return (*rows, Learned(role="everyone", what=explanation.public, how="exactly", note=note))
