"""One party's part in a session between organisations, without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cloister.agreement import OwnConsent
from cloister.deployment import take_part
from cloister.deployment.joining import open_end, read_address, read_own_setup
from cloister.jobfile import load_job
from cloister.report.folder import Sign, check_destination, write_result
from cloister.report.labels import PartyLabels
from cloister.report.result import Result
from cloister.runtime.remote.hub import Deadlines


def join_session(
    job_file: Path,
    *,
    keys: str,
    own: Path | None,
    table: Any,
    peers: Sequence[Path],
    address: str | None,
    out: Path | None,
    consent: Path | None,
    deadline_s: float,
) -> Result:
    """Take part as the party whose keys these are; its result is written before anything is wiped."""
    job = load_job(job_file)
    role, end = open_end(job, keys, peers or None, Deadlines(step_s=deadline_s), own)
    setup = read_own_setup(job_file, job, role, own, has_table=table is not None)
    folder = Path(f"result-{job.name}") if out is None else out
    check_destination(folder, overwrite=False)

    def keep(result: Result, labels: PartyLabels | None, sign: Sign | None) -> None:
        write_result(result, folder, labels=[] if labels is None else [labels], sign=sign)

    return take_part(
        setup,
        role,
        end,
        address=address or read_address(job),
        keep=keep,
        consent=None if consent is None else OwnConsent(path=consent, identity=end.identity, job=job, party=role),
        contract=job_file.read_text(encoding="utf-8-sig"),
        sources=None if table is None else {role: table},
    )
