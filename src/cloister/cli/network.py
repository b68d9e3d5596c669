"""``cloister serve`` and ``cloister party``: a job between organisations."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.cli.ledger_report import tell_if_stopped
from cloister.cli.live import show_run
from cloister.cli.output import AsJson, print_json
from cloister.cli.progress import report_clipped
from cloister.cli.run import draw, read_contract, tell_result
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from cloister.deployment.coordinator_run import CoordinatorRun
    from cloister.deployment.record import RunRecord
    from cloister.privacy.ledger import LedgerSession
    from cloister.report import Result
    from cloister.report.folder import Sign
    from cloister.report.labels import PartyLabels

JobFile = Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)]
Keys = Annotated[str, typer.Option(help="Our keys: NAME.key, or the name of keys in the default folder.")]
Peers = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH", help="Public files (NAME.pub) of the others, or folders of them; default: beside ours."
    ),
]
Deadline = Annotated[
    float, typer.Option(min=1, metavar="SECONDS", help="How long to wait for whoever is slow or cannot be reached.")
]
Anew = Annotated[bool, typer.Option("--anew", help="Give up an earlier run of this job that did not end.")]
Log = Annotated[
    str | None, typer.Option(metavar="FILE", help="Append a log to FILE, in lines of JSON; - is standard error.")
]
Metrics = Annotated[
    str | None,
    typer.Option(metavar="[HOST:]PORT", help="Serve /metrics (Prometheus) and /health here; default host: loopback."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress and no report.")]


def serve(
    job_file: JobFile,
    keys: Keys,
    peers: Peers = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen; default: all addresses, the job's port.")
    ] = None,
    deadline: Deadline = 600.0,
    start_deadline: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="How long to wait for all parties to join.")
    ] = 86400.0,
    hosts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="Public files of those who host clients, or folders; clients then need no own."
        ),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="The record of the run; default: run-NAME.json.")] = None,
    anew: Anew = False,
    log: Log = None,
    metrics: Metrics = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Coordinate a job between organisations: listens on one port, holds no table and gets no result."""
    from cloister.deployment import serve as serve_job
    from cloister.deployment.joining import open_end, read_address
    from cloister.deployment.record import check_record_place, describe_run, write_record
    from cloister.deployment.watch import Watch, open_log
    from cloister.job import COORDINATOR, Setup
    from cloister.jobfile import load_job
    from cloister.report.layout import make_console
    from cloister.runtime.remote.grpc_log import hear_handshakes
    from cloister.runtime.remote.hub import Deadlines

    job, errors = load_job(job_file), make_console(stderr=True)
    place = Path(f"run-{job.name}.json") if record is None else record
    role, end = open_end(job, keys, peers, Deadlines(start_s=start_deadline, step_s=deadline), hosts=hosts or ())
    if role != COORDINATOR:
        raise ConfigError(f"the coordinator must use its own keys; these are those of {role}. Run: cloister party")
    check_record_place(place, goes_on=end.has_begun(role) and not anew)

    def tell_port(port: int) -> None:
        make_console(stderr=as_json).print(f"Listening on port {port} for {len(job.parties)} parties.", soft_wrap=True)

    kept: list[RunRecord] = []

    def keep(course: CoordinatorRun) -> None:
        kept.append(describe_run(course))
        write_record(kept[0], place)

    watch = Watch.make(job, COORDINATOR, listen=metrics, on_metrics=partial(_tell_metrics, errors))
    with hear_handshakes(watch.observe), open_log(log), show_run(watch, job, errors, quiet=quiet, log=log):
        serve_job(
            Setup(job=job, folder=job_file.parent),
            end,
            listen=listen or _listen_everywhere(read_address(job)),
            anew=anew,
            on_listening=tell_port,
            keep=keep,
            watch=watch,
        )
    if as_json:
        print_json({"record": place, "run": kept[0]})
    else:
        make_console().print(f"Written: {place}", soft_wrap=True)


def party(
    job_file: JobFile,
    keys: Keys,
    own: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Our own side: where our table and ledger are.")
    ] = None,
    peers: Peers = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where the coordinator listens; default: the job's address.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The result folder; default: result-NAME.")] = None,
    deadline: Deadline = 600.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result.")] = False,
    consent: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What 'cloister join' has written; default: PARTY.consent beside the job."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to every run of this job, without a consent.")] = False,
    anew: Anew = False,
    log: Log = None,
    metrics: Metrics = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Take part in a job between organisations: calls the coordinator, and is never called."""
    from cloister.agreement import OwnConsent
    from cloister.cli.agree import find_consent
    from cloister.deployment import take_part
    from cloister.deployment.joining import open_end, read_address, read_own_setup
    from cloister.deployment.watch import Watch, open_log
    from cloister.jobfile import load_job
    from cloister.report.folder import add_picture, check_destination, write_result
    from cloister.report.layout import make_console
    from cloister.runtime.remote.grpc_log import hear_handshakes
    from cloister.runtime.remote.hub import Deadlines

    job, errors = load_job(job_file), make_console(stderr=True)
    role, end = open_end(job, keys, peers, Deadlines(step_s=deadline), own)
    setup = read_own_setup(job_file, job, role, own)
    path = consent or find_consent(job_file, role)
    agreed = None if yes else OwnConsent(path=path, identity=end.identity, job=job, party=role)
    folder = Path(f"result-{job.name}") if out is None else out
    check_destination(folder, overwrite=overwrite)
    ledgers: dict[str, LedgerSession] = {}
    granted: list[PartyLabels] = []
    contract = read_contract(job_file)

    def keep(result: Result, labels: PartyLabels | None, sign: Sign | None) -> None:
        granted.extend([] if labels is None else [labels])
        write_result(result, folder, overwrite=overwrite, contract=contract, labels=granted, sign=sign)

    watch = Watch.make(job, role, listen=metrics, on_metrics=partial(_tell_metrics, errors))
    telling = tell_if_stopped(ledgers, errors, also_nothing=True, goes_on=end.has_begun(role) and not anew)
    showing = show_run(watch, job, errors, quiet=quiet, log=log)
    with hear_handshakes(), open_log(log), telling, showing as view:

        def note_ledger(name: str, ledger: LedgerSession) -> None:
            ledgers[name] = ledger
            view.note_ledger(ledger)

        result = take_part(
            setup,
            role,
            end,
            address=address or read_address(job),
            keep=keep,
            consent=agreed,
            contract=job_file.read_text(encoding="utf-8-sig"),
            anew=anew,
            on_table=None if quiet else report_clipped(job, errors),
            on_ledger=note_ledger,
            watch=watch,
        )
    picture = None if quiet else draw(result, None, errors)
    if picture is not None:
        add_picture(folder, picture)
    tell_result(result, folder.resolve(), ledgers, quiet=quiet, as_json=as_json)
    if not quiet:
        for labels in granted:
            errors.print(f"cloister: {labels.file_name} is as private as the records of {role}.", soft_wrap=True)


def _tell_metrics(errors: Console, port: int) -> None:
    errors.print(f"cloister: /metrics and /health are served on port {port}.", soft_wrap=True)


def _listen_everywhere(address: str) -> str:
    """Return the job's port, on all of this machine's addresses."""
    return f"[::]:{address.rpartition(':')[2]}"
