"""Who does what in a vertical job: who computes, who holds keys, who adds noise, whose columns are encrypted.

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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from cloister.protocols.align import NormalForm

if TYPE_CHECKING:
    from cloister.job.model import DataOptions, Job

VerticalModel = Literal["two-party", "server-aided", "collective"]
MODELS: tuple[str, ...] = get_args(VerticalModel)


@dataclass(frozen=True, kw_only=True)
class VerticalRoles:
    """The roles of a checked vertical job; parties by their position in the job, from 0.

    Attributes
    ----------
    model
        Who can decrypt.
    computing
        Who computes on ciphertexts: "Alice".
    encrypted
        Whose columns are encrypted: all others that hold any, in the job's order.
    key_holders, threshold
        Who holds the key or shares of it, and how many of them decrypt.
    colluding_max
        How many of the computing party and those who decrypt may tell each other what noise they added.
    columns
        For each party the positions of its columns among the job's, in the party's own order.
    labels
        Who gets the labels of its records.
    """

    model: VerticalModel
    computing: int
    encrypted: tuple[int, ...]
    key_holders: tuple[int, ...]
    threshold: int
    colluding_max: int
    columns: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]


def resolve_vertical(job: Job) -> VerticalRoles:
    """Return the roles of a vertical job that has passed its checks; what it does not say follows from the rest."""
    protocol, parties = job.protocol, len(job.parties)
    names = [party.name for party in job.parties]
    positions = {column.name: i for i, column in enumerate(job.columns)}
    columns = tuple(tuple(positions[name] for name in party.columns or ()) for party in job.parties)
    model = protocol.model or choose_model(parties)
    computing = find_computing(job)
    if model == "collective":
        key_holders = tuple(i for i in range(parties) if i != computing)
        threshold = protocol.threshold or len(key_holders)
        colluding_max = protocol.colluding_max or threshold
    else:
        holder = (computing + 1) % parties if protocol.key_holder is None else names.index(protocol.key_holder)
        key_holders = (holder,)
        threshold = colluding_max = 1
    return VerticalRoles(
        model=model,
        computing=computing,
        encrypted=tuple(i for i, held in enumerate(columns) if held and i != computing),
        key_holders=key_holders,
        threshold=threshold,
        colluding_max=colluding_max,
        columns=columns,
        labels=tuple(names.index(name) for name in protocol.labels or ()),
    )


def find_computing(job: Job) -> int:
    """Return who computes: the party that the job names, or the one that follows from who holds what."""
    if job.protocol.computing is None:
        return choose_computing([len(party.columns or ()) for party in job.parties])
    return [party.name for party in job.parties].index(job.protocol.computing)


def choose_model(parties: int) -> VerticalModel:
    """Two parties need no third; among more, nobody need be trusted not to collude with the one who computes."""
    return "two-party" if parties == 2 else "collective"


def choose_computing(held: Sequence[int]) -> int:
    """Who computes: the party without columns, which can do nothing else; or the one with most, the first of equals.

    What is encrypted is what costs, so the party with most columns keeps its own in the clear.
    """
    return list(held).index(0) if 0 in held else list(held).index(max(held))


def resolve_form(data: DataOptions) -> NormalForm:
    """Return what makes two IDs of a vertical job equal."""
    return NormalForm(kind=data.id_form or "text", trim=bool(data.id_trim), ignore_case=bool(data.id_ignore_case))
