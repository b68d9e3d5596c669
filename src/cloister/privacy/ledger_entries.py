"""What a ledger holds: charges and caps, each one immutable, and the chain of hashes that ties them together.

The stored form of an entry is its JSON text. Its chain value is SHA-256 of the chain value before it (64 hexadecimal
digits) followed by that text, so whoever knows the last chain value, the head, notices any change to any entry.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator

import msgspec

from cloister.errors import BudgetError, LedgerError
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget, Unit


class Charge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="charge"):
    """One release that was paid for, before it left.

    Parameters
    ----------
    time
        UTC, ISO 8601.
    data
        The data set's fingerprint.
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
    rho
        Its zCDP cost.
    epsilon
        Its pure cost; None if it has none.
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
    rho: float
    epsilon: float | None


class Cap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cap"):
    """From here on, all charges on a data set together may cost this much; the latest cap counts."""

    time: str
    data: str
    unit: Unit
    epsilon: float
    delta: float
    reason: str

    @property
    def budget(self) -> Budget:
        """The cap as a budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta, unit=self.unit)


Entry = Charge | Cap


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredEntry:
    """An entry where it stands: its number from 1, its exact text, and its chain value."""

    number: int
    text: str
    chain: str

    @property
    def entry(self) -> Entry:
        """The entry that the text says."""
        try:
            return _DECODER.decode(self.text)
        except msgspec.DecodeError as error:
            raise LedgerError(f"ledger entry {self.number} must be a charge or a cap; got {error}.") from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """The end of a chain: how many entries there are, and the last chain value."""

    number: int
    chain: str

    def follow(self, stored: StoredEntry) -> Head:
        """Return the head after an entry, or raise if the entry does not continue the chain."""
        if stored.number != self.number + 1 or stored.chain != link(self.chain, stored.text):
            raise LedgerError(
                f"each ledger entry must carry the hash of those before it; entry {stored.number} does not follow "
                f"entry {self.number}. The file was edited or damaged: restore a copy."
            )
        return Head(number=stored.number, chain=stored.chain)


_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Charge | Cap)
_ENCODER = msgspec.json.Encoder()


def link(chain: str, text: str) -> str:
    """Return the chain value of an entry that follows ``chain``."""
    return hashlib.sha256(f"{chain}{text}".encode()).hexdigest()


def chain_entries(head: Head, entries: list[Charge] | list[Cap]) -> Iterator[StoredEntry]:
    """Put new entries behind a head."""
    for entry in entries:
        text = _ENCODER.encode(entry).decode()
        head = Head(number=head.number + 1, chain=link(head.chain, text))
        yield StoredEntry(number=head.number, text=text, chain=head.chain)


def make_charge(
    release: Release, *, time: str, data: str, unit: Unit, job: str, session: str, rho: float, epsilon: float | None
) -> Charge:
    """Write down a release and its cost, which must be one that a sum can hold."""
    if not math.isfinite(rho):
        raise BudgetError(
            f"a release must have a finite cost; got an infinite one for {release.name!r}. Use more noise."
        )
    return Charge(
        time=time,
        data=data,
        unit=unit,
        job=job,
        session=session,
        release=release.name,
        mechanism=type(release.mechanism).__name__,
        parameters=dataclasses.asdict(release.mechanism),
        sensitivity_l1=release.sensitivity.l1,
        sensitivity_l2_squared=release.sensitivity.l2_squared,
        entries=release.entries,
        rho=rho,
        epsilon=epsilon,
    )
