"""How a command fails: one message, the error's exit code, and never a value of a record.

Errors of Cloister are written to be shown. Any other exception may quote data in its text (NumPy and csv do),
so only its type is shown. A traceback, which may quote data too, appears only if CLOISTER_TRACEBACK=1 asks
for it.
"""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from cloister.errors import (
    AbsentError,
    BudgetError,
    CloisterError,
    ConfigError,
    CredentialsError,
    DataError,
    DivergedError,
    InfeasibleError,
    JournalError,
    LedgerError,
    LocalProtocolError,
    MissingExtraError,
    PolicyError,
    PrecisionError,
    RefusedError,
    RemoteProtocolError,
    TooFewPartiesError,
)

P = ParamSpec("P")

EXIT_DECLINED = 1  # whoever was asked said no
EXIT_REFUTED = 12  # not an error: an audit has done its job
EXIT_FAILED_CHECK = 18  # cloister verify has done its job, too
EXIT_UNEXPECTED = 70  # as in sysexits.h: an internal error
EXIT_STOPPED = 130  # 128 + SIGINT
_MEANINGS: dict[type[CloisterError], str] = {
    ConfigError: "the job, an option or a result folder is wrong",
    DataError: "a party's table is wrong",
    PrecisionError: "sums could overflow the ring",
    InfeasibleError: "no assignment meets the size constraints",
    LocalProtocolError: "a role was used wrongly: a bug in Cloister",
    RemoteProtocolError: "a party's message broke the protocol",
    TooFewPartiesError: "a party does not take part, or too few are left",
    MissingExtraError: "an optional dependency is not installed",
    BudgetError: "the privacy budget does not allow a release",
    LedgerError: "a ledger file is damaged, edited or missing",
    DivergedError: "parties computed different things from the same totals",
    JournalError: "a role that was stopped cannot go on from its journal",
    CredentialsError: "a key file or certificate is missing, damaged, expired or another's",
    PolicyError: "this party's own policy does not allow the job",
    RefusedError: "the other end of a connection is not who or what was agreed",
}
# The \b keeps the lines as they are.
EXIT_CODES_HELP = "\b\nExit codes:\n" + "\n".join(
    f"  {code:>3}  {meaning}"
    for code, meaning in [
        (0, "done"),
        (EXIT_DECLINED, "nothing was done: the answer was no"),
        *sorted(
            [
                *((error.exit_code, meaning) for error, meaning in _MEANINGS.items()),
                (EXIT_REFUTED, "an audit with --claim refuted the job's claim"),
                (EXIT_FAILED_CHECK, "what a result says of its session is not so"),
            ]
        ),
        (EXIT_UNEXPECTED, "an unexpected error; CLOISTER_TRACEBACK=1 shows where"),
        (EXIT_STOPPED, "stopped"),
    ]
)


def guard(command: Callable[P, None]) -> Callable[P, None]:
    """Turn a command's exceptions into one message on standard error and an exit code."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort, BrokenPipeError):  # typer's own; it ends quietly on a closed pipe
            raise
        except (Exception, KeyboardInterrupt) as error:
            if os.environ.get("CLOISTER_TRACEBACK") == "1":
                traceback.print_exc()
            message, exit_code = describe_failure(error)
            typer.echo(f"cloister: {message}", err=True)
            raise typer.Exit(exit_code) from None

    return guarded


def describe_failure(error: BaseException) -> tuple[str, int]:
    """Return what to print for an exception, and the exit code.

    What is for one party alone is marked so: a simulation has everybody's screen.
    """
    if isinstance(error, AbsentError) and error.why is not None:
        return f"for {error.party} only: {error.why}\ncloister: {error}", error.exit_code
    if isinstance(error, CloisterError):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "stopped", EXIT_STOPPED
    if isinstance(error, MemoryError):
        return "memory must suffice for the run; it ran out. Free some and run again.", EXIT_UNEXPECTED
    return (
        f"an unexpected error, {type(error).__name__}: this is a bug in Cloister. Its text is not shown, "
        "as it may quote data. Please report it with the steps that lead to it; CLOISTER_TRACEBACK=1 shows "
        "where it happened (read that before you share it)."
    ), EXIT_UNEXPECTED
