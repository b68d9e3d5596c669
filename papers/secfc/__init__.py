"""The evaluation of SecFC (seed 004_3f52349a08e47052, section 5), run again: tables 1 to 3 and figure 1.

Reading order: :mod:`.datasets`, :mod:`.scope` (how much is run), :mod:`.sessions` (the protocol), :mod:`.centralised`
(the same algorithm in one place, in the field's integers and in doubles), :mod:`.trials` (one run), :mod:`.lab` (many),
:mod:`.printed` (what the text prints), :mod:`.cells`, :mod:`.accuracy_tables` with :mod:`.accuracy_picture`,
:mod:`.time_figure`, :mod:`.catalogue` and :mod:`.production`.

Nothing here is private; the data sets are public or drawn. Accuracies are seeded: the same command gives the same
numbers on any number of processes.
"""

from papers.secfc.catalogue import SECFC_ARTEFACTS, SecfcArtefact, choose_secfc_artefacts
from papers.secfc.production import reproduce_secfc
from papers.secfc.scope import SecfcScope, make_secfc_scope

__all__ = [
    "SECFC_ARTEFACTS",
    "SecfcArtefact",
    "SecfcScope",
    "choose_secfc_artefacts",
    "make_secfc_scope",
    "reproduce_secfc",
]
