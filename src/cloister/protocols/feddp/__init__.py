"""FedDP-KMeans: private k-means of records that several parties hold, with public data at the server.

After "Differentially private federated k-means with server-side data" (seed 002). The parties release noisy statistics
of the union of their records, each a sum of integer vectors, under masks that the coordinator cannot remove:

1. their second moments around the mean of the server's data: the main directions span a subspace (step 1);
2. how many records are nearest to each of the server's points, seen in the subspace: weights by which these points are
   clustered, which costs nothing more (step 2);
3. steps of Lloyd's algorithm, the first with records assigned in the subspace (step 3, then FedDP-Lloyds).

The paper assumes secure aggregation; here it is :mod:`cloister.protocols.guided_sums`. ``variant="tight"`` (default) is
ours: one Gaussian noise for all rounds, everything public taken from the server's data, steps shrunk by what of them is
noise. ``variant="published"`` is Algorithms 1 and 2 with the splits of appendix G.4. :mod:`.options` has the steps of
appendix E, to Algorithm 5 end to end.

Threat model, who learns what, what breaks it: as the synopsis (docs/proofs/feddp.md); the server's data are known to
all. A round may ask a public sample of the parties, and who was away in a round is told what it missed.

Costs: 3 steps to agree on a seed, one a slot, one to compare what was found, one to finish. A party sends 8 bytes a
number: by default 1 + d (d + 3) / 2 + |Q| + 4 k (d + 2) numbers, and receives as many.

Reading order: :mod:`.server`, :mod:`.settings`, :mod:`.pipeline` with its steps (:mod:`.projection`, :mod:`.weights`),
:mod:`.separation` and :mod:`.simplification`, :mod:`.published` with :mod:`.published_noise`, :mod:`.session`.
"""

from cloister.protocols.feddp.finding import FeddpFinding
from cloister.protocols.feddp.options import FeddpOptions, Separation
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.published import AUTHORS_CODE, list_plan
from cloister.protocols.feddp.session import CODEC, LEAKAGE, rehearse_feddp
from cloister.protocols.feddp.settings import FEDDP, FeddpKnobs, FeddpSettings

__all__ = [
    "AUTHORS_CODE",
    "CODEC",
    "FEDDP",
    "LEAKAGE",
    "FeddpFinding",
    "FeddpKnobs",
    "FeddpOptions",
    "FeddpSettings",
    "Separation",
    "bind_server",
    "list_plan",
    "rehearse_feddp",
]
