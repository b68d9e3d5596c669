"""What organisations agree on before a session, and what each can prove of it afterwards.

Reading order: ``terms`` (what a party is about to agree to), ``consent`` (it agrees), ``record`` (what it can prove of
a session), ``verify`` (the proof).
"""

from cloister.agreement.consent import (
    Consent,
    OwnConsent,
    check_consent,
    give_consent,
    read_consent,
    use_consent,
    write_consent,
)
from cloister.agreement.record import (
    Consented,
    FileHash,
    LedgerOpening,
    Part,
    Record,
    SessionFile,
    commit,
    encode_session,
    open_ledger,
    sign_record,
)
from cloister.agreement.terms import LedgerOutlook, Terms, describe_terms
from cloister.agreement.verify import Check, Verification, verify_result

__all__ = [
    "Check",
    "Consent",
    "Consented",
    "FileHash",
    "LedgerOpening",
    "LedgerOutlook",
    "OwnConsent",
    "Part",
    "Record",
    "SessionFile",
    "Terms",
    "Verification",
    "check_consent",
    "commit",
    "describe_terms",
    "encode_session",
    "give_consent",
    "open_ledger",
    "read_consent",
    "sign_record",
    "use_consent",
    "verify_result",
    "write_consent",
]
