"""A sample with split columns: a bank and a phone company that know different things about their common customers.

Each sees two kinds of customers in its own columns; together there are four. Nothing is stored: :func:`write_customers`
writes the tables and the job, the same on every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.records import FloatArray, IntArray

__all__ = ["generate_customers", "write_customers"]

_SEED = 20241
_COMMON, _BANK_ONLY, _TELCO_ONLY = 1200, 400, 300
_SHARES = (0.35, 0.25, 0.25, 0.15)
_ID_COLUMN = "customer"


@dataclass(frozen=True, kw_only=True)
class _Company:
    """What one company knows: the means for each kind of customer, and the smallest and largest values it records."""

    name: str
    header: tuple[str, str]
    means: tuple[tuple[float, float], ...]
    deviations: tuple[float, float]
    lowest: tuple[float, float]
    highest: tuple[float, float]


_MODEST, _WEALTHY = (31.0, 6.0), (78.0, 42.0)
_TALKING, _STREAMING = (4.0, 11.0), (26.0, 3.0)
_BANK = _Company(
    name="bank",
    header=("income", "savings"),
    means=(_MODEST, _MODEST, _WEALTHY, _WEALTHY),
    deviations=(7.0, 4.0),
    lowest=(8.0, 0.0),
    highest=(140.0, 75.0),
)
_TELCO = _Company(
    name="telco",
    header=("data_gb", "call_hours"),
    means=(_TALKING, _STREAMING, _TALKING, _STREAMING),
    deviations=(3.0, 1.6),
    lowest=(0.0, 0.0),
    highest=(48.0, 22.0),
)

_JOB = f"""\
# A bank and a phone company look for kinds of customers, by what both know about those they have in common.
# Neither shows the other any number of a customer. Both learn how many customers they have in common.
name = "customers"

[protocol]
name = "vertical"

# What the centres may reveal of any one customer, over all rounds.
[budget]
epsilon = 1.0

[clusters]
k = 4

# Bounds that everyone may know; they do not come from the tables.
[columns]
income     = {{ low = 0, high = 150 }}  # thousands per year
savings    = {{ low = 0, high = 80 }}   # thousands
data_gb    = {{ low = 0, high = 50 }}   # per month
call_hours = {{ low = 0, high = 24 }}   # per month

# Rows of the two tables belong together if this column is equal. It is first compared privately.
[data]
id = "{_ID_COLUMN}"

[[parties]]
name = "bank"
data = "bank.csv"
columns = ["income", "savings"]

[[parties]]
name = "telco"
data = "telco.csv"
columns = ["data_gb", "call_hours"]
"""


def generate_customers() -> dict[str, str]:
    """Return the text of each file by its name: two tables and the job that clusters them."""
    people = _COMMON + _BANK_ONLY + _TELCO_ONLY
    stream = Stream.from_seed(_SEED, "customers")
    kinds = np.searchsorted(np.cumsum(_SHARES)[:-1], stream.uniform(people), side="right")
    numbers = stream.permutation(90_000)[:people] + 10_000  # distinct, of five digits
    held_by_bank = np.arange(_COMMON + _BANK_ONLY)
    held_by_telco = np.concatenate([np.arange(_COMMON), np.arange(_COMMON + _BANK_ONLY, people)])
    return {
        "bank.csv": _generate_table(_BANK, numbers[held_by_bank], kinds[held_by_bank]),
        "telco.csv": _generate_table(_TELCO, numbers[held_by_telco], kinds[held_by_telco]),
        "job.toml": _JOB,
    }


def write_customers(folder: Path) -> Path:
    """Write the tables and the job into a folder; return the path of the job."""
    for name, text in generate_customers().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return folder / "job.toml"


def _generate_table(company: _Company, numbers: IntArray, kinds: NDArray[np.intp]) -> str:
    """Draw what one company knows about its customers, and list them in its own order."""
    stream = Stream.from_seed(_SEED, "customers", company.name)
    noise: FloatArray = stream.normal(len(kinds), 2)
    values = np.clip(
        np.array(company.means)[kinds] + np.array(company.deviations) * noise, company.lowest, company.highest
    )
    lines = [f"C{numbers[i]},{values[i, 0]:.1f},{values[i, 1]:.1f}" for i in stream.permutation(len(kinds))]
    return "\n".join([",".join((_ID_COLUMN, *company.header)), *lines, ""])
