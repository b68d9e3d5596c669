"""What one party writes beside its result, so that it can prove what it agreed to and gave away."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from cloister.agreement import Consented, FileHash, Part, Record, commit, encode_session, open_ledger, sign_record
from cloister.crypto import Identity, SystemEntropy
from cloister.privacy.ledger import LedgerSession
from cloister.protocol import Votes
from cloister.runtime.remote import messages
from cloister.runtime.remote.tls import TRANSPORT


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a run was, for one of its parties.

    Attributes
    ----------
    party, identity
        Whose.
    contract, digest
        The job's text as this party read it, and its digest.
    run
        Which run.
    sessions
        The IDs of its sessions, by kind.
    consents, left
        Everyone's consent; who had left by the end.
    votes
        On the result, where the protocol has some that may be shown.
    ledger
        What was charged; None without.
    """

    party: str
    identity: Identity
    contract: str
    digest: bytes
    run: bytes
    sessions: Mapping[str, bytes]
    consents: tuple[messages.Consented, ...]
    left: tuple[str, ...]
    votes: Votes | None
    ledger: LedgerSession | None

    def sign(self, files: Mapping[str, bytes]) -> bytes:
        """Return ``session.json`` for a result of these files."""
        opening = open_ledger(self.ledger, SystemEntropy())
        record = Record(
            party=self.party,
            job=self.contract,
            digest=self.digest.hex(),
            run=self.run.hex(),
            sessions=tuple(Part(kind=kind, session=session.hex()) for kind, session in self.sessions.items()),
            connection_version=messages.MAJOR,
            program=version("cloister"),
            transport=TRANSPORT,
            consents=tuple(
                Consented(party=one.party, program=one.program, signature=one.signature) for one in self.consents
            ),
            outcome="finished",
            left=self.left,
            date=datetime.now(UTC).date().isoformat(),
            files=tuple(FileHash(name=n, sha256=hashlib.sha256(content).hexdigest()) for n, content in files.items()),
            votes=self.votes,
            ledger=commit(opening),
        )
        return encode_session(sign_record(record, self.identity, opening))
