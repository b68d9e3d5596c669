"""The words that promises are made in: whose presence is hidden, what a budget allows, and who learns what."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Literal

import numpy as np

from cloister.errors import ConfigError, require_kind

EPSILON_LEAST, EPSILON_MOST = 1e-6, 1e6
DELTA = 1e-6
"""Of a budget that names none."""
EPSILON_CLAIMED_MOST = 10.0
"""Above, no protection is claimed. e^epsilon is the most by which a result changes the odds of a guess about one unit:
e^10 = 22,026 turns odds of 1 to 22,026 into even ones."""


Counted = Literal["records", "persons"]


def write_bound(bound: float, digits: int = 3) -> str:
    """Write a bound with so many digits that matter, or all before the point: never less than it is."""
    if bound == 0 or math.isinf(bound):
        return "infinite" if bound else "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(bound)))
    text = f"{math.ceil(round(bound * 10**decimals, 6 - digits)) / 10**decimals:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


class Unit(Enum):
    """What two neighbouring data sets differ by; one is added or removed (unbounded differential privacy).

    A record; all records of one person, however many; all records of one client.
    """

    RECORD = "record"
    PERSON = "person"
    CLIENT = "client"


@dataclass(frozen=True)
class Budget:
    """All that the releases of a job together may cost.

    Parameters
    ----------
    epsilon
        Between 1e-6 and 1e6; of use between 0.01 and 20.
    delta
        At least 0, less than 1, and well below 1 / the number of records; 0 asks for pure differential privacy.
    unit
        One record, or all records of one person or of one client; the words are taken, too.

    Raises
    ------
    ConfigError
        If a value is out of range, or no number.
    """

    epsilon: float
    _: KW_ONLY
    delta: float = DELTA
    unit: Unit = Unit.RECORD

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", _read_unit(self.unit))
        for name in ("epsilon", "delta"):
            require_kind(name, getattr(self, name), float, int, np.floating, then="Write: Budget(1.0)")
        if not EPSILON_LEAST <= self.epsilon <= EPSILON_MOST:
            raise ConfigError(
                f"epsilon must lie between {EPSILON_LEAST:g} and {EPSILON_MOST:g}; got {self.epsilon:g}. "
                "Less is all noise, more is no privacy."
            )
        if not 0 <= self.delta < 1:
            raise ConfigError(
                f"delta must be at least 0 and less than 1; got {self.delta}. Try a tenth of 1 / the number of records."
            )

    @property
    def most_records(self) -> int:
        """How many records of one unit may be in a sum, each within the bounds of one; 1 where a client's are one."""
        if self.unit is Unit.PERSON:
            raise ConfigError("a budget for persons must say how many records of each count; it does not.")
        return 1

    @property
    def counted(self) -> Counted:
        """What sums count, as reports and plans call it."""
        return "records"


PERSON_RECORDS_MOST = 1000


@dataclass(frozen=True, kw_only=True)
class PersonBudget(Budget):
    """A budget for persons: so many records of each count, at so many parties.

    A `Budget` and the job's section ``[data]`` make one (`cloister.job.persons`). It is what noise is calibrated to:
    whoever multiplies sensitivities does so by `most_records`, c q in docs/proofs/persons.md.

    Parameters
    ----------
    records
        c: the most records of one person that count at one party.
    parties
        q: the most parties that hold records of one person.
    """

    unit: Unit = Unit.PERSON
    records: int = 1
    parties: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit is not Unit.PERSON or not 1 <= self.records <= PERSON_RECORDS_MOST or self.parties < 1:
            raise ConfigError(
                f"a budget for persons must have their unit, from 1 to {PERSON_RECORDS_MOST} records of each and at "
                f"least 1 party; got {self.unit.value}, {self.records} and {self.parties}."
            )

    @property
    def most_records(self) -> int:
        """C q."""
        return self.records * self.parties

    @property
    def counted(self) -> Counted:
        """Persons where each counts once at a party, else their records."""
        return "persons" if self.records == 1 else "records"


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """The largest norms that one unit's integer contribution vector can have; exact, in integers.

    Under add/remove neighbours the released sum changes by exactly one such vector.
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        if not 0 <= self.l2_squared <= self.l1**2 or self.l1 > self.l2_squared:
            raise ConfigError(
                f"for integer vectors 0 <= l1 <= l2^2 <= l1^2 must hold; got l1 = {self.l1}, l2^2 = {self.l2_squared}."
            )

    def times(self, vectors: int) -> Sensitivity:
        """Return the largest norms of a sum of so many such vectors, by the triangle inequality."""
        return Sensitivity(l1=vectors * self.l1, l2_squared=vectors**2 * self.l2_squared)


def _read_unit(unit: object) -> Unit:
    """Return a unit, also from its word: a word that was kept would be no unit anywhere, and so protect less."""
    try:
        return Unit(unit)
    except ValueError:
        *others, last = (f'"{choice.value}"' for choice in Unit)
        raise ConfigError(f"unit must be {', '.join(others)} or {last}; got {unit!r}.") from None


LIMIT = "{limit}"
"""Stands, in the words of a promise, for what noise lets through."""


class Learns(Enum):
    """How much of a value a role learns."""

    EXACT = "exactly"
    NOISY = "with DP noise"
    OWN = "only its own"
    NOTHING = "nothing of"

    def in_words(self, noise: Noisy) -> str:
        """Say it; ``noise`` is what the noise of the run is worth."""
        return noise.value if self is Learns.NOISY else self.value


class Noisy(Enum):
    """What the noise of a run is worth, in the words of its leakage table."""

    PRIVATE = Learns.NOISY.value
    PARTLY = "with noise"
    UNPROVED = "with noise that proves nothing"
    TOO_LITTLE = "with too little noise"
    SEEDED = "with noise from a seed"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell of a leakage table, in words a user understands."""

    role: str
    value: str
    meaning: str
    learns: Learns


def name_role(role: str, middleman: str) -> str:
    """Say who a role of a leakage table is."""
    return {
        "coordinator": f"the {middleman}",
        "party": "each party",
        "owner": "the table's owner",
        "reader": "whoever sees the result",
    }[role]


@dataclass(frozen=True, kw_only=True)
class LeakageTable:
    """Who learns what, whom it withstands and who undoes it; printed in reports and checked against recorded views.

    Attributes
    ----------
    source
        Where it is proved, or where it stands in print.
    rows
        Who learns what.
    withstands
        Who may collude, actively or not, and learns nothing beyond that; ``LIMIT`` stands for what noise lets through.
    breaks_if
        Which coalition breaks it.
    limit
        The epsilon that noise lets through, where it is not the budget's: that of other values for a record which is
        known to be there.
    """

    source: str
    rows: tuple[Row, ...]
    withstands: str
    breaks_if: str
    limit: float | None = None

    def claim(self, epsilon: float | None) -> str:
        """Say whom it withstands; ``epsilon`` is what noise lets through, where the table does not say."""
        epsilon = epsilon if self.limit is None else self.limit
        if epsilon is None:
            return self.withstands
        limit = f"beyond epsilon {write_bound(epsilon)}"
        if epsilon > EPSILON_CLAIMED_MOST:
            limit = f"beyond what is released, for which no protection is claimed (epsilon {write_bound(epsilon)})"
        return self.withstands.replace(LIMIT, limit)

    def learns(self, role: str, value: str) -> Learns:
        """Look one cell up."""
        return next(row.learns for row in self.rows if (row.role, row.value) == (role, value))
