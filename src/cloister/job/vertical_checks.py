"""What must hold for ``protocol = "vertical"``: its options, who holds which column, who has which role."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from cloister.job.alignment_checks import check_alignment
from cloister.job.problems import KeyPath, check_choice, check_integer, quote_string, refuse, show_value, suggest
from cloister.job.vertical_roles import MODELS, choose_model, find_computing, resolve_vertical
from cloister.protocols.vertical.settings import CELLS_MOST, CLUSTERS_MOST, DIMENSIONS_MOST, HOLDERS_MOST, VERTICAL

if TYPE_CHECKING:
    from cloister.job.model import Job

ITERATIONS_MOST = 100
CODEBOOK_CELLS_MOST = 256
OFFSET_BITS = (4, 20)
STARTS = ("synopsis", "random")
ONLY_VERTICAL = ("computing", "model", "key_holder", "threshold", "cells", "residuals", "offset_bits", "labels")
_ONLY_VERTICAL_DATA = ("id_form", "id_trim", "id_ignore_case", "aligned")
_ONLY_VERTICAL_PARTY = ("columns", "alignment")
_TAKES = ("name", "fractional_bits", "ring", "iterations", "initialisation", "colluding_max", *ONLY_VERTICAL)
# Why it does not take what a reader of another protocol may look for.
_REASONS = {
    "variant": "What other variants do needs comparisons under encryption, which are not there yet.",
    "placement": "Who adds noise follows from model: remove it.",
    "noise": "Its noise is discrete Gaussian: remove it.",
    "min_parties": "All parties take part; only how many decrypt can be chosen, with threshold.",
    "honest_fraction": 'Write colluding_max, with model = "collective".',
    "start": "It starts from a noisy joint histogram, or with random centres: remove it.",
}


def refuse_vertical_options(job: Job) -> None:
    """Refuse, for another protocol, what only vertical jobs take."""
    given: list[tuple[KeyPath, object]] = [(("protocol", key), getattr(job.protocol, key)) for key in ONLY_VERTICAL]
    given += [(("data", key), getattr(job.data, key)) for key in _ONLY_VERTICAL_DATA]
    for i, party in enumerate(job.parties):
        given += [(("parties", i, key), getattr(party, key)) for key in _ONLY_VERTICAL_PARTY]
    for path, value in given:
        if value is not None:
            what_to_do = "Remove it, or change the protocol."
            refuse(path, f"come with the protocol {VERTICAL}", job.protocol.name, what_to_do)


def check_vertical(job: Job) -> None:
    """Refuse options of other protocols, columns without one holder, roles that do not fit, and unaligned records."""
    _refuse_other_options(job)
    check_integer(("clusters", "k"), job.k, 2, CLUSTERS_MOST)
    if len(job.columns) > DIMENSIONS_MOST:
        refuse(("columns",), f"be at most {DIMENSIONS_MOST} with the protocol {VERTICAL}", str(len(job.columns)))
    _check_columns(job)
    _check_model(job)
    _check_collusion(job)
    _check_labels(job)
    _check_holders(job)  # the roles can be told from here on
    _check_numbers(job)
    check_alignment(job)


def _refuse_other_options(job: Job) -> None:
    """Refuse what vertical jobs do not take: an option that is ignored would mislead."""
    protocol = job.protocol
    must = f"be left out with the protocol {VERTICAL}"
    for option in fields(protocol):
        value = getattr(protocol, option.name)
        if option.name not in _TAKES and value is not None:
            what_to_do = _REASONS.get(option.name, f"It takes {', '.join(_TAKES[3:])}.")
            refuse(("protocol", option.name), must, show_value(value), what_to_do)
    if protocol.ring != "auto":
        what_to_do = "Its modulus follows from the number of records, the cells and the bits: remove it."
        refuse(("protocol", "ring"), must, show_value(protocol.ring), what_to_do)
    if job.data.max_records is not None:
        what_to_do = "How many records are aligned is public, and what sums need follows from it: remove it."
        refuse(("data", "max_records"), must, show_value(job.data.max_records), what_to_do)


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
        if not isinstance(listed, (list, tuple)):
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
            refuse(("columns", name), "be among the columns of one party", "none that has it", what_to_do)


def _check_model(job: Job) -> None:
    """Refuse roles that the model does not have, and parties that are none."""
    protocol, names = job.protocol, [party.name for party in job.parties]
    if protocol.model is not None:
        check_choice(("protocol", "model"), protocol.model, MODELS)
    model = protocol.model or choose_model(len(names))
    if model == "two-party" and len(names) > 2:
        what_to_do = 'Write model = "collective", or "server-aided".'
        refuse(("protocol", "model"), "have two parties if it is two-party", str(len(names)), what_to_do)
    if model != "two-party" and len(names) < 3:
        what_to_do = "Two parties need no third one, and no shared key: remove it."
        refuse(("protocol", "model"), f"have at least three parties if it is {model}", str(len(names)), what_to_do)
    if protocol.computing is not None:
        check_choice(("protocol", "computing"), protocol.computing, names)
    if protocol.key_holder is not None:
        path: KeyPath = ("protocol", "key_holder")
        if model != "server-aided":
            refuse(path, 'come with model = "server-aided"', show_value(model), "Remove it, or change the model.")
        check_choice(path, protocol.key_holder, names)
        if protocol.key_holder == names[find_computing(job)]:
            what_to_do = "Whoever has the key and the ciphertexts can read all columns: choose another."
            refuse(path, "not be the party that computes", show_value(protocol.key_holder), what_to_do)
    for key in ("threshold", "colluding_max"):
        if getattr(protocol, key) is not None and model != "collective":
            refuse(("protocol", key), 'come with model = "collective"', show_value(model), "Remove it.")


def _check_holders(job: Job) -> None:
    """Refuse parties that bring nothing, and more encrypted columns than joint cells are there for."""
    roles = resolve_vertical(job)
    for i, (party, held) in enumerate(zip(job.parties, roles.columns, strict=True)):
        if held:
            continue
        if i != roles.computing and i not in roles.key_holders:
            what_to_do = "Give it columns, leave it out, or let it compute or hold the key."
            must = "have one column at least, but for who computes or holds a key"
            refuse(("parties", i, "columns"), must, "none", what_to_do)
        for key in ("data", "dataset", "alignment"):
            if getattr(party, key) is not None:
                what_to_do = "It holds no records: remove it."
                refuse(("parties", i, key), "be left out without columns", show_value(getattr(party, key)), what_to_do)
    holders = sum(bool(held) for held in roles.columns)
    if holders < 2:
        what_to_do = "One organisation that holds all columns can use scikit-learn."
        refuse(("parties",), "have columns at two of them at least", str(holders), what_to_do)
    if len(roles.encrypted) > HOLDERS_MOST:
        what_to_do = (
            "Joint cells of more are too many; that needs comparisons under encryption, variant = "
            '"comparison", which is not there yet. Let parties that trust each other join their columns.'
        )
        must = f"have columns at {HOLDERS_MOST} at most besides the one that computes"
        refuse(("parties",), must, str(len(roles.encrypted)), what_to_do)


def _check_collusion(job: Job) -> None:
    """Refuse a threshold that one party reaches alone, and colluders that could decrypt and need no noise."""
    protocol, key_holders = job.protocol, len(job.parties) - 1
    if protocol.threshold is not None:
        check_integer(("protocol", "threshold"), protocol.threshold, 2, key_holders)
    if protocol.colluding_max is None:
        return
    threshold = protocol.threshold or key_holders
    path: KeyPath = ("protocol", "colluding_max")
    check_integer(path, protocol.colluding_max, 1, key_holders)
    if protocol.colluding_max > threshold:
        what_to_do = f"So many read everyone's columns together: write {threshold}, or a higher threshold."
        refuse(path, f"be at most threshold = {threshold}", show_value(protocol.colluding_max), what_to_do)


def _check_labels(job: Job) -> None:
    """Refuse labels under a key of several, and for parties that are none or hold no records."""
    labels: object = job.protocol.labels
    path: KeyPath = ("protocol", "labels")
    if labels is None:
        return
    if not isinstance(labels, (list, tuple)):
        refuse(path, "be a list of parties", show_value(labels), "Write them in brackets.")
    with_records = [party.name for party in job.parties if party.columns]
    for i, name in enumerate(labels):
        check_choice((*path, i), name, with_records)
        if name in labels[:i]:
            refuse((*path, i), "be named once", show_value(name), "Remove it.")
    if labels and (job.protocol.model or choose_model(len(job.parties))) == "collective":
        what_to_do = 'Write model = "server-aided" and trust its key_holder, or remove labels.'
        refuse(path, "come with one key holder, and not a collective key", show_value(list(labels)), what_to_do)


def _check_numbers(job: Job) -> None:
    """Refuse numbers out of range, and a start or residuals that there are not."""
    protocol, encrypted = job.protocol, len(resolve_vertical(job).encrypted)
    if protocol.initialisation is not None:
        check_choice(("protocol", "initialisation"), protocol.initialisation, STARTS)
    if protocol.iterations is not None:
        check_integer(("protocol", "iterations"), protocol.iterations, 1, ITERATIONS_MOST)
    if protocol.offset_bits is not None:
        least, most = OFFSET_BITS
        check_integer(("protocol", "offset_bits"), protocol.offset_bits, least, most)
        if protocol.offset_bits > protocol.fractional_bits:
            must = f"be at most fractional_bits = {protocol.fractional_bits}"
            what_to_do = "Records are rounded to these, so that more bits would be zeros."
            refuse(("protocol", "offset_bits"), must, show_value(protocol.offset_bits), what_to_do)
    if protocol.cells is not None:
        path: KeyPath = ("protocol", "cells")
        check_integer(path, protocol.cells, 2, CODEBOOK_CELLS_MOST)
        if protocol.cells**encrypted > CELLS_MOST:
            must = f"be so few that {encrypted} parties have at most {CELLS_MOST} joint cells"
            got = f"{protocol.cells}, or {protocol.cells**encrypted} joint ones"
            most = next(cells for cells in range(CODEBOOK_CELLS_MOST, 0, -1) if cells**encrypted <= CELLS_MOST)
            refuse(path, must, got, f"Write {most} at most.")
    residuals: object = protocol.residuals
    if residuals is not None:
        if not isinstance(residuals, bool):
            refuse(("protocol", "residuals"), "be true or false", show_value(residuals))
        if residuals and encrypted > 1:
            what_to_do = "A record's place in a joint cell is not encrypted: remove it."
            refuse(("protocol", "residuals"), "be false with several encrypted parties", "true", what_to_do)
