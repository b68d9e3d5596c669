"""The section ``[protocol]`` of a job: one typed struct per protocol, tagged with the protocol's name.

A protocol's package defines its options as a subclass of `Options`. Each field states its type and range once, in its
annotation; `Options.check` holds only the rules that involve several keys. What a protocol takes from the other
sections, and what it promises in general, are its `Facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from msgspec import Struct

from cloister.job.refusals import KeyPath, quote_string, refuse, show_value, suggest
from cloister.numeric import FixedPoint
from cloister.privacy.units import Unit

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
    private
        Whether noise, where there is a budget, makes the result as a whole differentially private.
    units
        The units that its noise can hide.
    ledger
        Whether its releases can be charged to a ledger.
    data_keys
        The keys of ``[data]`` that it takes in addition to ``match``, ``missing`` and ``max_records``.
    alignment
        Which IDs get a place if the job names an ID column.
    imputes
        Whether it takes records with missing cells, which are NaN in the batches of a table.
    chooses_k
        Whether it can choose k.
    section
        The field of its options that is a section of its own in the job file, named after the protocol.
    clusters_least, clusters_most, dimensions_most, parties_least
        The sizes it can handle. One party is one table: it runs alone, without masks or a coordinator.
    remedy
        How the loss of an exact run may be lowered, in a sentence.
    hides_values
        What hides a party's values in transit, if it is not masks in a ring.
    noise_on_grid
        Whether all its noise is in steps of the records' fixed-point grid, so that it can be shown in unit scaling.
    spread
        Whether it can scale columns by a spread that it releases, where a unit is a record.
    """

    split: Literal["rows", "columns"] = "rows"
    budget: Literal["required", "optional", "refused"] = "refused"
    private: bool = True
    units: tuple[Unit, ...] = (Unit.RECORD,)
    ledger: bool = True
    data_keys: frozenset[str] = frozenset()
    alignment: Literal["intersection", "union"] | None = None
    imputes: bool = False
    chooses_k: bool = False
    section: str | None = None
    clusters_least: int = 1
    clusters_most: int = CLUSTERS_MOST
    dimensions_most: int = DIMENSIONS_MOST
    parties_least: int = 2
    remedy: str = "Another start finds less: run again, change initialisation, or give a start."
    hides_values: str = ""
    noise_on_grid: bool = False
    spread: bool = False


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name"):
    """Base of all options. Subclasses give a ``tag``, their `facts` and their fields."""

    facts: ClassVar[Facts] = Facts()

    @classmethod
    @cache
    def section_kind(cls) -> type | None:
        """Return the dataclass that the protocol's own section is read into; None if it has none."""
        if cls.facts.section is None:
            return None
        hint = get_type_hints(cls)[cls.facts.section]
        return next(kind for kind in get_args(hint) or (hint,) if isinstance(kind, type) and is_dataclass(kind))

    @classmethod
    def read(cls, key: str, value: Any) -> Any:
        """Return the value of a key as the options hold it: lists become tuples, and the own section a dataclass."""
        kind = cls.section_kind()
        if key != cls.facts.section or kind is None or not isinstance(value, Mapping):
            return _freeze(value)
        known = [field.name for field in fields(kind)]
        section = str(cls.__struct_config__.tag)
        for name in value:
            if name not in known:
                refuse((section, name), f"be a known key ({', '.join(known)})", show_value(name), suggest(name, known))
        return kind(**value)

    @property
    def name(self) -> str:
        """The protocol's name, in jobs, in results and on the wire."""
        return str(self.__struct_config__.tag)

    def check(self, job: Any) -> None:
        """Refuse a job that breaks a rule about several keys.

        The job is a `cloister.job.Job`, which is built on this module.
        """

    def resolve_min_parties(self, parties: int) -> int:
        """Return how many parties a sum is over at least."""
        return parties

    def name_placement(self, parties: int) -> str:
        """Return who adds the noise of a job with a budget, in the words of ``placement``; ``none`` if nobody does."""
        return "none"

    def name_masks(self, parties: int) -> str:
        """Return what masks the sums, in the words of ``masks``; ``none`` if nothing does."""
        return "none"

    @property
    def grid(self) -> FixedPoint:
        """The grid that tables are rounded to."""
        return FixedPoint()

    @property
    def variant_in_words(self) -> str:
        """How this run differs from the protocol's default; empty if it does not."""
        return ""

    @property
    def needs_delta(self) -> bool:
        """Whether its noise promises nothing at delta = 0."""
        return True

    @property
    def flaw(self) -> str:
        """Why the stated guarantee does not hold; empty if it does."""
        return ""


_REGISTRY = "cloister.protocols"
"""Where protocols are registered. It is imported late because it is in a higher layer than this module."""

_KNOWN: dict[str, type[Options]] = {}


def register_options(options: type[Options]) -> None:
    """Make a protocol's options known to job files and to errors about keys."""
    _KNOWN[str(options.__struct_config__.tag)] = options


def forget_options(name: str) -> None:
    """Undo `register_options`; for tests that define protocols."""
    del _KNOWN[name]


def known_options() -> Mapping[str, type[Options]]:
    """Return every protocol's options by name, in the order of registration; the first is the default."""
    import_module(_REGISTRY)  # which registers them, if nothing has imported it yet
    return _KNOWN


def make_options(name: str | None = None, **values: Any) -> Options:
    """Return the options of a protocol, by default of the first one registered.

    Raises
    ------
    ConfigError
        If there is no such protocol, or it does not take a key. The message says which protocols do.
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
    return options(**{key: options.read(key, value) for key, value in values.items()})


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
    """Turn lists into tuples, all the way down; a NumPy array counts as a list of rows."""
    rows = getattr(value, "tolist", None)
    value = rows() if callable(rows) else value
    return tuple(_freeze(item) for item in value) if isinstance(value, list | tuple) else value
