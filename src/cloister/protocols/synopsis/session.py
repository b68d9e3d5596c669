"""The synopsis as a protocol of guided sums: its wire, its parties, its rehearsal, and who learns what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from cloister.crypto import Entropy, Identity, Stream
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import Sampler
from cloister.protocols.guided_sums import rehearsal
from cloister.protocols.guided_sums.agreement import Agreement, make_leakage
from cloister.protocols.guided_sums.messages import make_codec
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.rehearsal import Rehearsal
from cloister.protocols.guided_sums.thinking import SharedThinking
from cloister.protocols.synopsis.pipeline import Finding, run_synopsis
from cloister.protocols.synopsis.settings import SYNOPSIS, Settings
from cloister.records import Records

CODEC = make_codec(SYNOPSIS)
LEAKAGE = make_leakage(
    "docs/proofs/synopsis.md", "counts, moments, histogram and sums over all parties' records, round by round"
)


class SynopsisParty(GuidedParty[Finding]):
    """One party of a synopsis: as `GuidedParty`, with thoughts of its own unless it is given some to share."""

    def __init__(
        self,
        *,
        number: int,
        agreement: Agreement[Settings],
        records: Records,
        identity: Identity,
        entropy: Entropy,
        session: bytes,
        duty: NoiseDuty,
        thinking: SharedThinking[Finding] | None = None,
    ) -> None:
        super().__init__(
            number=number,
            agreement=agreement,
            records=records,
            identity=identity,
            entropy=entropy,
            session=session,
            duty=duty,
            thinking=thinking or SharedThinking(guard=nullcontext(), pipeline=run_synopsis),
        )


def rehearse(settings: Settings, parts: Sequence[Records], *, sampler: Sampler, stream: Stream) -> Rehearsal[Finding]:
    """Run the synopsis on all parties' records at once, as `guided_sums.rehearsal` says."""
    return rehearsal.rehearse(settings, parts, pipeline=run_synopsis, sampler=sampler, stream=stream)
