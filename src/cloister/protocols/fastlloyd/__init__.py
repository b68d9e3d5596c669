"""FastLloyd: noisy Lloyd in T rounds.

Diaa, Humphries and Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering with
Differential Privacy" (2024), and the thesis it grew from (:mod:`cloister.protocols.multiparty_lloyd`).

Two ways to run it, over the same rounds of multiparty Lloyd (masked sums around a coordinator; or without a server,
:mod:`cloister.protocols.serverless`):

- sound, the default (:func:`plan_fastlloyd`): radius-bounded offsets from the previous centre and counts, one joint
  release per round. This is the second version of the authors' code with discrete noise; in addition, steps are
  shortened by what noise contributes, and idle clusters are put to use;
- as published (:func:`plan_published`): the printed formulas, labelled with the reason where their guarantee fails.

Leakage: thesis tables 7.2 (sums and counts, offsets) and 7.3 (centroids): the coordinator learns nothing, each party
the noisy sums and centres of all rounds. Breaks if: the coordinator, where it adds the noise and so knows it, sees the
centres; where parties add shares of it, more than ``colluding_max`` of them collude, with the coordinator or without
(published variants, whose masks are common: the coordinator and any one party); with two parties, each subtracts
itself from the noisy sum and is left with the other's sum and the same noise.

Costs per round and party: 4 k (d + 1) + 16 bytes each way (8 where the public cap on records is large), plus 36 to 54
bytes of envelope, and what double masks take (:mod:`cloister.protocols.multiparty_lloyd`); CPU: one pass over the
records.

Reading order: :mod:`.offsets` (the step), :mod:`.sound` (its plan), :mod:`.published_rules`, :mod:`.published`, then
:mod:`.options`, :mod:`.attack`, :mod:`.protocol` (what the rest of Cloister needs). :mod:`.rehearsal` is for studies.
"""
