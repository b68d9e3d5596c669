"""Multiparty Lloyd: the three protocols of chapter 5 of the thesis (seed 001_c977ec09f5a1b369).

M parties hold different records with the same columns and run Lloyd's algorithm on the union. A coordinator P_S,
assumed semi-honest, adds up. Nothing here is differentially private: the sums are exact, and what a role learns, it
learns exactly.

Leakage (thesis tables 5.1-5.3; l is a party, i a cluster; "own" means l = l'):

=================================  ===========  ====  ====  ===  ===  ====
protocol                           role         C_li  S_li  C_i  S_i  mu_i
=================================  ===========  ====  ====  ===  ===  ====
``naive`` (5.2)                    coordinator  yes   yes   yes  yes  yes
                                   party        own   own   no   no   yes
``masked-sum-count`` (5.3)         coordinator  no    no    no   no   no
                                   party        own   own   yes  yes  yes
``masked-centroid`` (5.4)          coordinator  no    no    no   no   no
                                   party        own   own   no   no   yes
=================================  ===========  ====  ====  ===  ===  ====

``masked-centroid`` averages the parties' local centroids, which is not the centroid of the union unless the parties'
clusters have equal sizes (5.4's own example: 2.25 instead of 2.2). The other two are Lloyd's algorithm, exactly.

Breaks if: (masked) the coordinator and any one party put together what they see, since all parties know the seed;
(two parties) nothing is needed: each subtracts itself from the sum.

Costs per round and party, w = 4 or 8 bytes a ring element: k(d+1)w up and down (``masked-centroid``: kdw), plus 36 to
46 bytes of envelope; 3 steps to agree on the seed, 1 to finish. CPU: one pass over the records, M masks.

Reading order: :mod:`.agreement`, :mod:`.messages`, :mod:`.party`, :mod:`.coordinator`.
"""

from cloister.protocols.multiparty_lloyd.agreement import LEAKAGE, Agreement, Initialisation, StartBy, Variant
from cloister.protocols.multiparty_lloyd.coordinator import Outcome, coordinate
from cloister.protocols.multiparty_lloyd.messages import CODEC
from cloister.protocols.multiparty_lloyd.noise import NoisePlan, plan_noise
from cloister.protocols.multiparty_lloyd.party import LloydParty

__all__ = [
    "CODEC",
    "LEAKAGE",
    "Agreement",
    "Initialisation",
    "LloydParty",
    "NoisePlan",
    "Outcome",
    "StartBy",
    "Variant",
    "coordinate",
    "plan_noise",
]
