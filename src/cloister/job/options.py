"""The section ``[protocol]`` of a job: one typed struct per protocol, tagged with the protocol's name.

A protocol's package defines its options as a subclass of `Options`. Each field states its type and range once, in its
annotation; `Options.check` holds only the rules that need two keys at once. What a protocol takes from the other
sections, and what it promises in general, are its `Facts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from cloister.job.refusals import KeyPath, quote_string, refuse, show_value, suggest
from cloister.numeric.ring import RingBits
from cloister.privacy.placement import Aggregator, Joint, Local, Placement, Shared
from cloister.privacy.units import Unit

if TYPE_CHECKING:
    from cloister.job.model import Job

CLUSTERS_MOST = 100_000
DIMENSIONS_MOST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What holds for every job of a protocol.

    Attributes
    ----------
    split
        Whether parties hold different rows of one table, or different columns of the same rows.
    budget
        Whether a job must have a ``[budget]``, may have one, or must not.
    units
        What a budget can hide.
    ledger
        Whether its releases can be charged to a ledger.
    data_keys
        The keys of ``[data]`` that it takes besides ``match`` and ``max_records``.
    alignment
        Which IDs get a place where the job names a column of them.
    chooses_k
        Whether it can choose k.
    section
        The field of its options that the job file writes as a section of its own, named after the protocol.
    clusters_least, clusters_most, dimensions_most
        The sizes it can handle.
    """

    split: Literal["rows", "columns"] = "rows"
    budget: Literal["required", "optional", "refused"] = "refused"
    units: tuple[Unit, ...] = (Unit.RECORD,)
    ledger: bool = True
    data_keys: frozenset[str] = frozenset()
    alignment: Literal["intersection", "union"] | None = None
    chooses_k: bool = False
    section: str | None = None
    clusters_least: int = 1
    clusters_most: int = CLUSTERS_MOST
    dimensions_most: int = DIMENSIONS_MOST


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name"):
    """Base of all options. Subclasses give a ``tag``, their `facts` and their fields."""

    facts: ClassVar[Facts] = Facts()

    @property
    def name(self) -> str:
        """The protocol's name, in jobs, in results and on the wire."""
        return str(self.__struct_config__.tag)

    def check(self, job: Job) -> None:
        """Refuse a job in which rules that need several keys do not hold."""

    @property
    def grid_bits(self) -> int:
        """Tables are rounded to multiples of 2^-grid_bits."""
        return 16

    @property
    def variant_in_words(self) -> str:
        """How this run differs from the protocol's default; empty if it does not."""
        return ""

    @property
    def needs_delta(self) -> bool:
        """Whether its noise promises nothing at delta = 0."""
        return True


