"""Secure sums: the parties learn a sum, nobody learns a term, the coordinator learns nothing.

Two kinds of masks behind one interface. With *double masks* an active coordinator together with up to t parties gets
one sum per round, over a quorum; with *common masks* it and any one party read every vector, which is enough where a
vector may be seen, as with all of its noise on it, or where a published text says so.

Reading order: :mod:`~cloister.aggregation.seed_agreement` (a seed that all parties know and the coordinator does not),
:mod:`~cloister.aggregation.terms`, :mod:`~cloister.aggregation.messages`, :mod:`~cloister.aggregation.statements`;
double masks: :mod:`~cloister.aggregation.pairwise_pads`, :mod:`~cloister.aggregation.own_masks`,
:mod:`~cloister.aggregation.double_masks`; common masks: :mod:`~cloister.aggregation.masked_sum` (the thesis's),
:mod:`~cloister.aggregation.common_masks`; then :mod:`~cloister.aggregation.introduction`,
:mod:`~cloister.aggregation.follower` (a party), :mod:`~cloister.aggregation.coordination` (the coordinator).
What is proved: docs/proofs/secure-sum.md.
"""

from cloister.aggregation.follower import Contributor, Follower
from cloister.aggregation.introduction import Introduction, Masks
from cloister.aggregation.masked_sum import MaskSchedule, pack_members, unpack_members
from cloister.aggregation.seed_agreement import SeedHolder, agree_on_seed_and_keys
from cloister.aggregation.terms import MaskKind, SumTerms, least_quorum

__all__ = [
    "Contributor",
    "Follower",
    "Introduction",
    "MaskKind",
    "MaskSchedule",
    "Masks",
    "SeedHolder",
    "SumTerms",
    "agree_on_seed_and_keys",
    "least_quorum",
    "pack_members",
    "unpack_members",
]
