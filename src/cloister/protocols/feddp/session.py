"""FedDP-KMeans as a protocol of guided sums: its wire, its rehearsal, and who learns what."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.crypto import Stream
from cloister.privacy.samplers import Sampler
from cloister.protocols.feddp.finding import FeddpFinding
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.settings import FEDDP, FeddpSettings
from cloister.protocols.guided_sums.agreement import make_leakage
from cloister.protocols.guided_sums.messages import make_codec
from cloister.protocols.guided_sums.rehearsal import Rehearsal, rehearse
from cloister.records import FloatArray, Records

CODEC = make_codec(FEDDP)
LEAKAGE = make_leakage(
    "docs/proofs/feddp.md",
    "moments, weights of the server's points, sums and counts over all parties' records, round by round",
)


def rehearse_feddp(
    settings: FeddpSettings,
    parts: Sequence[Records],
    server: FloatArray,
    *,
    sampler: Sampler,
    stream: Stream,
    key: bytes = bytes(32),
) -> Rehearsal[FeddpFinding]:
    """Run FedDP-KMeans on all parties' records at once.

    Parameters
    ----------
    settings
        Public values; which server's data they are is filled in.
    parts
        Each party's records in [-1, 1]^d; who holds which matters for client-level privacy only.
    server
        The server's points in [-1, 1]^d, scaled by the same public bounds, (n, d).
    sampler
        Asked once a round for the noise of a whole slot: what all holders of noise add together.
    stream
        The parties' common stream.
    key
        Decides who is asked in which round, where ``settings.sample`` leaves some out.
    """
    pipeline = bind_server(server)
    return rehearse(settings.for_server(server), parts, pipeline=pipeline, sampler=sampler, stream=stream, key=key)
