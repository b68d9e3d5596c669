"""The evaluations of FastLloyd (seed 000_823ff705eefdee1c) and of the thesis (001_c977ec09f5a1b369), run again.

Every artefact is a CSV file, a picture where the paper has one, and a printed summary with our numbers beside the
printed ones. Runs are seeded: a trial gives the same score on any number of processes. Nothing here is private; the
data sets are public.

Reading order: :mod:`.datasets`, :mod:`.scope` (how much is run), :mod:`.trials` (one run), :mod:`.estimates`,
:mod:`.lab` (many), :mod:`.sessions` (timed ones), :mod:`.printed_fastlloyd` and :mod:`.printed_thesis` (what the texts
print), :mod:`.peers`, :mod:`.drawing`, :mod:`.products`, then one module for each kind of artefact, :mod:`.catalogue`
and :mod:`.production`.
"""

from papers.fastlloyd.catalogue import ARTEFACTS, choose_artefacts
from papers.fastlloyd.production import reproduce
from papers.fastlloyd.products import Artefact, Product, Table
from papers.fastlloyd.scope import Scope, find_data, make_scope

__all__ = [
    "ARTEFACTS",
    "Artefact",
    "Product",
    "Scope",
    "Table",
    "choose_artefacts",
    "find_data",
    "make_scope",
    "reproduce",
]
