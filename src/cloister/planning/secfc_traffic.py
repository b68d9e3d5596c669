"""The most that a session of SecFC sends: shares once, then distances to every centre in every round."""

from __future__ import annotations

from cloister.planning.model import PartyBytes, Traffic
from cloister.protocols.secfc import SecfcAgreement

_WORD_BYTES = 8
_ONE_BYTE, _TWO_BYTES = 2**8, 2**16
_ENVELOPE_BYTES = 200  # of a message, generously: session, step, tags, lists of members


def forecast_secfc(agreement: SecfcAgreement) -> Traffic:
    """Return an upper bound for parties that hold equally many records, if nobody drops out; without alignment.

    The formula of the protocol's docstring: every client is asked in every round, and every column is measured.
    """
    n, m = agreement.parties, agreement.records_max
    own = m if agreement.union else -(-m // n)
    word = _WORD_BYTES * agreement.field.residues
    shared_up = word * agreement.width * own * (n - 1)
    shared_down = word * agreement.width * (m * (n - 1) if agreement.union else m - own)
    versions = agreement.versions - 1
    label = 1 if agreement.clusters < _ONE_BYTE else 2 if agreement.clusters < _TWO_BYTES else 4
    sums = word * agreement.width * agreement.clusters
    messages = agreement.steps * (_ENVELOPE_BYTES + n * _ENVELOPE_BYTES)
    party = PartyBytes(
        bytes_up=shared_up + versions * word * m * agreement.clusters + sums + messages,
        bytes_down=shared_down + versions * label * m + 4 * m + agreement.code.holders * sums + messages,
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
