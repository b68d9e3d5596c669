"""The options of a vertical job, and what follows from them: who computes, who holds keys, whose columns are encrypted.

The computing party works on ciphertexts and keeps its own columns in the clear; the columns of all others are encrypted
before they leave. Three models say who can decrypt (vertical k-means, section 3):

================  =======================  =====================================
model             who can decrypt          breaks if
================  =======================  =====================================
two-party         the other party          (two parties: nobody to collude with)
server-aided      one key holder           it and the computing party collude
collective        ``threshold`` together   so many of them and the computing party collude
================  =======================  =====================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from cloister.job import Facts, Job, Options
from cloister.job.refusals import (
    KeyPath,
    check_choice,
    check_integer,
    quote_string,
    refuse,
    show_value,
    suggest,
)
from cloister.numeric import FixedPoint
from cloister.privacy.units import Unit
from cloister.protocols.vertical.agreement import Model
from cloister.protocols.vertical.settings import (
    BITS_LEAST,
    CELLS_MOST,
    CLUSTERS_MOST,
    DIMENSIONS_MOST,
    EXACT_BITS_MOST,
    HOLDERS_MOST,
    NOISY_BITS_MOST,
    VERTICAL,
    Start,
)

CODEBOOK_CELLS_MOST = 256
_FORM_KEYS = ("id_form", "id_trim", "id_ignore_case")


class VerticalOptions(Options, frozen=True, tag=VERTICAL):
    """Options of vertical clustering, all optional.

    Attributes
    ----------
    computing
        The party that computes on ciphertexts; by default one without columns, or the one with the most.
    model
        Who can decrypt; by default the other one of two parties, and among more all others together.
    key_holder
        With ``server-aided``: who decrypts; by default the next party after the computing one.
    threshold
        With ``collective``: how many key holders decrypt together; by default all.
    colluding_max
        With ``collective``: how many of the computing party and those who decrypt may reveal to each other the noise
        they added; by default as many as decrypt.
    labels
        The parties that get the labels of their records.
    initialisation, iterations
        Start from a joint histogram or from random centres; rounds of Lloyd's algorithm.
    cells
        Of each encrypted party's codebook.
    residuals
        Whether records' offsets from their cells are encrypted, too; by default only without a budget.
    fractional_bits, offset_bits
        Records are rounded to multiples of 2^-fractional_bits; sums are of multiples of 2^-offset_bits.
    """

    facts = Facts(
        split="columns",
        budget="optional",
        units=(Unit.RECORD, Unit.PERSON),
        data_keys=frozenset({"records", "id", *_FORM_KEYS, "aligned"}),
        alignment="intersection",
        clusters_least=2,
        clusters_most=CLUSTERS_MOST,
        dimensions_most=DIMENSIONS_MOST,
        remedy="More cells for the encrypted columns, or another start, may find less.",
    )

    computing: str | None = None
    model: Model | None = None
    key_holder: str | None = None
    threshold: Annotated[int, Meta(ge=2)] | None = None
    colluding_max: Annotated[int, Meta(ge=1)] | None = None
    labels: tuple[str, ...] = ()
    initialisation: Start = "synopsis"
    iterations: Annotated[int, Meta(ge=1, le=100)] | None = None
    cells: Annotated[int, Meta(ge=2, le=CODEBOOK_CELLS_MOST)] | None = None
    residuals: bool | None = None
    fractional_bits: Annotated[int, Meta(ge=1, le=30)] = 16
    offset_bits: Annotated[int, Meta(ge=BITS_LEAST, le=EXACT_BITS_MOST)] | None = None

    @property
    def grid(self) -> FixedPoint:
        """The grid that tables are rounded to."""
        return FixedPoint(self.fractional_bits)

    def check(self, job: Job) -> None:
        """Refuse columns without one holder, roles that do not fit, and records that nobody aligns."""
        if job.data.max_records is not None:
            what_to_do = "How many records are aligned is public, and what sums need follows from it: remove it."
            must = f"be left out with the protocol {VERTICAL}"
            refuse(("data", "max_records"), must, show_value(job.data.max_records), what_to_do)
        _check_columns(job)
        self._check_model(job)
        self._check_collusion(job)
        self._check_labels(job)
        roles = assign_roles(job)
        _check_holders(job, roles)
        self._check_bits(job)
        self._check_cells(len(roles.encrypted))
        _check_alignment(job)

    def name_placement(self, parties: int) -> str:
        """Those who decrypt add shares of the noise."""
        return "shared"

    def resolve_model(self, parties: int) -> Model:
        """Return the model. Two parties need no third; with more, nobody must be trusted not to collude."""
        return self.model or ("two-party" if parties == 2 else "collective")

    def _check_model(self, job: Job) -> None:
        """Refuse roles that the model does not have, and unknown names."""
        names = [party.name for party in job.parties]
        model = self.resolve_model(len(names))
        if model == "two-party" and len(names) > 2:
            what_to_do = 'Write model = "collective", or "server-aided".'
            refuse(("protocol", "model"), "have two parties if it is two-party", str(len(names)), what_to_do)
        if model != "two-party" and len(names) < 3:
            what_to_do = "Two parties need no third one, and no shared key: remove it."
            refuse(("protocol", "model"), f"have at least three parties if it is {model}", str(len(names)), what_to_do)
        if self.computing is not None:
            check_choice(("protocol", "computing"), self.computing, names)
        if self.key_holder is not None:
            path: KeyPath = ("protocol", "key_holder")
            if model != "server-aided":
                refuse(path, 'come with model = "server-aided"', show_value(model), "Remove it, or change the model.")
            check_choice(path, self.key_holder, names)
            if self.key_holder == names[find_computing(job)]:
                what_to_do = "Whoever has the key and the ciphertexts can read all columns: choose another."
                refuse(path, "not be the party that computes", show_value(self.key_holder), what_to_do)
        for key in ("threshold", "colluding_max"):
            if getattr(self, key) is not None and model != "collective":
                refuse(("protocol", key), 'come with model = "collective"', show_value(model), "Remove it.")

    def _check_collusion(self, job: Job) -> None:
        """Refuse a threshold beyond the key holders, and colluders that could decrypt, or have no noise to share."""
        key_holders = len(job.parties) - 1
        if self.threshold is not None:
            check_integer(("protocol", "threshold"), self.threshold, 2, key_holders)
        threshold = self.threshold or key_holders
        if self.colluding_max is not None and self.colluding_max > threshold:
            what_to_do = f"So many read everyone's columns together: write {threshold}, or a higher threshold."
            must = f"be at most threshold = {threshold}"
            refuse(("protocol", "colluding_max"), must, show_value(self.colluding_max), what_to_do)
        if self.colluding_max is not None and job.budget is None:
            what_to_do = "It limits who may know whose noise, and there is none: remove it."
            refuse(("protocol", "colluding_max"), "come with a [budget]", "none", what_to_do)

    def _check_labels(self, job: Job) -> None:
        """Refuse labels under a key of several, and for parties that hold no records."""
        path: KeyPath = ("protocol", "labels")
        with_records = [party.name for party in job.parties if party.columns]
        for i, name in enumerate(self.labels):
            check_choice((*path, i), name, with_records)
            if name in self.labels[:i]:
                refuse((*path, i), "be named once", show_value(name), "Remove it.")
        if self.labels and self.resolve_model(len(job.parties)) == "collective":
            what_to_do = 'Write model = "server-aided" and trust its key_holder, or remove labels.'
            refuse(path, "come with one key holder, and not a collective key", show_value(self.labels), what_to_do)

    def _check_bits(self, job: Job) -> None:
        """Refuse sums that are finer than the records, or finer than noise warrants."""
        bits, path = self.offset_bits, ("protocol", "offset_bits")
        if bits is None:
            return
        if bits > self.fractional_bits:
            what_to_do = "Records are rounded to these, so that more bits would be zeros."
            refuse(path, f"be at most fractional_bits = {self.fractional_bits}", show_value(bits), what_to_do)
        if job.budget is not None and bits > NOISY_BITS_MOST:
            what_to_do = "Its noise hides finer steps: remove it for the default, or write fewer."
            refuse(path, f"be at most {NOISY_BITS_MOST} with a [budget]", show_value(bits), what_to_do)

    def _check_cells(self, encrypted: int) -> None:
        """Refuse more joint cells than can be multiplied, and residuals in them."""
        if self.cells is not None and self.cells**encrypted > CELLS_MOST:
            must = f"be so few that {encrypted} parties have at most {CELLS_MOST} joint cells"
            got = f"{self.cells}, or {self.cells**encrypted} joint ones"
            most = next(cells for cells in range(CODEBOOK_CELLS_MOST, 0, -1) if cells**encrypted <= CELLS_MOST)
            refuse(("protocol", "cells"), must, got, f"Write {most} at most.")
        if self.residuals and encrypted > 1:
            what_to_do = "A record's place in a joint cell is not encrypted: remove it."
            refuse(("protocol", "residuals"), "be false with several encrypted parties", "true", what_to_do)


def options_of(job: Job) -> VerticalOptions:
    """Return the options of a vertical job."""
    assert isinstance(job.protocol, VerticalOptions)
    return job.protocol


# --- roles ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PartyRoles:
    """Who does what in a vertical job; parties by their position in the job, from 0.

    Attributes
    ----------
    model
        Who can decrypt.
    computing
        Who computes on ciphertexts.
    encrypted
        Whose columns are encrypted: all others that hold any, in the job's order.
    key_holders, threshold
        Who holds the key or shares of it, and how many of them decrypt.
    colluding_max
        How many of the computing party and those who decrypt may tell each other what noise they added.
    columns
        For each party the positions of its coordinates among the job's, in the order of its own columns.
    labels
        Who gets the labels of its records.
    """

    model: Model
    computing: int
    encrypted: tuple[int, ...]
    key_holders: tuple[int, ...]
    threshold: int
    colluding_max: int
    columns: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]


def assign_roles(job: Job) -> PartyRoles:
    """Return the roles in a vertical job; what it does not say follows from the rest."""
    options, parties = options_of(job), len(job.parties)
    names = [party.name for party in job.parties]
    positions = {axis.name: i for i, axis in enumerate(job.coordinates)}
    columns = tuple(tuple(positions[axis.name] for axis in job.find_coordinates(party)) for party in job.parties)
    model, computing = options.resolve_model(parties), find_computing(job)
    if model == "collective":
        key_holders = tuple(i for i in range(parties) if i != computing)
        threshold = options.threshold or len(key_holders)
        colluding_max = options.colluding_max or threshold
    else:
        holder = (computing + 1) % parties if options.key_holder is None else names.index(options.key_holder)
        key_holders = (holder,)
        threshold = colluding_max = 1
    return PartyRoles(
        model=model,
        computing=computing,
        encrypted=tuple(i for i, held in enumerate(columns) if held and i != computing),
        key_holders=key_holders,
        threshold=threshold,
        colluding_max=colluding_max,
        columns=columns,
        labels=tuple(names.index(name) for name in options.labels),
    )


def describe_context(job: Job, alignment: str | None) -> str:
    """Return what else must be agreed on: columns, bounds, and how records were aligned."""
    context = {"columns": [column.list_agreed() for column in job.columns], "alignment": alignment}
    return json.dumps(context, sort_keys=True)


def find_computing(job: Job) -> int:
    """Return who computes: the party that the job names, one without columns, or else the first with the most.

    A party without columns can do nothing else. Encryption is what costs, so the party with the most columns keeps
    its own in the clear.
    """
    computing = options_of(job).computing
    if computing is not None:
        return [party.name for party in job.parties].index(computing)
    held = [len(job.find_coordinates(party)) for party in job.parties]
    return held.index(0) if 0 in held else held.index(max(held))


# --- rules about other sections ---------------------------------------------------------------------------------------


def _check_columns(job: Job) -> None:
    """Refuse columns that no party holds, or two."""
    known = [column.name for column in job.columns]
    holders: dict[str, int] = {}
    for i, party in enumerate(job.parties):
        path: KeyPath = ("parties", i, "columns")
        listed: object = party.columns
        if listed is None:
            what_to_do = f"Write those of [columns] that its table has: columns = [{quote_string(known[0])}]"
            refuse(path, f"be given with the protocol {VERTICAL}", "none", what_to_do)
        if not isinstance(listed, list | tuple):
            refuse(path, "be a list of names", show_value(listed), "Write them in brackets.")
        for j, name in enumerate(listed):
            if not isinstance(name, str) or name not in known:
                what_to_do = suggest(name, known) if isinstance(name, str) else ""
                refuse((*path, j), "be one of [columns]", show_value(name), what_to_do or "Add it there, with bounds.")
            if name in holders:
                got = f"{show_value(name)}, which parties[{holders[name]}] has already"
                refuse((*path, j), "be held by one party, once", got, "Decide who contributes it.")
            holders[name] = i
    for name in known:
        if name not in holders:
            what_to_do = "Add it to the columns of the party that holds it, or delete it here."
            refuse(("columns", name), "be among the columns of one party", "no party that has it", what_to_do)


def _check_holders(job: Job, roles: PartyRoles) -> None:
    """Refuse parties that contribute nothing, and more holders of encrypted columns than joint cells allow."""
    for i, held in enumerate(roles.columns):
        if not held and i != roles.computing and i not in roles.key_holders:
            what_to_do = "Give it columns, leave it out, or let it compute or hold the key."
            must = "have at least one column, unless it computes or holds a key"
            refuse(("parties", i, "columns"), must, "none", what_to_do)
    holders = sum(bool(held) for held in roles.columns)
    if holders < 2:
        what_to_do = "One organisation that holds all columns is the only [[parties]] of the default protocol."
        refuse(("parties",), "have columns at two or more of them", str(holders), what_to_do)
    if len(roles.encrypted) > HOLDERS_MOST:
        what_to_do = (
            "More would make too many joint cells; they need comparisons under encryption, which do not exist yet. Let "
            "parties that trust each other join their columns."
        )
        must = f"have columns at no more than {HOLDERS_MOST} besides the one that computes"
        refuse(("parties",), must, str(len(roles.encrypted)), what_to_do)


def _check_alignment(job: Job) -> None:
    """Refuse a job that does not say which rows belong together, or says it twice."""
    data = job.data
    if data.id is None:
        if not data.aligned:
            what_to_do = (
                'Write id = "COLUMN" to align them privately by that column first; or aligned = true if row i is the '
                "same record in every table."
            )
            refuse(("data",), "say which rows of the tables belong together", "neither id nor aligned", what_to_do)
        if data.missing == "drop":
            what_to_do = "Rows that one table leaves out would shift it against the others: write id, not aligned."
            refuse(("data", "missing"), "be refuse with aligned = true", '"drop"', what_to_do)
        for key in _FORM_KEYS:
            if getattr(data, key) is not None:
                refuse(("data", key), "come with id", "none", "Remove it.")
        return
    if data.aligned:
        refuse(("data", "id"), "be left out with aligned = true", show_value(data.id), "Remove one of them.")
    kind = data.id_form or "text"
    if data.id_trim and kind == "raw":
        refuse(("data", "id_trim"), "come with text or integer IDs", show_value(kind), "Remove it.")
    if data.id_ignore_case and kind != "text":
        refuse(("data", "id_ignore_case"), "come with text IDs", show_value(kind), "Remove it.")
