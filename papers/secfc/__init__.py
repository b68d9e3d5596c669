"""The evaluation of SecFC (section 5), run again: tables 1 to 3 and figure 1.

Reading order: :mod:`.datasets` (what is run, and how often), :mod:`.sessions` (the protocol), :mod:`.centralised` (the
same algorithm in one place, in the field's integers and in doubles), :mod:`.trials` (one run), :mod:`.printed` (what
the text prints), :mod:`.cells`, :mod:`.accuracy_tables` and :mod:`.time_figure`.

Nothing here is private; the data sets are public or drawn. Accuracies are seeded: the same command gives the same
numbers on any number of processes.
"""

from papers.lab.paper import Paper
from papers.secfc.accuracy_tables import ACCURACY_TABLES
from papers.secfc.datasets import Scope
from papers.secfc.time_figure import TimeFigure
from papers.secfc.trials import score_trial

PAPER = Paper(
    title="SecFC",
    artefacts=(*ACCURACY_TABLES, TimeFigure()),
    scope=Scope(),
    score_trial=score_trial,
    # The longest first, so that no process is left alone with one at the end; then by data, which is kept.
    order=lambda trial: (not trial.protocol, trial.data.label),
)
