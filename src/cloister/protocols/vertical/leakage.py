"""Who learns what in a vertical session, as data for cards and reports; tests hold the code to it."""

from __future__ import annotations

from cloister.protocol import LeakageTable, Learns, Row
from cloister.protocols.vertical.agreement import VerticalAgreement

SOURCE = "docs/proofs/vertical.md"

_MEANINGS = {
    "columns": "the columns of single parties, and which records are in which of their cells",
    "sums": "counts and sums of clusters, and the joint histogram, without noise",
    "totals": "the same as released after each pass, and the centres",
    "codebooks": "the cells into which each party sorts its records by its own columns",
}


def describe_leakage(agreement: VerticalAgreement) -> LeakageTable:
    """Return the table of a session."""
    exact = agreement.settings.is_exact
    noisy = Learns.EXACT if exact else Learns.NOISY
    party = {"columns": Learns.OWN, "sums": Learns.NOTHING, "totals": noisy, "codebooks": noisy}
    if exact:
        party["sums"] = Learns.EXACT
    learns = {"coordinator": dict.fromkeys(_MEANINGS, Learns.NOTHING), "party": party}
    rows = tuple(
        Row(role=role, value=value, meaning=meaning, learns=learns[role][value])
        for role in learns
        for value, meaning in _MEANINGS.items()
    )
    return LeakageTable(source=SOURCE, rows=rows, breaks_if=describe_break(agreement))


def describe_break(agreement: VerticalAgreement) -> str:
    """Which coalition breaks it."""
    semi_honest = (
        "Nothing is promised against parties that leave the protocol: a holder that encrypts something else than "
        "indicators, or a computing party with other weights, can learn more."
    )
    if agreement.model == "two-party":
        return (
            "Two parties: there is nobody to collude with. "
            + ("" if agreement.settings.is_exact else "Each knows its own noise; the other's protects against it. ")
            + semi_honest
        )
    if agreement.model == "server-aided":
        return (
            "The computing party and the key holder together: one has everyone's ciphertexts, the other decrypts them. "
            + semi_honest
        )
    count = agreement.decryptors
    if agreement.threshold is None:
        return (
            "Reading columns takes all parties together, and then nobody is left to protect. "
            + ("" if agreement.settings.is_exact else _noise_break(agreement))
            + semi_honest
        )
    several = f"any {count}"
    noise = "" if agreement.settings.is_exact else _noise_break(agreement)
    return (
        f"The computing party and {several} key holders together: one has everyone's ciphertexts, the others decrypt "
        f"them. {noise}{semi_honest}"
    )


def _noise_break(agreement: VerticalAgreement) -> str:
    placement = agreement.settings.placement
    if placement.colluding_max >= placement.parties - 1:
        return ""
    return f"More than {placement.colluding_max} parties that tell each other their noise leave too little of it. "
