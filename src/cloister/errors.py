"""The exception tree: one root, and one class for each thing a caller would do differently.

::

    CloisterError                     exit code of the command line
    ├── ConfigError                   2   the job or a parameter is wrong: change it
    ├── DataError                     3   a party's table is wrong: clean it (names a column and a count, never a value)
    ├── PrecisionError                4   sums could overflow the ring: more bits, or fewer fractional bits
    ├── InfeasibleError               5   no assignment meets the size constraints: loosen them
    ├── LocalProtocolError            6   this program used a role wrongly: a bug on this side
    ├── RemoteProtocolError           7   a peer's message broke the protocol: the only error a hostile peer can cause
    ├── TooFewPartiesError            8   parties dropped out and fewer than the agreed minimum are left
    │   └── AbsentError               8   a party does not take part; its owner alone is told why
    ├── MissingExtraError             9   an optional dependency is not installed
    ├── BudgetError                   10  a release would exceed the budget or a cap: ask for less
    ├── LedgerError                   11  a ledger file is damaged, edited, missing or from a newer version: restore it
    ├── DivergedError                 13  parties computed different things from the same totals: run the same version
    ├── JournalError                  14  a role cannot go on after it was stopped: its journal does not fit
    ├── CredentialsError              15  a key file or certificate is missing, damaged, expired or another's
    ├── PolicyError                   16  a party's own policy does not allow the job: ask its owner
    └── RefusedError                  17  the other end of a connection is not who or what was agreed

Every message says what must hold, what was got, and what to do. None carries a value of a record.

**Whose error is it?** What goes wrong with one party's own table, ledger or journal is told to its owner. To everybody
else it is an :class:`AbsentError`, the same whatever the cause: how many cells are no numbers, and even that some are
not, is something about the records. Only what goes wrong between roles is told to all: :data:`TOLD_TO_ALL`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

__all__ = [
    "TOLD_TO_ALL",
    "AbsentError",
    "BudgetError",
    "CloisterError",
    "ConfigError",
    "CredentialsError",
    "DataError",
    "DivergedError",
    "InfeasibleError",
    "JournalError",
    "LedgerError",
    "LocalProtocolError",
    "MissingExtraError",
    "PolicyError",
    "PrecisionError",
    "RefusedError",
    "RemoteProtocolError",
    "TooFewPartiesError",
    "own_error",
    "require_kind",
    "told_to_owner",
]


class CloisterError(Exception):
    """Root of all errors that Cloister raises on purpose."""

    exit_code: ClassVar[int] = 1


class ConfigError(CloisterError, ValueError):
    """The job file, an option or an argument is invalid."""

    exit_code = 2


def require_kind(what: str, value: object, *kinds: type, then: str = "") -> None:
    """Refuse a value of another type than one of these, in our words: its type is told, and never itself.

    Raises
    ------
    ConfigError
        If it is of none of them.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        *others, last = [kind.__name__ for kind in kinds]
        named = f"{', '.join(others)} or {last}" if others else last
        raise ConfigError(f"{what} must be of the type {named}; got {type(value).__name__}. {then}".rstrip())


class DataError(CloisterError, ValueError):
    """A table does not match the job. The message names the column and the number of cells, never a cell."""

    exit_code = 3


class PrecisionError(CloisterError, ArithmeticError):
    """By public bounds, a sum could leave the ring's range. Raised before anything is sent."""

    exit_code = 4


class InfeasibleError(CloisterError, ValueError):
    """The cluster-size constraints cannot all be met by this many records."""

    exit_code = 5


class LocalProtocolError(CloisterError, RuntimeError):
    """Our own program called a role or an endpoint out of order."""

    exit_code = 6


class RemoteProtocolError(CloisterError, RuntimeError):
    """A peer sent a malformed, oversized, replayed or misplaced message. No state has changed."""

    exit_code = 7


class TooFewPartiesError(CloisterError, RuntimeError):
    """Fewer parties answered than the job's agreed minimum."""

    exit_code = 8


class AbsentError(TooFewPartiesError):
    """A party does not take part, or no longer; the text is the same whatever the cause.

    Attributes
    ----------
    party
        Its name.
    why
        The error on its own side, for its owner alone: nobody else may see its class or its text. None where it is not
        known.
    """

    def __init__(self, party: str, why: CloisterError | None = None) -> None:
        super().__init__(
            f"every party must be able to take part; {party!r} is not. Its owner alone is told why. Run the job again "
            "once it is."
        )
        self.party, self.why = party, why

    def __reduce__(self) -> tuple[object, ...]:
        return AbsentError, (self.party, self.why)


class MissingExtraError(CloisterError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    exit_code = 9

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed. Run: pip install 'cloister[{extra}]'"
        )


class LedgerError(CloisterError, RuntimeError):
    """A ledger cannot be read or trusted: damaged, edited, replaced, locked, missing, or written by a newer version."""

    exit_code = 11


class BudgetError(CloisterError, ValueError):
    """A release would exceed the budget or a ledger's cap. Raised before it is recorded or any noise is drawn."""

    exit_code = 10


class DivergedError(CloisterError, RuntimeError):
    """Parties that read the same totals derived different queries from them, so there is no result."""

    exit_code = 13  # 12 is the audit's


class JournalError(CloisterError, RuntimeError):
    """A journal is damaged, or the role that is rebuilt from it would answer otherwise than it did."""

    exit_code = 14


class CredentialsError(CloisterError, RuntimeError):
    """A key file or a certificate cannot be used: missing, damaged, expired, not of whom it should be, or readable."""

    exit_code = 15


class PolicyError(CloisterError, ValueError):
    """A party's own policy does not allow the job. Nothing was sent, and nothing was spent."""

    exit_code = 16


class RefusedError(CloisterError, RuntimeError):
    """The other end of a connection is not who or what the job says. Its message is told to both ends."""

    exit_code = 17


def own_error(error: CloisterError) -> CloisterError:
    """Return what the owner of a party is told: on their own screen, why the party is absent."""
    return error.why if isinstance(error, AbsentError) and error.why is not None else error


TOLD_TO_ALL: tuple[type[CloisterError], ...] = (TooFewPartiesError, DivergedError)
"""Errors about what passes between roles: they name parties and steps and say nothing of a party's own side."""


@contextmanager
def told_to_owner(party: str, *, but: tuple[type[CloisterError], ...] = ()) -> Iterator[None]:
    """Turn errors on one party's own side into one that tells others nothing but that the party is absent.

    Parameters
    ----------
    party
        Its name.
    but
        Errors that concern everybody, besides :data:`TOLD_TO_ALL`: those about the agreed job, say.
    """
    try:
        yield
    except CloisterError as error:
        if isinstance(error, (*TOLD_TO_ALL, *but)):
            raise
        raise AbsentError(party, error) from error
