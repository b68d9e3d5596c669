"""What a job is: the contract that all parties agree on, and one party's own side of it.

The **contract** is a `Job`: columns and bounds, k, the protocol and its options, the budget, who takes part. It has a
digest, which every party computes. The **own side** is an `OwnSide`: where one party's table is, what its ledger
calls the records. It never enters the digest, and no other party needs it. A simulation holds everybody's: a `Setup`.

Every `Job` that exists is valid: all rules are checked when one is made, whether from a file or in Python.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cloister.columns import Column, Coordinate, list_coordinates, scale_to_original, to_original, to_unit
from cloister.errors import require_kind
from cloister.job.options import Options, join_or, known_options, make_options
from cloister.job.people import (
    JobCoordinator,
    JobParty,
    check_address,
    check_identities,
    check_parties,
    list_agreed,
)
from cloister.job.persons import PERSON_KEYS, count_persons
from cloister.job.refusals import (
    KeyPath,
    check_fields,
    check_integer,
    check_text,
    refuse,
    show_value,
)
from cloister.privacy.units import Budget, Unit
from cloister.records import FloatArray

MAX_SEED = 2**63 - 1
MAX_RECORDS = 2**31
"""The most records of one party: as many as the widest ring is known to hold."""
MAX_COUNT = 2**53
_JOB_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ALWAYS_TAKEN = frozenset({"match", "missing", "max_records", "scale", *PERSON_KEYS})
SPREAD_MOST = 200
"""Coordinates up to which columns are scaled by their spread, if nothing else is said."""
_NOT_AGREED = frozenset({"match", "server"})
"""Keys of ``[data]`` about how a party reads its own table, and where a file is: they change nothing for the others."""


_FIRST_KEYS = ("match", "max_records", "records", "server", "id", "id_form", "id_trim", "id_ignore_case", "aligned")


class DataOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section ``[data]``: how tables are read, and what is public about them.

    Attributes
    ----------
    match
        Whether columns are found by name, or must be in the job's order, too.
    missing
        What becomes of a record with a missing cell: its table is refused, or the record is left out, or the protocol
        takes it (`Facts.imputes`), as NaN in the batches of its table. A record is looked at alone, so neighbours stay
        neighbours.
    max_records
        A public cap on the records of one party. It bounds the sums, so that a small ring is known to suffice.
    records
        The number of records of all parties together, declared public. If it is left out, protocols that can do without
        it keep it private. Where columns are split: the number of aligned records, which a run checks.
    scale
        Whether a column counts by its ``"bounds"`` or by a ``"spread"`` that is released; see `Job.scale`.
    server
        The table of the server's data, relative to the job's folder. It is public: everyone has it.
    id, id_form, id_trim, id_ignore_case
        The column of record IDs, by which the parties first align privately, and when two IDs are equal.
    aligned
        The tables already hold the same records in the same order.
    person, person_records, person_parties
        With the unit person: the column that says whose a record is; how many records of each person count at a party,
        one if it is left out; at how many parties a person has records at most, all if it is left out.
    """

    match: Literal["order", "name"] = "name"
    missing: Literal["refuse", "drop", "impute"] = "refuse"
    max_records: Annotated[int, Meta(ge=1, le=MAX_RECORDS)] | None = None
    records: Annotated[int, Meta(ge=1, le=MAX_COUNT)] | None = None
    scale: Literal["spread", "bounds"] | None = None
    server: Annotated[str, Meta(max_length=1000)] | None = None
    id: Annotated[str, Meta(max_length=200)] | None = None
    id_form: Literal["text", "integer", "raw"] | None = None
    id_trim: bool | None = None
    id_ignore_case: bool | None = None
    aligned: bool | None = None
    person: Annotated[str, Meta(max_length=200)] | None = None
    person_records: Annotated[int, Meta(ge=1)] | None = None
    person_parties: Annotated[int, Meta(ge=1)] | None = None


