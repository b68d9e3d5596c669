"""The most that a session of SecFC sends: shares once, then distances to every centre in every round."""

from __future__ import annotations

from cloister.planning.model import PartyBytes, Traffic
from cloister.protocols.secfc import SecfcAgreement

_WORD_BYTES = 8
_LABEL_BYTES = 1


def forecast_secfc(agreement: SecfcAgreement) -> Traffic:
    """Return an upper bound, if nobody drops out: the formula of the protocol's docstring, without envelopes.

    Parties are taken to hold equally many records. Every client is asked in every round: there may be fewer that
    answer, and fewer columns that changed.
    """
    n, m = agreement.parties, agreement.records_max
    own = m if agreement.union else -(-m // n)
    word = _WORD_BYTES * agreement.field.residues
    shared_up = word * agreement.width * own * (n - 1)
    shared_down = word * agreement.width * (m * (n - 1) if agreement.union else m - own)
    versions = agreement.versions - 1
    party = PartyBytes(
        bytes_up=shared_up + versions * word * m * agreement.clusters,
        bytes_down=shared_down + versions * _LABEL_BYTES * m,
        messages_up=agreement.steps,
        messages_down=agreement.steps,
    )
    return Traffic(
        steps=agreement.steps,
        leader=party,
        other=party,
        total_bytes=n * (party.bytes_up + party.bytes_down),
        at_most=True,
    )
