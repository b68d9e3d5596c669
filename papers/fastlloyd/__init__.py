"""The evaluations of FastLloyd and of the thesis that it grew from, run again.

Every artefact is a CSV file, a picture where the paper has one, and a printed summary with our numbers beside the
printed ones. Runs are seeded: a trial gives the same score on any number of processes. Nothing here is private; the
data sets are public.

Reading order: :mod:`.datasets` (what is run, and how often), :mod:`.trials` (one run), :mod:`.sessions` (timed ones),
:mod:`.printed` (what the texts print), :mod:`.lines` (what figures compare), then one module for each kind of artefact.
"""

from papers.fastlloyd.ablations import ABLATIONS
from papers.fastlloyd.datasets import Scope
from papers.fastlloyd.heat_maps import HeatMaps
from papers.fastlloyd.loss_figures import DistanceFigure, EmptyFigure, LossFigure
from papers.fastlloyd.serverless_figure import ServerlessFigure
from papers.fastlloyd.silhouette_figures import SILHOUETTE_FIGURES
from papers.fastlloyd.time_tables import NETWORK_TABLES, OverheadTable
from papers.fastlloyd.trials import score_trial
from papers.lab.paper import Paper

PAPER = Paper(
    title="FastLloyd and the thesis",
    artefacts=(
        LossFigure(),
        EmptyFigure(),
        HeatMaps(name="fig5", title="Figure 5: NICV over k and d on SynthOV (FastLloyd 6.2.2)", family="SynthOV"),
        HeatMaps(name="fig6", title="Figure 6: NICV over k and d on SynthSEP (FastLloyd 6.2.2)", family="SynthSEP"),
        DistanceFigure(),
        OverheadTable(),
        *ABLATIONS,
        *NETWORK_TABLES,
        *SILHOUETTE_FIGURES,
        ServerlessFigure(),
    ),
    scope=Scope(),
    score_trial=score_trial,
    # Trials of one run share parts, start and first flow, which a process then has in memory.
    order=lambda trial: (trial.data.label, trial.start, trial.run, trial.parties),
    together=2,
    needs={"ortools": "constrained assignment"},
)
