"""``cloister clients``: many clients of one job, hosted by a few processes of one operator."""

from __future__ import annotations

import asyncio
import csv
import io
import multiprocessing
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cloister.cli.network import Deadline, JobFile, Quiet
from cloister.cli.output import AsJson
from cloister.cli.run import read_contract, tell_result
from cloister.errors import ConfigError, TooFewPartiesError

if TYPE_CHECKING:
    from cloister.deployment.clients import ClientOutcome, Host
    from cloister.report import Result

_ENDED_WELL = "finished"


class Hosting(NamedTuple):
    """What one process is to host."""

    job_file: Path
    host_keys: str
    peers: tuple[Path, ...]
    clients: tuple[tuple[str, Path, Path], ...]
    ledgers: Path | None
    address: str
    deadline_s: float


class Row(NamedTuple):
    """How one client's part ended."""

    name: str
    outcome: str
    bytes_sent: int = 0
    bytes_received: int = 0
    rounds_missed: int = 0


def clients(
    job_file: JobFile,
    keys: Annotated[Path, typer.Option(metavar="FOLDER", help="The clients' keys, NAME.key.")],
    host: Annotated[str, typer.Option(metavar="KEYS", help="Our own keys: their certificate is all clients'.")],
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="The clients' tables, NAME.csv or NAME.parquet.")],
    ledgers: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Their ledgers, NAME.ledger; default: the data folder.")
    ] = None,
    peers: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="The coordinator's public file; default: beside our keys.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where the coordinator listens; default: the job's address.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="How many processes share the clients.")] = 2,
    out: Annotated[Path | None, typer.Option(help="The result folder; default: result-NAME.")] = None,
    deadline: Deadline = 600.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to every run of this job, for all clients.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Take part for many clients at once; whoever runs this holds all their tables, and must be trusted by them."""
    from cloister.deployment.joining import read_address
    from cloister.jobfile import load_job
    from cloister.report.folder import check_destination, write_result
    from cloister.report.layout import make_console

    if not yes:
        raise ConfigError("whoever hosts clients must agree for each of them; --yes was not given. Add it.")
    job = load_job(job_file)
    folder = Path(f"result-{job.name}") if out is None else out
    check_destination(folder, overwrite=overwrite)
    found = _find_clients(keys, data)
    places = tuple(peers or [Path(host).parent])
    tasks = [
        Hosting(job_file, host, places, share, ledgers, address or read_address(job), deadline)
        for share in (tuple(found[i::processes]) for i in range(processes))
        if share
    ]
    console = make_console(stderr=as_json)
    rows, result = _host_all(tasks)
    ended = Counter(row.outcome for row in rows)
    for outcome, count in ended.most_common():
        console.print(f"{count:,} of {len(found):,} clients: {outcome}", soft_wrap=True)
    if result is None:
        raise TooFewPartiesError("some client must finish for there to be a result; none did. What was charged stays.")
    contract = read_contract(job_file)
    write_result(result, folder, overwrite=overwrite, contract=contract, clients=_write_rows(rows))
    if as_json or not quiet:
        tell_result(result, folder.resolve(), {}, quiet=quiet, as_json=as_json)


def _write_rows(rows: Sequence[Row]) -> bytes:
    """Return clients.csv."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(Row._fields)
    writer.writerows(sorted(rows))
    return text.getvalue().encode()


def _find_clients(keys: Path, data: Path) -> list[tuple[str, Path, Path]]:
    """Return each client that has both keys and a table: its files' name, and the two."""
    from cloister.credentials.keys import PRIVATE_SUFFIX

    tables = {path.stem: path for path in sorted(data.iterdir()) if path.suffix in (".csv", ".parquet")}
    private = {path.stem: path for path in sorted(keys.glob(f"*{PRIVATE_SUFFIX}"))}
    found = [(name, path, tables.pop(name)) for name, path in private.items() if name in tables]
    if tables or not found:
        example = f", such as {next(iter(tables))}" if tables else ""
        raise ConfigError(
            f"each table must have keys of the same name; {len(tables):,} of {len(tables) + len(found):,} in {data} "
            f"have none in {keys}{example}. Compare the names."
        )
    return found


def _host_all(tasks: Sequence[Hosting]) -> tuple[list[Row], Result | None]:
    """Run one process for each task; return how all parts ended, and the first result."""
    context = multiprocessing.get_context("spawn")
    rows: list[Row] = []
    result: Result | None = None
    running: dict[Connection, tuple[SpawnProcess, Hosting]] = {}
    for task in tasks:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_host, args=(theirs, task))
        process.start()
        theirs.close()
        running[ours] = process, task
    while running:
        for pipe in wait(list(running)):
            assert isinstance(pipe, Connection)
            try:
                row, found = pipe.recv()
            except EOFError:
                process, task = running.pop(pipe)
                process.join()
                ended = {row.name for row in rows}
                rows += [Row(name, "its process ended") for name, _, _ in task.clients if name not in ended]
                continue
            rows.append(row)
            result = result or found
    return rows, result


def _host(pipe: Connection, task: Hosting) -> None:
    """Host some clients; runs in a process of its own."""
    from cloister.deployment.clients import take_part_together

    told = False

    def tell(outcome: ClientOutcome) -> None:
        nonlocal told
        result: Result | None = outcome.result
        if result is None:
            pipe.send((Row(outcome.name, str(outcome.error)), None))
            return
        passed = result.parties[0]
        row = Row(outcome.name, _ENDED_WELL, passed.bytes_sent, passed.bytes_received, passed.rounds_missed)
        pipe.send((row, None if told else result))
        told = True

    asyncio.run(take_part_together(_open_host(task), address=task.address, on_end=tell))
    pipe.close()


def _open_host(task: Hosting) -> Host:
    """Read the job, our keys, and the clients' identities."""
    from cloister.credentials import find_keys, find_public_files, load_identity, load_keys
    from cloister.deployment.clients import Client, Host
    from cloister.deployment.keys import agree, make_tls
    from cloister.job import COORDINATOR, OwnSide
    from cloister.jobfile import load_clients_setup, load_job
    from cloister.runtime.remote.hub import Deadlines

    job = load_job(task.job_file)
    own = load_keys(find_keys(task.host_keys))
    coordinator = find_public_files({COORDINATOR: job.coordinator.public_key}, task.peers)[COORDINATOR]
    names = {party.public_key: party.name for party in job.parties}
    hosted, sides = [], {}
    for stem, key, table in task.clients:
        identity = load_identity(key)
        name = names.get(identity.public_bytes)
        if name is None:
            raise ConfigError(f"the job must name each client's identity; that in {key} is not in it. Compare the job.")
        hosted.append(Client(name=name, identity=identity))
        ledger = None if task.ledgers is None else task.ledgers / f"{stem}.ledger"
        sides[name] = OwnSide(data=table.absolute(), ledger=ledger)
    return Host(
        setup=load_clients_setup(job, sides, folder=task.job_file.parent),
        clients=hosted,
        agreed=agree(job),
        tls=make_tls(own, [coordinator]),
        deadlines=Deadlines(step_s=task.deadline_s),
    )
