"""Who learns what in SecFC, as data for cards and reports; tests check it against the code.

The paper says that the server learns neither records nor centres. It does learn all distances, and these determine the
records up to an isometry (docs/proofs/secfc.md, claim 6). A test does that reconstruction from a recorded session.
"""

from __future__ import annotations

from cloister.privacy.units import LeakageTable, Learns, Row
from cloister.protocols.secfc.agreement import SecfcAgreement

_BREAKS_IF = (
    "The coordinator alone learns every distance between a record and a centre: after about d / (k - 1) rounds it has "
    "all records up to one rotation, reflection and shift. Outliers, duplicates and groups of records are visible, and "
    "with few columns the grid of the coordinates may also give the rotation away. With the help of any one client, "
    "whose records fix the rotation, it gets every record of every client. {readers}Revealed centres are means: that "
    "of a cluster of one record is the record, and all clients learn it. Nothing is promised against roles that do not "
    "follow the protocol."
)

HOLDERS_BREAK = (
    "Who holds which record is hidden from each single role: the alignment reveals to all how many records each has, "
    "and the coordinator together with any one client knows the holder of every record."
)
"""What an alignment before the session adds to this."""


_MEANINGS = {
    "distances": "the distance of every record to every centre, in every round",
    "shape": "all records up to one rotation, reflection and shift, after about d / (k - 1) rounds",
    "replies": "the distances of single clients' shares, or of single segments of a record",
    "records": "records of single clients, where and as they are",
    "labels": "the cluster of every record, by its index, in every round",
    "sizes": "how many records each client has",
    "holders": "which client holds which record, by its index",
    "centres": "the final centres",
}


def describe_break(agreement: SecfcAgreement) -> str:
    """Which coalition reads what."""
    some, all_of_it = agreement.privacy + 1, agreement.privacy + agreement.segments
    readers = f"Any {all_of_it} clients together can read all records. "
    if all_of_it > some:
        readers = f"Any {some} clients together can read parts of records, and any {all_of_it} all of them. "
    said = _BREAKS_IF.replace("{readers}", readers)
    return f"{said} {HOLDERS_BREAK}" if agreement.union else said


def describe_scope(agreement: SecfcAgreement) -> str:
    """What noise on revealed centres promises and what it does not; for the card."""
    return (
        "The labels are exact and follow from all records: they, and so the result as a whole, are not differentially "
        f"private. What the noise does: to {name_colluding(agreement)}, with the labels of all rounds known, the "
        "revealed centres are about as likely (within the stated epsilon and delta) as if any one record had another "
        "value that leaves all these labels as they are. The coordinator knows the noise; it does not see the centres."
    )


def describe_who_adds_noise(agreement: SecfcAgreement) -> str:
    """Say it in a sentence."""
    return f"The coordinator codes the noise as records are coded: it stays hidden from {name_colluding(agreement)}."


def name_colluding(agreement: SecfcAgreement) -> str:
    """Name the clients that may put together what they have."""
    return "any one client" if agreement.privacy == 1 else f"up to {agreement.privacy} clients together"


def describe_leakage(agreement: SecfcAgreement) -> LeakageTable:
    """Return the table of a job: with or without membership privacy, and with centres as the clients learn them.

    Counts are revealed in the session's first exchange or, if IDs are aligned, before it.
    """
    revealed = Learns.EXACT if agreement.budget is None else Learns.NOISY
    learns = {
        "coordinator": {
            "distances": Learns.EXACT,
            "shape": Learns.EXACT,
            "replies": Learns.NOTHING,
            "records": Learns.NOTHING,
            "labels": Learns.EXACT,
            "sizes": Learns.EXACT,
            "holders": Learns.NOTHING if agreement.union else Learns.EXACT,
            "centres": Learns.NOTHING,
        },
        "party": {
            "distances": Learns.NOTHING,
            "shape": Learns.NOTHING,
            "replies": Learns.OWN,
            "records": Learns.OWN,
            "labels": Learns.EXACT,
            "sizes": Learns.EXACT,
            "holders": Learns.OWN if agreement.union else Learns.EXACT,
            "centres": revealed if agreement.reveal_centres else Learns.NOTHING,
        },
    }
    rows = tuple(
        Row(role=role, value=value, meaning=meaning, learns=learns[role][value])
        for role in learns
        for value, meaning in _MEANINGS.items()
    )
    together = "each alone" if agreement.privacy == 1 else f"up to {agreement.privacy} together"
    return LeakageTable(
        source="docs/proofs/secfc.md",
        rows=rows,
        withstands=f"Semi-honest clients, {together}, learn nothing of the others' records beyond what is listed "
        "above. The coordinator alone, semi-honest, learns what is listed above.",
        breaks_if=describe_break(agreement),
    )
