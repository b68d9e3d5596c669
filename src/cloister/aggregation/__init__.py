"""Secure sums: the parties learn a sum, nobody learns a term, the coordinator learns nothing.

Reading order: :mod:`~cloister.aggregation.seed_agreement` (a seed that all parties know and the coordinator does not),
:mod:`~cloister.aggregation.masked_sum` (the thesis's masked secure aggregation, with dropouts),
:mod:`~cloister.aggregation.pairwise_pads` (sums that no single party can open).

Sections cited as "thesis" are of Ahmed, "Differentially-Private Multiparty Clustering" (2023), those cited as
"FastLloyd" of Diaa, Humphries and Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering
with Differential Privacy" (2024).
"""

from cloister.aggregation.masked_sum import Aggregate, MaskSchedule, pack_members, sum_masked, unpack_members
from cloister.aggregation.seed_agreement import SeedHolder, agree_on_seed

__all__ = [
    "Aggregate",
    "MaskSchedule",
    "SeedHolder",
    "agree_on_seed",
    "pack_members",
    "sum_masked",
    "unpack_members",
]
