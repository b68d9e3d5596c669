"""What is written in a ledger: six kinds of entry, each one line of JSON that never changes.

==========  ================================================================================================
charge      one release, paid before it left
hold        work that was priced before it runs: counts as spent until it is settled
settle      what a hold really cost, at most what it held; without releases nothing
cap         what all charges on one data set, or on all of them, may cost from here on
join        two names of one data set: what the first has paid counts for the second
note        a run that was not private, because it was made with a seed; costs nothing and proves nothing
==========  ================================================================================================

Nothing here depends on a record: names are the owner's, noise and costs are public. A data set is the name that its
owner declared. In entries of schema 1 it is the fingerprint of a table or of a name.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import msgspec
from msgspec import Meta

from cloister.errors import BudgetError, ConfigError
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget, Unit

DATASET_MOST = 200
_SHOWN_DIGITS = 16
_OLD_NAME = re.compile("[0-9a-f]{64}")
_NotNegative = Annotated[float, Meta(ge=0)]


class _Priced(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What something cost one unit.

    Parameters
    ----------
    rho
        In zCDP.
    epsilon
        Pure; None where there is no such bound.
    mu_squared, ripple
        The Gaussian shift that dominates it, and by how much it is missed (`cloister.privacy.privacy_loss`); None where
        there is none.
    """

    rho: _NotNegative
    epsilon: _NotNegative | None
    mu_squared: _NotNegative | None = None
    ripple: _NotNegative | None = None

    @property
    def cost(self) -> Cost:
        """The same as a cost."""
        return Cost.read(self.rho, self.epsilon, self.mu_squared, self.ripple)


class Charge(_Priced, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="charge"):
    """One release that was paid for, before it left.

    Parameters
    ----------
    time
        UTC, ISO 8601.
    data
        The data set.
    unit
        Whose presence the noise hides: the costs hold for neighbours that differ by one of these.
    job, session
        Who asked: the job's name, and the session in hexadecimal digits.
    release
        What was released, in plain words.
    mechanism, parameters
        The noise.
    sensitivity_l1, sensitivity_l2_squared, entries
        Of the released integer vector.
    """

    time: str
    data: str
    unit: Unit
    job: str
    session: str
    release: str
    mechanism: str
    parameters: dict[str, float]
    sensitivity_l1: int
    sensitivity_l2_squared: int
    entries: int


class Hold(_Priced, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="hold"):
    """The most that work may cost, written before it runs; ``what`` it is, in plain words."""

    time: str
    data: str
    unit: Unit
    job: str
    session: str
    what: str


class Settle(_Priced, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="settle"):
    """What the hold with this number cost in the end, and how many releases were made under it."""

    time: str
    data: str
    hold: int
    releases: int


class Cap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cap"):
    """From here on, all charges on a data set may cost this much together; on all data sets, where ``data`` is None.

    The latest cap counts.
    """

    time: str
    data: str | None
    unit: Unit
    epsilon: float
    delta: float
    reason: str

    @property
    def budget(self) -> Budget:
        """The cap as a budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta, unit=self.unit)


class Join(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="join"):
    """``data`` is another name of the data set ``into``: what it has paid, and will pay, counts there."""

    time: str
    data: str
    into: str
    reason: str


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="note"):
    """A run on a data set whose noise came from a seed: whoever knows the seed can take it away."""

    time: str
    data: str
    job: str
    session: str
    text: str


Entry = Charge | Hold | Settle | Cap | Join | Note
_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)
_ENCODER = msgspec.json.Encoder()


def encode_entry(entry: Entry) -> str:
    """Return an entry as its line of JSON."""
    return _ENCODER.encode(entry).decode()


def decode_entry(text: str) -> Entry:
    """Read an entry from its line of JSON; msgspec's errors are for the caller to name."""
    return _DECODER.decode(text)


def check_dataset(name: str) -> str:
    """Return the name of a data set, if it can be one."""
    if not 1 <= len(name) <= DATASET_MOST or not name.isprintable() or name != name.strip() or is_old_name(name):
        raise ConfigError(
            f"a data set's name must be printable text of 1 to {DATASET_MOST} characters without blanks at either end, "
            f"and not 64 hexadecimal digits; got {len(name)} characters that are not. Name it as its owner would."
        )
    return name


def is_old_name(name: str) -> bool:
    """Whether a data set is known by a fingerprint only, as in ledgers of schema 1."""
    return _OLD_NAME.fullmatch(name) is not None


def shorten_name(name: str) -> str:
    """Return a data set's name as people are shown it."""
    return name[:_SHOWN_DIGITS] if is_old_name(name) else name


def price_release(release: Release) -> Cost:
    """Return what a release costs, which must be finite."""
    cost = Cost.of(release)
    if not cost.is_finite:
        raise BudgetError(
            f"a release must have a finite cost; got an infinite one for {release.name!r}. Use more noise."
        )
    return cost


def make_charge(release: Release, *, time: str, data: str, unit: Unit, job: str, session: str) -> Charge:
    """Write down a release and what it costs."""
    return Charge(
        time=time,
        data=data,
        unit=unit,
        job=job,
        session=session,
        release=release.name,
        mechanism=type(release.mechanism).__name__,
        parameters=asdict(release.mechanism),
        sensitivity_l1=release.sensitivity.l1,
        sensitivity_l2_squared=release.sensitivity.l2_squared,
        entries=release.entries,
        **price_release(release).fields(),
    )
