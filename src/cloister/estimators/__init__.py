"""Estimators with scikit-learn's contract: one table, tables of several parties, and the account that they charge.

They add no protocol: each makes a `Job` from its parameters and runs it, so a fit is what ``cloister run`` is.

Reading order: ``account`` (what fits are charged to), ``bounds``, ``base`` (what all estimators have in common),
``kmeans`` (one table), ``several`` (tables of several parties), ``folds`` and ``grid_search`` (a whole grid search,
priced before its first fit). docs/estimators.md says how to use them; docs/proofs/search.md, why searches and weights
are private.

This is the only package that imports scikit-learn when it is loaded: its classes derive from scikit-learn's. It is
loaded when one of its names is first used.
"""

from cloister.estimators.account import Account
from cloister.estimators.base import NotPrivateWarning
from cloister.estimators.folds import RecordFolds
from cloister.estimators.grid_search import search
from cloister.estimators.kmeans import KMeans
from cloister.estimators.several import FederatedKMeans, SecureKMeans, VerticalKMeans

__all__ = [
    "Account",
    "FederatedKMeans",
    "KMeans",
    "NotPrivateWarning",
    "RecordFolds",
    "SecureKMeans",
    "VerticalKMeans",
    "search",
]
