"""What a run did to the ledgers of those whose tables it read: printed, and written into no result."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.text import Text

from cloister.errors import CloisterError

if TYPE_CHECKING:
    from cloister.privacy.ledger import LedgerSession, Statement
    from cloister.privacy.units import Unit

_MOST_PARTIES = 20


def print_statements(ledgers: Mapping[str, LedgerSession], console: Console) -> None:
    """Print what all jobs together had spent before and have now, and what running again would make it."""
    from cloister.report.layout import print_heading, print_line

    if not ledgers:
        return
    print_heading(console, "Ledgers: what all jobs have spent; for each party's own eyes, and not in the result")
    for party, session in list(ledgers.items())[:_MOST_PARTIES]:
        for line in _describe(party, session.state()):
            console.print(Text(f"  {line}"), soft_wrap=True)  # paths stay whole
        session.ledger.close()
    if len(ledgers) > _MOST_PARTIES:
        print_line(console, f"and {len(ledgers) - _MOST_PARTIES} more parties: cloister ledger show")


def take_statements(ledgers: Mapping[str, LedgerSession]) -> dict[str, Statement]:
    """Return what a run did to each party's ledger, for ``--json``; closes them."""
    states = {party: session.state() for party, session in ledgers.items()}
    for session in ledgers.values():
        session.ledger.close()
    return states


@contextmanager
def tell_if_stopped(
    ledgers: Mapping[str, LedgerSession], errors: Console, *, also_nothing: bool = False, goes_on: bool = False
) -> Iterator[None]:
    """Say what was spent if the block ends with an error or is interrupted: it stays spent.

    With ``also_nothing``, nothing is said, too; ``goes_on`` is for a run that an earlier process had begun, and may
    have been charged for.
    """
    try:
        yield
    except BaseException as error:
        for party, session in ledgers.items():
            try:
                spent, state = session.spent(), session.state()
            except CloisterError:
                continue  # the error that stopped the run matters more
            finally:
                session.ledger.close()
            if spent.rho > 0:
                errors.print(
                    f"cloister: {party} had been charged when the run stopped, and stays charged: "
                    f"{_describe_spent(state)}",
                    soft_wrap=True,
                )
            elif also_nothing:
                errors.print(f"cloister: {party} has been charged nothing by this run.", soft_wrap=True)
        if also_nothing and not ledgers and isinstance(error, KeyboardInterrupt):
            told = "what this run was charged before, if anything, is in the ledger: cloister ledger show PARTY"
            nothing = "no ledger has been charged by this run."
            errors.print(f"cloister: {told if goes_on else nothing}", soft_wrap=True)
        raise


def _describe(party: str, state: Statement) -> Iterator[str]:
    """Say what a job did to its owner's account, what it would do again, and what the owner should know."""
    from cloister.privacy.ledger import UNDECLARED

    yield f"{party}: data set {state.dataset!r} in {state.path}"
    if state.seeded:
        yield f"  Made with a seed, so not private: nothing was charged. {_describe_spent(state)}"
    else:
        again = "" if math.isinf(state.again) else f" Running again makes it {format_epsilon(state.again)}."
        yield f"  {_describe_spent(state)}{again}"
    caps = [("this data set", state.cap), ("all data sets", state.cap_of_all)]
    for which, limit in caps:
        if limit is not None:
            yield f"  Cap on {which}: epsilon {limit.epsilon:g} at delta {limit.delta:g} for one {limit.unit.value}."
    if not any(limit for _, limit in caps):
        command = suggest_cap(name_ledger(state.path), state, state.after)
        yield f"  No cap: jobs add up without limit. Set one: {command}"
    if state.dataset == UNDECLARED:
        yield '  All tables without a name of their own count together. Name one beside its data: dataset = "NAME"'
    yield from (f"  {warning}" for warning in state.warnings)


class Account(Protocol):
    """What a command that sets a cap needs to know."""

    @property
    def dataset(self) -> str | None:
        """Which data set; None: all of the ledger together."""

    @property
    def unit(self) -> Unit:
        """Whose presence is hidden."""

    @property
    def delta(self) -> float:
        """What an epsilon is for."""


def name_ledger(path: Path) -> str:
    """Return what commands call a ledger: a party's name, if it is that party's default one, or its path."""
    from cloister.privacy.ledger import default_ledger

    return path.stem if path == default_ledger(path.stem) else str(path)


def suggest_cap(name: str, account: Account, spent: float, *, new: bool = False) -> str:
    """Return a command that can be pasted: it allows twice what is spent, or epsilon 1 where nothing is."""
    from cloister.privacy.units import EPSILON_LEAST, EPSILON_MOST

    epsilon = f"{min(max(2 * spent, EPSILON_LEAST), EPSILON_MOST):.2g}" if 0 < spent < math.inf else "1"
    words = ["cloister", "ledger", "cap", name]
    words += [] if account.dataset is None else ["--dataset", account.dataset]
    words += ["--epsilon", epsilon, "--delta", f"{account.delta:g}"]
    words += [] if account.unit.value == "record" else ["--unit", account.unit.value]
    return shlex.join([*words, "--reason", "WHY", *(["--new"] if new else [])])


def _describe_spent(state: Statement) -> str:
    promise = f"at delta {state.delta:.3g} for one {state.unit.value}"
    if math.isinf(state.after):
        return f"Spent: no bound holds {promise} (epsilon infinite)."
    return f"Spent: epsilon {format_epsilon(state.before)} before, {format_epsilon(state.after)} now, {promise}."


def format_epsilon(epsilon: float) -> str:
    """Write what was spent with four digits, never as less than it is."""
    from cloister.privacy.units import write_bound

    return write_bound(epsilon, 4)
