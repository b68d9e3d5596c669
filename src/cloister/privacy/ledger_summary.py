"""What one data set has paid, for people to read."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.privacy.ledger_totals import Account
from cloister.privacy.units import Budget, Unit


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """What one data set has paid.

    Parameters
    ----------
    fingerprint
        Which data set.
    unit, epsilon, delta
        Its charges together are (epsilon, delta)-DP for this unit; epsilon is infinite where no bound is known.
    rho
        The same in zCDP.
    cap
        The latest; None if there is none.
    charges, sessions, jobs
        How many releases and sessions, and the jobs' names.
    first, last
        When the first and the last charge were written, UTC; None without charges.
    """

    fingerprint: str
    unit: Unit
    epsilon: float
    delta: float
    rho: float
    cap: Budget | None
    charges: int
    sessions: int
    jobs: tuple[str, ...]
    first: str | None
    last: str | None


def summarise(fingerprint: str, account: Account, delta: float) -> DataSummary:
    """State an account at its cap's delta, or at ``delta`` where it has no cap."""
    cap = None if account.cap is None else account.cap.budget
    total = account.totals[account.unit]
    at_delta = delta if cap is None else cap.delta
    return DataSummary(
        fingerprint=fingerprint,
        unit=account.unit,
        epsilon=total.epsilon(at_delta),
        delta=at_delta,
        rho=total.rho,
        cap=cap,
        charges=account.charges,
        sessions=len({session for session, _ in account.sessions}),
        jobs=tuple(account.jobs),
        first=account.first,
        last=account.last,
    )
