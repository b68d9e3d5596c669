"""The evaluation of FedDP-KMeans (section 5 and appendices G and H), run again.

Figures 1, 2, 5 and 6 on the paper's mixtures, figures 1 to 4 and 7 to 9 on real data where the user has the files, and
Tables 2 to 5. Every method runs in one harness: ours, the published one, its baselines, k-FED and the optimum.

Reading order: :mod:`.datasets`, :mod:`.noise`, :mod:`.baselines`, :mod:`.published` (the paper's algorithm),
:mod:`.trials` (one run), :mod:`.scope` (how much is run), :mod:`.comparison` (what runs come to), :mod:`.printed`,
:mod:`.cost_figures` and :mod:`.budget_tables`.

Nothing here is private: noise is seeded, and the same command gives the same numbers on any number of processes, but
for CPU seconds.
"""

from papers.feddp.budget_tables import BUDGET_TABLES
from papers.feddp.cost_figures import COST_FIGURES
from papers.feddp.scope import Scope
from papers.feddp.trials import score_trial
from papers.lab.paper import Paper

PAPER = Paper(
    title="FedDP-KMeans",
    artefacts=(*COST_FIGURES, *BUDGET_TABLES),
    scope=Scope(),
    score_trial=score_trial,
    # By data, which a process keeps; the longest first, so that none is left alone with one at the end.
    order=lambda trial: (trial.data.label, trial.method not in ("k-fed", "optimal"), trial.method),
    needs={"dp_accounting": "composing Laplace with Gaussian releases"},
)