class OwnSide(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What belongs to one party and to nobody else.

    Attributes
    ----------
    data
        Where its table is.
    separator, decimal
        Of a CSV file: what separates its cells, and what stands before decimals. They are of this one file, and others
        may be written otherwise, so they are not agreed on.
    dataset
        What its ledger calls these records: all tables of one name share one account and its cap, however they grow or
        change. Without it, they belong to one data set with all other tables that have no name in that ledger.
    ledger
        Where its ledger is. In a deployment the party itself says so, and never the job.
    alignment
        The file of an earlier alignment, where columns are split or records are aligned by ID.
    policy
        The file with what it takes part in, whatever a job asks for (`cloister.job.policy.Policy`).
    """

    data: Path | None = None
    separator: Annotated[str, Meta(max_length=1)] | None = None
    decimal: Literal[".", ","] | None = None
    dataset: Annotated[str, Meta(max_length=200)] | None = None
    ledger: Path | None = None
    alignment: Path | None = None
    policy: Path | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Job:
    """What all parties agree on.

    Attributes
    ----------
    name
        Letters, digits, ``-`` and ``_``.
    k
        ``clusters.k``, or ``clusters.k_max`` if k is to be chosen.
    choose_k
        ``clusters.choose_k``: let the protocol choose the number of clusters, at most ``k``.
    columns
        What the tables have: the columns with their public bounds or levels. `coordinates` are what is clustered.
    parties
        With different names. One alone is one table: differentially private, by the protocols that take it.
    protocol, data, budget, coordinator
        The sections of the same name. `cloister.make_options` makes those of a protocol. A budget for persons becomes
        a `PersonBudget`, which says how many records of each count.

    Raises
    ------
    ConfigError
        If a rule is broken.
    """

    name: str
    k: int
    columns: tuple[Column, ...]
    parties: tuple[JobParty, ...]
    choose_k: bool = False
    protocol: Options = field(default_factory=make_options)
    data: DataOptions = field(default_factory=DataOptions)
    budget: Budget | None = None
    coordinator: JobCoordinator = field(default_factory=JobCoordinator)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _JOB_NAME.fullmatch(self.name):
            must = "be 1 to 64 letters, digits, - and _"
            refuse(("name",), must, show_value(self.name), "The result folder is named after it.")
        _check_kinds(self)
        if not isinstance(self.choose_k, bool):
            refuse(("clusters", "choose_k"), "be true or false", show_value(self.choose_k))
        check_fields(("protocol",), self.protocol)
        check_fields(("data",), self.data)
        _check_columns(self.columns)
        check_parties(self.parties)
        check_fields(("coordinator",), self.coordinator)
        check_identities(self.parties, self.coordinator)
        check_address(self.coordinator.address)
        _check_facts(self)
        _check_budget(self)
        object.__setattr__(self, "budget", count_persons(self))
        _check_scale(self)
        self.protocol.check(self)

    def __repr__(self) -> str:
        """Say what it is in one line."""
        told = [f"k {'at most ' if self.choose_k else '= '}{self.k}", f"columns: {len(self.columns)}"]
        told += [f"parties: {len(self.parties)}", self.protocol.name]
        told += [] if self.budget is None else [f"epsilon {self.budget.epsilon:g}"]
        return f"<Job {self.name!r}: {', '.join(told)}>"

    def find_columns(self, party: JobParty) -> tuple[Column, ...]:
        """Return the columns of a party's table: all of them; if they are split, its own, in its own order."""
        if self.protocol.facts.split == "rows":
            return self.columns
        columns = {column.name: column for column in self.columns}
        return tuple(columns[name] for name in party.columns or ())

    @cached_property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What is clustered, in the order of the centres: numbers, dates, and the levels of categories."""
        return list_coordinates(self.columns)

    @property
    def may_spread(self) -> bool:
        """Whether the protocol can scale columns by a spread that it releases, for this unit."""
        return self.protocol.facts.spread and self.budget is not None and self.budget.unit is not Unit.CLIENT

    @property
    def scale(self) -> Literal["spread", "bounds"]:
        """What decides how much a column counts: what ``[data]`` says; else the spread, where that can be released.

        Beyond `SPREAD_MOST` coordinates it is the bounds: columns usually share a unit then.
        """
        usual: Literal["spread", "bounds"] = "spread" if self.dimensions <= SPREAD_MOST else "bounds"
        return self.data.scale or (usual if self.may_spread else "bounds")

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""
        return len(self.coordinates)

    def find_coordinates(self, party: JobParty) -> tuple[Coordinate, ...]:
        """Return the coordinates of a party's columns, in their order."""
        places = {column.name: i for i, column in enumerate(self.columns)}
        wanted = [places[column.name] for column in self.find_columns(party)]
        return tuple(axis for place in wanted for axis in self.coordinates if axis.column == place)

    def to_unit(self, points: FloatArray) -> FloatArray:
        """Map points from original units to [-1, 1]^d."""
        return to_unit(points, self.coordinates)

    def to_original(self, points: FloatArray) -> FloatArray:
        """Map points from [-1, 1]^d to original units."""
        return to_original(points, self.coordinates)

    def scale_to_original(self, lengths: FloatArray) -> FloatArray:
        """Map lengths along the coordinates of [-1, 1]^d to original units."""
        return scale_to_original(lengths, self.coordinates)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything that is agreed on, which excludes where files are and where the coordinator listens."""
        agreed: dict[str, object] = {
            "name": self.name,
            "k": self.k,
            "choose_k": self.choose_k,
            "columns": [column.list_agreed() for column in self.columns],
            "parties": [list_agreed(party) for party in self.parties],
            "protocol": self.protocol,
            "data": _list_agreed(self.data),
            "budget": self.budget,
        }
        if self.coordinator.identity is not None:
            agreed["coordinator"] = self.coordinator.identity
        return hashlib.sha256(msgspec.msgpack.encode(agreed, order="sorted")).digest()


def _list_agreed(data: DataOptions) -> dict[str, object]:
    """Return what is agreed on of ``[data]``. Keys of the first version always stand there, so that digests stay."""
    first = DataOptions(match="order")
    agreed: dict[str, object] = {key: getattr(first, key) for key in _FIRST_KEYS}
    for key in data.__struct_fields__:
        value = getattr(data, key)
        if key not in _NOT_AGREED and (key in _FIRST_KEYS or value != getattr(first, key)):
            agreed[key] = value
    return agreed


@dataclass(frozen=True, kw_only=True, repr=False)
class Setup:
    """A job with everybody's own side, which a simulation has and nobody in a deployment does.

    Attributes
    ----------
    job
        The contract.
    own
        Each party's own side, by its name.
    folder
        What relative paths in the contract are relative to; those in ``own`` have been resolved.
    seed
        ``run.seed``: makes a simulation reproducible, but its masks and noise known to anyone who knows the seed.
    secure
        ``run.secure``: keys and noise must come from the operating system; a seed is refused.
    network
        ``network.model``: the name of a network model, or None.
    """

    job: Job
    own: Mapping[str, OwnSide] = field(default_factory=dict)
    folder: Path = Path()
    seed: int | None = None
    secure: bool = False
    network: str | None = None

    def __post_init__(self) -> None:
        require_kind("job", self.job, Job, then="Read one: cloister.load_job(path)")
        require_kind("own", self.own, Mapping, then="Give each party's own side by its name.")
        if self.seed is not None:
            check_integer(("run", "seed"), self.seed, 0, MAX_SEED)
        if not isinstance(self.secure, bool):
            refuse(("run", "secure"), "be true or false", show_value(self.secure))
        if self.secure and self.seed is not None:
            what_to_do = "Anyone who knows the seed can remove every mask and all noise: remove it, or secure = true."
            refuse(("run", "seed"), "be left out in secure mode", show_value(self.seed), what_to_do)
        server = self.job.data.server
        if server is not None and any(own.data == self.folder / server for own in self.own.values()):
            what_to_do = "Everyone gets the server's data, and nothing protects them: name another table."
            refuse(("data", "server"), "not be a party's own table", show_value(server), what_to_do)
        _check_alignments(self)
        keeps_ledger = any(own.ledger is not None for own in self.own.values())
        if keeps_ledger and self.job.budget is None:
            refuse(
                ("ledger",), "come with a [budget]", "none", "A ledger records what a budget spends: remove [ledger]."
            )
        if keeps_ledger and not self.job.protocol.facts.ledger:
            what_to_do = "A ledger adds up the cost of adding a record, and its noise does not bound that cost."
            refuse(("ledger",), f"be left out with the protocol {self.job.protocol.name}", "a ledger", what_to_do)
        if keeps_ledger and self.job.protocol.flaw:
            what_to_do = (
                "A ledger accounts for guarantees: remove [ledger] and use records that need no protection, or choose "
                f"a sound variant. {self.job.protocol.flaw}"
            )
            refuse(("ledger",), "be left out where the guarantee as published does not hold", "a ledger", what_to_do)

    @classmethod
    def of(cls, job: Job | Setup) -> Setup:
        """Return a job as a setup; the caller of a bare job passes in what its own sides would hold."""
        require_kind("job", job, Job, Setup, then="Read one: cloister.load_setup(path)")
        return cls(job=job) if isinstance(job, Job) else job

    def __repr__(self) -> str:
        """Say what it is in one line; where anybody's table is is not said."""
        return f"<Setup of {self.job!r}, own sides of {len(self.own)}{'' if self.seed is None else ', seeded'}>"

    def own_side(self, party: str) -> OwnSide:
        """Return one party's own side; empty if the caller passes in its table."""
        return self.own.get(party, OwnSide())


def _check_alignments(setup: Setup) -> None:
    """Refuse alignment files that only some parties have, or that cannot be checked against IDs."""
    job = setup.job
    files = {
        i: setup.own_side(party.name).alignment
        for i, party in enumerate(job.parties)
        if job.find_columns(party) and (party.name in setup.own or not setup.own)
    }
    if not any(files.values()):
        return
    for i, file in files.items():
        path: KeyPath = ("parties", i, "alignment")
        if job.protocol.facts.alignment is None:
            takers = [name for name, options in known_options().items() if options.facts.alignment is not None]
            _refuse_section(path, takers, job.protocol.name)
        if file is None:
            what_to_do = "Run: cloister align JOB.TOML --id COLUMN --out FOLDER. It writes one file per party."
            refuse(path, "be given for every party or for none", "none", what_to_do)
        if job.data.aligned:
            what_to_do = "Rows are either in the same order already or in that of the files: remove one of the two."
            refuse(path, "be left out with aligned = true", show_value(str(file)), what_to_do)
    if job.data.id is None:
        what_to_do = "IDs show whether the tables are still those that were aligned: name the column of IDs."
        refuse(("data", "id"), "be given with alignments", "none", what_to_do)


def _check_kinds(job: Job) -> None:
    """Refuse sections that are of another type, which only Python can give."""
    sections = (("columns", Column), ("parties", JobParty))
    for section, kind in sections:
        require_kind(section, getattr(job, section), tuple, list, then=f"Give a tuple of {kind.__name__}.")
        for one in getattr(job, section):
            require_kind(f"each of {section}", one, kind)
    require_kind("protocol", job.protocol, Options, then="Make it: cloister.make_options(name)")
    require_kind("data", job.data, DataOptions)
    require_kind("budget", job.budget, Budget, type(None), then="Write: Budget(1.0)")
    require_kind("coordinator", job.coordinator, JobCoordinator)


def _check_columns(columns: Sequence[Column]) -> None:
    if not columns:
        refuse(("columns",), "have at least one column", "none", "Write: age = { low = 18, high = 95 }")
    times: Counter[object] = Counter(column.name for column in columns)
    for column in columns:
        check_text(("columns", column.name), column.name, longest=200)
        if times[column.name] > 1:
            refuse(("columns", column.name), "be named once", f"{times[column.name]} times")
    levels = {axis.name for axis in list_coordinates(columns) if axis.kind == "level"}
    for column in columns:
        if column.name in levels:
            what_to_do = "A level of a category is called so in results: rename the column."
            refuse(("columns", column.name), "not be named as column=level", show_value(column.name), what_to_do)


def _check_scale(job: Job) -> None:
    """Refuse a spread where it is not released, and columns without bounds where it is not."""
    if job.scale == "spread" and not job.may_spread:
        takers = [name for name, options in known_options().items() if options.facts.spread]
        must = f'be "bounds", or come with the protocol {join_or(takers)} and a budget for records or persons'
        refuse(("data", "scale"), must, show_value("spread"), "Its release is proved for these only.")
    for column in job.columns:
        if column.bounds == "private" and job.scale != "spread":
            must, what_to_do = 'have public bounds with scale = "bounds"', "Write low and high, or change the scale."
            refuse(("columns", column.name), must, 'bounds = "private"', what_to_do)


def _check_facts(job: Job) -> None:
    """Refuse sizes and keys of other sections that the protocol does not take."""
    facts, protocol = job.protocol.facts, job.protocol.name
    key, least = ("k_max", 2) if job.choose_k else ("k", facts.clusters_least)
    check_integer(("clusters", key), job.k, least, facts.clusters_most)
    _check_alone(job)
    if job.dimensions > facts.dimensions_most:
        must = f"have at most {facts.dimensions_most} coordinates with the protocol {protocol}"
        refuse(("columns",), must, f"{job.dimensions}", "A category has one for each of its levels.")
    if job.choose_k and not facts.chooses_k:
        takers = [name for name, options in known_options().items() if options.facts.chooses_k]
        _refuse_section(("clusters", "choose_k"), takers, protocol)
    for key in job.data.__struct_fields__:
        if key not in facts.data_keys | _ALWAYS_TAKEN and getattr(job.data, key) is not None:
            takers = [name for name, options in known_options().items() if key in options.facts.data_keys]
            _refuse_section(("data", key), takers, protocol)
    if job.data.missing == "impute" and not facts.imputes:
        takers = [name for name, options in known_options().items() if options.facts.imputes]
        must = f"come with the protocol {join_or(takers)}" if takers else "be refuse or drop"
        what_to_do = 'Write missing = "drop": it leaves out the records with missing cells.'
        refuse(("data", "missing"), must, f'"impute" with {protocol}', what_to_do)
    if job.data.id is not None and job.data.id in {column.name for column in job.columns}:
        must, what_to_do = "not be a column that is clustered", "Remove it from [columns]."
        refuse(("data", "id"), must, show_value(job.data.id), what_to_do)
    for i, party in enumerate(job.parties):
        if facts.split == "rows" and party.columns is not None:
            takers = [name for name, options in known_options().items() if options.facts.split == "columns"]
            _refuse_section(("parties", i, "columns"), takers, protocol)


def _check_alone(job: Job) -> None:
    """Refuse one party where a protocol is one between several, and hiding the only party there is."""
    if len(job.parties) > 1:
        return
    facts, protocol = job.protocol.facts, job.protocol.name
    if facts.parties_least > 1:
        alone = [name for name, options in known_options().items() if options.facts.parties_least == 1]
        what_to_do = f"Add another [[parties]] section. One table alone needs noise: use {join_or(alone)}."
        refuse(("parties",), f"be at least {facts.parties_least} with the protocol {protocol}", "1", what_to_do)
    if job.budget is not None and job.budget.unit is Unit.CLIENT:
        what_to_do = "With one table, the unit is what is in it: leave unit out."
        refuse(("budget", "unit"), "not be all of the only party's records", show_value("client"), what_to_do)


def _refuse_section(path: KeyPath, takers: list[str], protocol: str) -> None:
    refuse(path, f"come with the protocol {join_or(takers)}", protocol, "Remove it, or change the protocol.")


def _check_budget(job: Job) -> None:
    """Refuse a budget where there is no noise, noise without a budget, and units that the noise does not hide."""
    facts, protocol, budget = job.protocol.facts, job.protocol.name, job.budget
    if budget is None:
        if facts.budget == "required":
            what_to_do = "Write: [budget], epsilon = 1.0. It limits the cost of all releases together."
            refuse(("protocol", "name"), "come with a [budget]", f"{protocol} without one", what_to_do)
        return
    if facts.budget == "refused":
        private = [name for name, options in known_options().items() if options.facts.budget == "required"]
        what_to_do = (
            f"The protocol {protocol} releases exact aggregates, so it could not keep the promise of a budget: "
            f"remove [budget], or use {join_or(private)}."
        )
        refuse(("budget",), "be left out", f"epsilon = {show_value(budget.epsilon)}", what_to_do)
    if budget.unit not in facts.units:
        must = f"be {join_or([show_value(unit.value) for unit in facts.units])} with the protocol {protocol}"
        hiding = [name for name, options in known_options().items() if budget.unit in options.facts.units]
        other = f"that of {join_or(hiding)} can." if hiding else "that of no protocol can, yet."
        what_to_do = f"Its noise cannot hide a whole {budget.unit.value}; {other}"
        refuse(("budget", "unit"), must, show_value(budget.unit.value), what_to_do)
    if budget.delta == 0 and job.protocol.needs_delta:
        what_to_do = "Its noise cannot give pure epsilon: write delta = 1e-6."
        refuse(("budget", "delta"), f"be greater than 0 with this noise of {protocol}", "0", what_to_do)
