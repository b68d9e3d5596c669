"""Multiparty Lloyd: the protocols of Ahmed, "Differentially-Private Multiparty Clustering" (2023), chapter 5 and 7.2.

"The thesis" is that one, here and in :mod:`cloister.protocols.fastlloyd`.

M parties hold different records with the same columns and run Lloyd's algorithm on their union. A coordinator P_S,
assumed semi-honest, adds up. The first three protocols release exact sums: what a role learns, it learns exactly. The
others add the noise of a :class:`NoisePlan` to the masked sums: :func:`plan_noise` for ``mask-noise-average``,
:mod:`cloister.protocols.fastlloyd` for the rest.

Leakage (thesis tables 5.1-5.3, 7.2 and 7.3; l is a party, i a cluster; "own" means l = l', "DP" with noise):

=================================  ===========  ====  ====  ===  ===  ====
protocol                           role         C_li  S_li  C_i  S_i  mu_i
=================================  ===========  ====  ====  ===  ===  ====
``naive`` (5.2)                    coordinator  yes   yes   yes  yes  yes
                                   party        own   own   no   no   yes
``masked-sum-count`` (5.3)         coordinator  no    no    no   no   no
                                   party        own   own   yes  yes  yes
``masked-centroid`` (5.4)          coordinator  no    no    no   no   no
                                   party        own   own   no   no   yes
``mask-noise-average`` (7.2.4)     coordinator  no    no    no   no   no
                                   party        own   own   DP   DP   DP
``average-mask-noise`` (7.2.5)     coordinator  no    no    no   no   no
                                   party        own   own   no   no   DP
``fastlloyd``                      coordinator  no    no    no   no   no
                                   party        own   own   DP   DP   DP
=================================  ===========  ====  ====  ===  ===  ====

``masked-centroid`` averages the parties' local centroids, which is not the centroid of the union unless the parties'
clusters have equal sizes (5.4's own example: 2.25 instead of 2.2). ``naive`` and ``masked-sum-count`` are Lloyd's
algorithm, exactly; ``mask-noise-average`` is, up to its noise.

Breaks if: (common masks) the coordinator and any one party put together what they see, since all parties know the seed;
(double masks, by default with shared noise) more than ``colluding_max`` parties do, with the coordinator or without;
with two parties in an exact sum each subtracts itself. (noise by the coordinator) it sees the centres: it knows the
noise. A coordinator that tells parties different sums is noticed in the next round, and at the end.

Costs per round and party, w = 4 or 8 bytes per ring element: k(d+1)w + 16 up and down (``masked-centroid``: kdw + 16),
plus 36 to 54 bytes of envelope; 3 steps to agree on the seed, 2 to vote on the result and finish, with 80 bytes of each
party to each. With double masks each round has a second step, in which 48 bytes go up and 56 for each party come down
with the sum; where fewer than all are enough 57 bytes for each party and 80 more go up; and one step more opens the
session. CPU: one pass over the records, two masks (double: one for each party); noise below 0.5 microseconds per entry.

Reading order: :mod:`.rules` (what travels in a round), :mod:`.noise` (what is released, and its noise),
:mod:`.agreement`, :mod:`.messages`, :mod:`.party`, :mod:`.coordinator`, then :mod:`.options`, :mod:`.plan`,
:mod:`.attack`, :mod:`.protocol` (what the rest of Cloister needs).
"""
