"""The options of the synopsis."""

from __future__ import annotations

from cloister.job import Facts, NoiseOptions
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, DIMENSIONS_MOST
from cloister.protocols.synopsis.settings import SYNOPSIS, Knobs


class SynopsisOptions(NoiseOptions, frozen=True, tag=SYNOPSIS):
    """Options of the synopsis, all optional.

    Attributes
    ----------
    knobs
        Advanced settings: the section ``[synopsis]``.
    """

    facts = Facts(
        budget="required",
        units=(Unit.RECORD, Unit.PERSON, Unit.CLIENT),
        data_keys=frozenset({"records"}),
        chooses_k=True,
        spread=True,
        imputes=True,
        section="knobs",
        clusters_most=CLUSTERS_MOST,
        dimensions_most=DIMENSIONS_MOST,
        parties_least=1,
    )
    knobs: Knobs = Knobs()