class SumOptions(Options):
    """Options of protocols that add up fixed-point numbers in a ring.

    Attributes
    ----------
    fractional_bits, ring
        The fixed-point grid 2^-fractional_bits, and the width of the ring of the masked sums.
    min_parties
        The run aborts when fewer parties answer. By default three, where there are as many: in a sum of two each could
        subtract itself.
    """

    fractional_bits: Annotated[int, Meta(ge=1, le=30)] = 16
    ring: Literal["auto", 32, 64] = "auto"
    min_parties: Annotated[int, Meta(ge=2)] | None = None

    def check(self, job: Job) -> None:
        """Refuse to wait for more parties than there are."""
        parties = len(job.parties)
        if self.min_parties is not None and self.min_parties > parties:
            must = "be at most the number of parties"
            refuse(("protocol", "min_parties"), must, f"{self.min_parties} of {parties} parties")

    @property
    def grid_bits(self) -> int:
        """Tables are rounded to multiples of 2^-grid_bits."""
        return self.fractional_bits

    @property
    def ring_bits(self) -> RingBits | Literal["auto"]:
        """The ring that the job insists on."""
        return self.ring

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for so many parties."""
        return min(3, parties) if self.min_parties is None else self.min_parties


class NoiseOptions(SumOptions):
    """Options of protocols whose noise can be added by the coordinator or by the parties.

    Attributes
    ----------
    placement
        Who adds the noise: the coordinator (default), every party a share of it, or every party all of it.
    colluding_max, honest_fraction
        With shares: how many parties may tell each other theirs; or the same as the fraction that does not. 0.6 of 10
        parties leaves 4 that may collude.
    """

    placement: Literal["aggregator", "shared", "local"] = "aggregator"
    colluding_max: Annotated[int, Meta(ge=1)] | None = None
    honest_fraction: Annotated[float, Meta(gt=0, lt=1)] | None = None

    def check(self, job: Job) -> None:
        """Refuse shares of noise that dropouts or colluding parties would leave too small."""
        super().check(job)
        given = [key for key in ("colluding_max", "honest_fraction") if getattr(self, key) is not None]
        if self.placement != "shared":
            for key in given:
                got = show_value(self.placement)
                refuse(("protocol", key), 'come with placement = "shared"', got, "Remove it.")
            return
        path: KeyPath = ("protocol", "colluding_max")
        if not given:
            what_to_do = "Each party knows its own share: write at least 1."
            refuse(path, 'be given with placement = "shared"', "neither it nor honest_fraction", what_to_do)
        if len(given) > 1:
            refuse(path, "be left out with honest_fraction", "both", "They say the same: remove one.")
        self._check_shares(len(job.parties), ("protocol", given[0]))

    def _check_shares(self, parties: int, path: KeyPath) -> None:
        colluding = self.resolve_colluding_max(parties) or 0
        got = show_value(self.honest_fraction if self.colluding_max is None else self.colluding_max)
        if not 1 <= colluding < parties:
            what_to_do = "Each party knows its own share, and somebody must be honest."
            refuse(path, f"leave from 1 to {parties - 1} of {parties} parties that may collude", got, what_to_do)
        least = parties - colluding + 1  # a party knows its own share: so many leave enough that it does not
        if self.resolve_min_parties(parties) < least:
            must = f"be at least {least}: with fewer, one party's own share would leave less noise than promised"
            refuse(("protocol", "min_parties"), must, f"{self.min_parties} of {parties} parties")

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for so many parties."""
        colluding = self.resolve_colluding_max(parties)
        least = super().resolve_min_parties(parties)
        if self.min_parties is None and self.placement == "shared" and colluding is not None:
            least = max(least, parties - colluding + 1)  # a party knows its own share of the noise
        return least

    def resolve_colluding_max(self, parties: int) -> int | None:
        """Return ``colluding_max``, or how many the honest fraction leaves; None where neither is given."""
        if self.honest_fraction is None:
            return self.colluding_max
        return parties - math.ceil(Fraction(str(self.honest_fraction)) * parties)  # 0.28 of 25 is 7, in doubles more

    def make_placement(self, parties: int) -> Placement:
        """Say who adds the noise among so many parties."""
        match str(self.placement):
            case "shared":
                return Shared(parties=parties, colluding_max=self.resolve_colluding_max(parties) or 0)
            case "local":
                return Local(parties=parties)
            case "joint":
                return Joint(parties=parties)
            case _:
                return Aggregator()


_KNOWN: dict[str, type[Options]] = {}


def register_options(options: type[Options]) -> None:
    """Make a protocol's options known to job files and to errors about keys."""
    _KNOWN[str(options.__struct_config__.tag)] = options


def forget_options(name: str) -> None:
    """Undo `register_options`; for tests of protocols that come and go."""
    del _KNOWN[name]


def known_options() -> Mapping[str, type[Options]]:
    """Return every protocol's options by its name, in the order of registration; the first is the default."""
    if not _KNOWN:
        # The registry stands above this module; a job made in Python may be the first to ask for it.
        import cloister.protocols  # noqa: F401, PLC0415
    return _KNOWN


def make_options(name: str | None = None, **values: Any) -> Options:
    """Return the options of a protocol, by default of the first that is registered.

    Raises
    ------
    ConfigError
        If there is no such protocol, or it does not take a key; says which protocols do.
    """
    known = known_options()
    chosen = next(iter(known)) if name is None else name
    if not isinstance(chosen, str) or chosen not in known:
        what_to_do = suggest(chosen, known) if isinstance(chosen, str) else ""
        refuse(("protocol", "name"), f"be one of {', '.join(known)}", show_value(chosen), what_to_do)
    options = known[chosen]
    taken = set(options.__struct_fields__) - {options.facts.section}
    for key in values:
        if key not in options.__struct_fields__:
            _refuse_key(chosen, key, sorted(taken))
    return options(**{key: _freeze(value) for key, value in values.items()})


def name_takers(key: str) -> list[str]:
    """Return the protocols whose options have a key."""
    return [
        name
        for name, options in known_options().items()
        if key in options.__struct_fields__ and key != options.facts.section
    ]


def _refuse_key(protocol: str, key: str, taken: list[str]) -> None:
    takers = name_takers(key)
    path: KeyPath = ("protocol", key)
    if not takers:
        what_to_do = suggest(key, taken) or "Remove it."
        refuse(path, f"be a known key ({', '.join(['name', *taken])})", quote_string(key), what_to_do)
    what_to_do = f"The protocol {protocol} does not take it: remove it, or change the protocol."
    refuse(path, f"come with the protocol {join_or(takers)}", protocol, what_to_do)


def join_or(words: list[str]) -> str:
    """Join words as a sentence does: a, b or c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _freeze(value: Any) -> Any:
    """Turn lists into tuples, all the way down; a NumPy array is as good as rows."""
    rows = getattr(value, "tolist", None)
    value = rows() if callable(rows) else value
    return tuple(_freeze(item) for item in value) if isinstance(value, list | tuple) else value
