"""The ledger: what a party's data sets have paid, across jobs, processes and crashes; charged before a value leaves.

An accountant lives as long as its job. The ledger is one file that a party keeps for good, so that two jobs on the same
records cannot each spend the whole budget. It is read again at every charge: a clone, a deep copy, a pickle, a forked
child and a second process all meet the same file and nothing else.

Reading order: :mod:`~cloister.privacy.ledger.fingerprint` (which data set), :mod:`~cloister.privacy.ledger.account`
(what is written and what it adds up to), :mod:`~cloister.privacy.ledger.store` (how it is kept),
:mod:`~cloister.privacy.ledger.ledger` (the handle, and what a job holds of it). docs/ledger.md says what is promised
and what is not.
"""

from cloister.privacy.ledger.account import DataSummary
from cloister.privacy.ledger.fingerprint import fingerprint_label, fingerprint_records
from cloister.privacy.ledger.ledger import Ledger, LedgerSession

__all__ = ["DataSummary", "Ledger", "LedgerSession", "fingerprint_label", "fingerprint_records"]
