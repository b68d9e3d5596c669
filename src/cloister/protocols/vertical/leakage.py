"""Who learns what in a vertical session, as data for cards and reports; tests check it against the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.placement import Shared
from cloister.privacy.units import LIMIT, LeakageTable, Learns, Row
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.settings import Settings

SOURCE = "docs/proofs/vertical.md"
LABELS_SOURCE = "docs/proofs/vertical-labels.md"
SEMI_HONEST = (
    "Vertical sessions assume semi-honest parties: a computing party that asks for masks of its own choice instead of "
    "its answer's reads the key holders' secret key, whatever noise and smudging are added, and with it all encrypted "
    "columns."
)
"""Said in these words on the card, in SECURITY.md and in docs/proofs/collective-keys.md."""
_RELAY = "The relay alone, semi-honest, learns nothing."
_MEANINGS = {
    "columns": "the columns of each single party, and which records are in which of its cells",
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
    withstands, breaks_if = _describe_claim(agreement), describe_break(agreement)
    limit = find_replacement_epsilon(agreement.settings)
    return LeakageTable(source=SOURCE, rows=rows, withstands=withstands, breaks_if=breaks_if, limit=limit)


def _describe_claim(agreement: VerticalAgreement) -> str:
    """Who may collude, in the semi-honest model that is proved."""
    exact, threshold = agreement.settings.is_exact, agreement.threshold
    beyond = "beyond what is exact above" if exact else LIMIT
    if agreement.model == "two-party":
        return f"Either party, semi-honest, learns nothing of the other {beyond}. {_RELAY}"
    most = agreement.parties - 1 if exact else agreement.settings.placement.colluding_max
    who = "each alone" if most == 1 else f"up to {most} of them together"
    if agreement.model == "server-aided":
        who = "without the computing party or without the key holder"
    elif threshold is not None and most > 1:
        who += f", without the computing party or with fewer than {threshold} key holders"
    return f"Semi-honest parties, {who}, learn nothing of the others {beyond}. {_RELAY}"


def describe_break(agreement: VerticalAgreement) -> str:
    """Which coalition breaks it."""
    exact = agreement.settings.is_exact
    if agreement.model == "two-party":
        noise = "" if exact else "Each knows its own noise; the other's protects against it. "
        said = f"Two parties: there is nobody to collude with. {noise}"
    elif agreement.model == "server-aided":
        said = (
            "The computing party and the key holder together: one has everyone's ciphertexts, the other decrypts them. "
        )
    elif agreement.threshold is None:
        said = "To read columns takes all parties together, and then nobody is left to protect. "
        said += _describe_noise_break(agreement)
    else:
        said = (
            f"The computing party and any {agreement.threshold} key holders together: one has everyone's ciphertexts, "
            "the others decrypt them. "
        )
        said += _describe_noise_break(agreement)
    return said + (
        "Nothing is promised against parties that deviate from the protocol: a holder that encrypts anything but "
        f"indicators, or a computing party with other weights, can learn more. {SEMI_HONEST}"
    )


def _describe_noise_break(agreement: VerticalAgreement) -> str:
    """Who leaves too little noise: nobody where there is none, or where all but one may collude."""
    placement = agreement.settings.placement
    if agreement.settings.is_exact or placement.colluding_max >= placement.parties - 1:
        return ""
    most = placement.colluding_max
    who = "Two or more" if most == 1 else f"More than {most}"
    return f"{who} parties that reveal their noise to each other leave too little of it. "


def find_replacement_epsilon(settings: Settings) -> float | None:
    """Return the cost of changing the values of a record that is known to be there; None without a budget."""
    if settings.budget is None:
        return None
    return epsilon_of_rho(settings.replacement_rho + 4 * settings.flood_rho, settings.noise_budget.delta)


def describe_who_adds_noise(placement: Shared) -> str:
    """Say it in a sentence."""
    if placement.parties == 2:
        return "The computing party under encryption, and the key holder after decryption; each adds all of it."
    return f"The computing party under encryption, and each of the {placement.parties - 1} that decrypt."


# --- labels -----------------------------------------------------------------------------------------------------------


def add_labels(table: LeakageTable, granted: Sequence[str]) -> LeakageTable:
    """Return a clustering's table with the labels that were given to some parties, by name."""
    names = ", ".join(granted)
    rows: list[Row] = []
    for role in dict.fromkeys(row.role for row in table.rows):
        rows += [row for row in table.rows if row.role == role]
        if role == "party":
            meaning, learns = f"which cluster each of its own records is in ({names} only)", Learns.EXACT
        else:
            meaning, learns = "which cluster a record is in", Learns.NOTHING
        rows.append(Row(role=role, value="labels", meaning=meaning, learns=learns))
    return replace(table, rows=tuple(rows), source=f"{table.source}, {LABELS_SOURCE}")


def describe_labels(granted: Sequence[str]) -> str:
    """Return what a card must say about labels, which no budget covers."""
    return (
        f"The labels of the records were given to {', '.join(granted)}. Labels are not differentially private: each "
        "follows from all parties' columns of its record, with no noise except that in centres and cells. "
        "No budget covers them."
    )
