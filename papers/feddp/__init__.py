"""The evaluation of FedDP-KMeans (seed 002_baaed074ce95c6f8, section 5 and appendices G and H), run again.

Figures 1, 2, 5 and 6 on the paper's mixtures, figures 1 to 4 and 7 to 9 on real data where the user has the files, and
Tables 2 to 5. Every method runs in one harness: ours, the published one, its baselines, k-FED and the optimum.

Reading order: :mod:`.datasets`, :mod:`.trials` (what is run), :mod:`.noise_desk`, :mod:`.starts` and :mod:`.lloyds`
(the baselines), :mod:`.published` (the paper's algorithm), :mod:`.protocol_runs` (ours), :mod:`.runs` (one run),
:mod:`.lab` (many), :mod:`.scope` (how much is run), :mod:`.lines`, :mod:`.pareto` and :mod:`.points` (what runs come
to), :mod:`.printed` and :mod:`.peers`, :mod:`.cards`, :mod:`.cost_figures` with :mod:`.cost_picture`,
:mod:`.budget_tables`, :mod:`.catalogue` and :mod:`.production`.

Nothing here is private: noise is seeded, and the same command gives the same numbers on any number of processes, but
for CPU seconds.
"""

from papers.feddp.catalogue import FEDDP_ARTEFACTS, FeddpArtefact, choose_feddp_artefacts
from papers.feddp.production import reproduce_feddp
from papers.feddp.scope import FeddpScope, make_feddp_scope

__all__ = [
    "FEDDP_ARTEFACTS",
    "FeddpArtefact",
    "FeddpScope",
    "choose_feddp_artefacts",
    "make_feddp_scope",
    "reproduce_feddp",
]
