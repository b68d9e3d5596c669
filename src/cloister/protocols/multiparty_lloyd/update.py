"""The global update: from the summed integers of a round to the next centres. The same on every side, bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.errors import RemoteProtocolError
from cloister.kmeans.lloyd import update_centres
from cloister.kmeans.postprocess import fold
from cloister.kmeans.records import FloatArray
from cloister.privacy.encoder import SumCountEncoder
from cloister.protocols.multiparty_lloyd.agreement import Agreement


def move_centres(centres: FloatArray, total: NDArray[np.int64], agreement: Agreement, *, members: int) -> FloatArray:
    """Return the next centres; a cluster that nobody joined keeps its own.

    Parameters
    ----------
    centres
        The centres that the round assigned to.
    total
        The sums of the round, k rows: d sums and a count (5.2.1 (c): mu_i = S_i / C_i), or d scaled coordinates
        (5.4.1).
    members
        How many parties are in the sum. Parties scale their centroids by the agreed M before anyone knows who will
        drop out; the average over those who stayed is the sum times M / members.

    Raises
    ------
    RemoteProtocolError
        If no honest sum could be this: a negative count, or a sum larger than its count allows. A liar is noticed here
        only if it is a clumsy one.
    """
    scale = agreement.fixed_point.scale
    if agreement.variant == "masked-centroid":
        moved = total / scale * (agreement.parties / members)
        slack = agreement.parties / scale  # each party rounds once
        if (np.abs(moved) > 1 + slack).any():
            raise RemoteProtocolError("averaged centres must lie inside the public bounds; some do not.")
        return np.clip(moved, -1.0, 1.0)
    if agreement.noise is not None:
        return _move_by_noisy_sums(centres, total, agreement.noise.encoder)
    sums, counts = total[:, :-1], total[:, -1:]
    check_sums(sums, counts, agreement, count_max=members * agreement.max_records)
    return update_centres(agreement.fixed_point.decode(sums), counts[:, 0], centres)


def _move_by_noisy_sums(centres: FloatArray, total: NDArray[np.int64], encoder: SumCountEncoder) -> FloatArray:
    """Thesis 7.2.4: divide noisy sums by noisy counts and fold the centres back (6.1.3); all of it post-processing.

    A cluster whose noisy count is below one keeps its centre: its sum is noise.
    """
    counts = encoder.decode_counts(total)
    seen = counts >= 1
    moved = centres.copy()
    moved[seen] = fold(encoder.decode_sums(total)[seen] / counts[seen, None], -1.0, 1.0)
    return moved


def check_sums(sums: NDArray[np.int64], counts: NDArray[np.int64], agreement: Agreement, *, count_max: int) -> None:
    """Refuse sums that no honest records could give: the only thing that can be checked without seeing records."""
    if (counts < 0).any() or (counts > count_max).any():
        raise RemoteProtocolError(f"a cluster's count must be from 0 to {count_max}; some are not.")
    limit = counts * agreement.fixed_point.scale  # no overflow: the ring was chosen for count_max
    if (sums > limit).any() or (sums < -limit).any():  # not abs(): it maps -2^63 to itself
        raise RemoteProtocolError("a cluster's sum must be at most its count times the bound; some are not.")
