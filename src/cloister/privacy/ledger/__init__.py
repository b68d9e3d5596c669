"""The ledger: what a party's data sets have paid, across jobs, processes and crashes; charged before a value leaves.

An accountant lives as long as its job. The ledger is one file that a party keeps for good, so that two jobs on the same
records cannot each spend the whole budget. It is read again at every charge: a clone, a deep copy, a pickle, a forked
child and a second process all meet the same file and nothing else.

An account belongs to a data set, which is a name that its owner declares: rows that come, go or change do not make it
another one. Fingerprints of tables only warn.

Reading order: :mod:`~cloister.privacy.ledger.cost` (what charges add up to), :mod:`~cloister.privacy.ledger.entries`
(what is written), :mod:`~cloister.privacy.ledger.account` and :mod:`~cloister.privacy.ledger.accounts` (what it adds up
to, for one data set and for all), :mod:`~cloister.privacy.ledger.chain`, :mod:`~cloister.privacy.ledger.schema` and
:mod:`~cloister.privacy.ledger.store` (how it is kept), :mod:`~cloister.privacy.ledger.ledger` (the handle),
:mod:`~cloister.privacy.ledger.session` (what a job holds of it). docs/ledger.md says what is promised and what is not.
"""

from cloister.privacy.ledger.account import DataSummary
from cloister.privacy.ledger.fingerprint import fingerprint_label, fingerprint_records
from cloister.privacy.ledger.ledger import Ledger, Trace
from cloister.privacy.ledger.places import UNDECLARED, default_ledger
from cloister.privacy.ledger.session import LedgerSession, Statement

__all__ = [
    "UNDECLARED",
    "DataSummary",
    "Ledger",
    "LedgerSession",
    "Statement",
    "Trace",
    "default_ledger",
    "fingerprint_label",
    "fingerprint_records",
]
